"""A writer is killed at random moments: what it acknowledged is there, once, and nothing is half there."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

DIMENSION = 16
LONGEST_LIFE_S = 0.3

CHILD = """
import random, sys
from pathlib import Path
import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

folder, seed = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
store = memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock())
print("ready", flush=True)
mine = []

def memory(number):
    return {
        "type": "episodic", "content": f"round {seed}, memory {number}: the build failed in login.py", "project_id": "P",
        "tags": [f"t{number % 5}", "auth"], "agents_involved": ["MARS"], "session_id": f"s{seed}",
    }

number = 0
while True:
    number += 1
    step = chance.random()
    if step < 0.08:
        made = [one.id for one in store.insert_memories([memory(number * 100 + part) for part in range(60)])]
    else:
        made = [store.insert_memory(memory(number)).id]
    print("added", *made, flush=True)
    mine += made
    if step > 0.7:
        store.record_access(chance.choice(mine))
    if step > 0.85:
        changed = chance.choice(mine)
        store.update_memory(changed, title=f"changed in round {seed}")
        print("changed", changed, seed, flush=True)
    if step > 0.95:
        gone = mine.pop(chance.randrange(len(mine)))
        print("deleting", gone, flush=True)
        store.delete_memory(gone)
        print("deleted", gone, flush=True)
"""


class Ledger:
    """What the killed writers said that they had done."""

    def __init__(self) -> None:
        self.added: set[str] = set()
        self.changed: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.deleting: set[str] = set()

    def read(self, lines: list[str]) -> None:
        for line in lines:
            if not line.endswith("\n"):
                continue  # cut short by the kill
            word, *rest = line.split()
            if word == "added":
                self.added.update(rest)
            elif word == "changed":
                self.changed[rest[0]] = f"changed in round {rest[1]}"
            elif word in {"deleting", "deleted"}:
                getattr(self, word).add(rest[0])


def live_and_die(folder: Path, seed: int, chance: random.Random) -> list[str]:
    """Start a writer, kill it some time after it is ready, and return what it printed."""
    command = [sys.executable, "-c", CHILD, str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        first = writer.stdout.readline()
        assert first == "ready\n", writer.stderr.read()
        with pytest.raises(subprocess.TimeoutExpired):  # it runs until it is killed
            writer.wait(chance.uniform(0, LONGEST_LIFE_S))
        writer.kill()
        return writer.stdout.readlines()


def ids_added(home: Path) -> Counter[str]:
    lines = [line for path in sorted((home / "journal").glob("*.jsonl")) for line in path.read_bytes().splitlines()]
    events = [json.loads(line) for line in lines]
    return Counter(event["payload"]["memory"]["id"] for event in events if event["head"]["type"] == "memory.added")


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return 300 if request.config.getoption("--long") else 20


def test_no_acknowledged_write_is_lost_or_doubled(tmp_path: Path, rounds: int) -> None:
    chance, ledger = random.Random(20260201), Ledger()
    folder = tmp_path / "first"
    config: Any = None
    for turn in range(rounds):
        if turn % 10 == 0:  # a new store now and then, so that late rounds cost what early ones do
            folder, ledger = tmp_path / f"store{turn}", Ledger()
            folder.mkdir()
            config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        ledger.read(live_and_die(folder, turn, chance))
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock()) as store:
            found = {memory.id: memory for memory in store.every_memory()}
            assert ledger.added - ledger.deleting <= found.keys(), f"round {turn}: acknowledged memories are gone"
            assert not ledger.deleted & found.keys(), f"round {turn}: deleted memories are back"
            for memory_id, title in ledger.changed.items():
                assert memory_id not in found or found[memory_id].title == title, f"round {turn}: a change is gone"
            rows = store.cypher("MATCH (m:Memory) RETURN m.id AS id")
            assert Counter(row["id"] for row in rows) == Counter(found.keys())
            digest = store.digest()
            if turn % 5 == 4 or turn == rounds - 1:
                store.verify()
                store.rebuild()
                assert store.digest() == digest, f"round {turn}: replay gives another state"
                assert {memory.id for memory in store.every_memory()} == found.keys()
        assert set(ids_added(folder / "store").values()) <= {1}, f"round {turn}: a memory was recorded twice"
    assert ledger.added
