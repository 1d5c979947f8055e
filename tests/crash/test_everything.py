"""Everything at once: processes write, edit, purge, sign anew, compact, back up, sleep, query and serve, and are killed at random.

A short form in every run; with ``--long`` an hour, a new store every four minutes.
"""

from __future__ import annotations

import json
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import memgraph
from memgraph.testing import FakeClock, FakeEmbedder
from tests.crash.conftest import PATIENCE_S, Child, Nursery, graph_ids
from tests.crash.test_kill import DIMENSION, Ledger, ids_added

KILLED = 0.25
"""The share of the processes that are killed."""
REFUSALS = re.compile(
    r"has been held by|open the store again|as a purge does; try again|try again when no purge runs|a read that began before|cannot be written as fast|the limit is 64"
)
"""What may refuse a command when others work on the store: it says so, and changes nothing."""
LOOPS = {
    "sign anew": [["keys", "rotate"], ["keys", "rotate", "--reseal", "--yes"]],
    "compact": [["compact"]],
    "sleep": [["sleep", "--max-seconds", "3"]],
    "read": [["verify"], ["recall", "the build failed in login.py"], ["query", "--cypher", "MATCH (m:Memory) RETURN count(m)"]],
}  # fmt: skip


class Round:
    """One store, and the threads that keep processes at work on it until it is time."""

    def __init__(self, nursery: Nursery, folder: Path, number: int, seconds: float) -> None:
        self.nursery, self.folder, self.number = nursery, folder, number
        self.until = time.monotonic() + seconds
        self.ledger, self.guard = Ledger(), threading.Lock()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.purged: list[str] = []
        self.wrong: list[str] = []
        self.served: set[str] = set()

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.until or bool(self.wrong)

    def run(self) -> None:
        """Let all work until it is time, and raise what went wrong."""
        works: list[Callable[[random.Random], Iterator[None]]] = [
            self._write, self._write, self._purge, self._back_up, self._serve,
            *(lambda chance, name=name, of=of: self._loop(name, of, chance) for name, of in LOOPS.items()),
        ]  # fmt: skip
        threads = [
            threading.Thread(target=self._guarded, args=(work, random.Random(f"{self.number} {index}")))
            for index, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.wrong, "\n\n".join(self.wrong)

    def _guarded(self, work: Callable[[random.Random], Iterator[None]], chance: random.Random) -> None:
        try:
            for _ in work(chance):
                if self.is_over:
                    return
        except BaseException as error:
            self.wrong.append(repr(error))
            raise

    def _command(self, name: str, arguments: list[str], chance: random.Random) -> Child | None:
        """Run a command, or kill it at a random time; return it if it succeeded."""
        child = self.nursery.start(
            "command", self.folder, "-", "9", *arguments, environment={"MEMGRAPH_LOCK_TIMEOUT_S": "60"}
        )
        if chance.random() < KILLED:
            code = child.wait_or_kill(chance.uniform(0.2, 3.0))
            child.wait()
        else:
            code = child.wait()
        said = child.errors()
        outcome = "killed" if code is None else "done" if code == 0 else "refused" if REFUSALS.search(said) else "wrong"
        self.counts[name, outcome] += 1
        if outcome == "wrong" or "Traceback" in said or re.search("damage|tamper|forged|not what was written", said):
            self.wrong.append(f"{arguments}: exit {code}: {said[-1_000:]}")
        return child if code == 0 else None

    def _loop(self, name: str, commands: list[list[str]], chance: random.Random) -> Iterator[None]:
        while True:
            self._command(name, chance.choice(commands), chance)
            time.sleep(chance.uniform(0, 3))
            yield

    def _write(self, chance: random.Random) -> Iterator[None]:
        """Let a writer work and die, again and again."""
        while True:
            child = self.nursery.start("restless", self.folder, chance.randrange(10**6), 0.05)
            with suppress(AssertionError):
                child.hears("ready")
            code = child.wait_or_kill(chance.uniform(0.5, 8.0))
            if code is not None and not REFUSALS.search(child.errors()):
                self.wrong.append(f"a writer ended with {code}: {child.errors()[-1_000:]}")
            child.wait()
            said = [word for word in child.said() if word != "ready"]
            self.counts["write", "killed" if code is None else "refused"] += 1
            self.counts["write", "acknowledged"] += len(said)
            with self.guard:
                for word, *ids in said:
                    if word == "added":
                        self.ledger.added.update(ids)
                    elif word in {"deleted", "deleting"}:
                        getattr(self.ledger, word).add(ids[0])
            yield

    def _purge(self, chance: random.Random) -> Iterator[None]:
        number = 0
        while True:
            number += 1
            word = f"unspeakable{self.number}x{number}y"  # no beginning of another one
            made = self._command("remember", ["--json", "remember", f"The {word} failed in login.py"], chance)
            if made:
                memory_id = json.loads(made.out.read_text("utf-8"))["data"]["ids"][0]
                self._command("edit", ["edit", memory_id, "--content", f"The {word} failed twice"], chance)
                if self._command("purge", ["purge", memory_id, "--yes"], chance):
                    self.purged.append(word)
            yield

    def _back_up(self, chance: random.Random) -> Iterator[None]:
        file = self.folder / "backup" / "one.tar.gz"
        file.parent.mkdir()
        while True:
            if self._command("back up", ["backup", "--force", str(file)], chance):
                self._command(
                    "restore", ["--home", str(self.folder / "other"), "restore", "--dry-run", str(file)], chance
                )
            yield

    def _serve(self, chance: random.Random) -> Iterator[None]:
        while True:
            child = self.nursery.start("command", self.folder, "-", "9", "serve", "--port", "0")
            until = time.monotonic() + chance.uniform(5, 20)
            address = None
            while address is None and child.poll() is None and time.monotonic() < until:
                address = re.search(
                    r"http://[\d.]+:\d+", child.errors() + (child.out.read_text("utf-8") if child.out.exists() else "")
                )
                time.sleep(0.05)
            number = 0
            while address and time.monotonic() < until and child.poll() is None:
                number += 1
                text = f"Server {child.pid} says {number}"
                body = json.dumps({"text": text}).encode()
                try:
                    with urlopen(
                        Request(f"{address[0]}/v1/save_observation", body, {"Content-Type": "application/json"}),
                        timeout=PATIENCE_S,
                    ) as answer:
                        assert answer.status == 200
                    self.served.add(text)
                    self.counts["serve", "acknowledged"] += 1
                except URLError as error:
                    said = getattr(error, "read", lambda: b"")().decode()
                    if not REFUSALS.search(said):
                        self.wrong.append(f"serve: {error} {said[-1_000:]}")
                    self.counts["serve", "refused"] += 1
                time.sleep(0.2)
            child.send(signal.SIGKILL)
            child.wait()
            self.counts["serve", "killed"] += 1
            if "Traceback" in child.errors():
                self.wrong.append(child.errors()[-1_500:])
            yield


def check(one: Round) -> None:
    """Check what is left when all are gone."""
    config = memgraph.AgentMemoryConfig(home=one.folder / "store", keys_home=one.folder / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock()) as store:
        found = {memory.id: memory for memory in store.every_memory()}
        merged = {memory.id for memory in found.values()}
        assert one.ledger.added - one.ledger.deleting <= merged, "acknowledged memories are gone"
        assert not one.ledger.deleted & found.keys(), "deleted memories are back"
        texts = {memory.content for memory in found.values()}
        assert one.served <= texts, "what the server acknowledged is gone"
        store.verify(deep=True)
        assert graph_ids(store) == Counter(found.keys())
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest, "replay gives another state"
    assert set(ids_added(config).values()) <= {1}, "a memory was recorded twice"
    for path in (one.folder / "store").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert [word for word in one.purged if word.encode() in content] == [], f"{path.name} holds a purged word"


def test_everything_at_once(tmp_path: Path, nursery: Any, is_long: bool, show: Any) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(15 if is_long else 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        one = Round(nursery, folder, number, 240.0 if is_long else 8.0)
        one.run()
        check(one)
        counts += one.counts
        counts["purge", "words looked for"] += len(one.purged)
    show("Everything at once", ("work", "outcome", "times"), [(*key, times) for key, times in sorted(counts.items())])
    assert counts["write", "acknowledged"] > 0
    assert not is_long or all(counts[name, "done"] for name in (*LOOPS, "purge", "back up", "restore"))
