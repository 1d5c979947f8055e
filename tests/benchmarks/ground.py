"""What a store costs on the way from a call to the disk and back: one table, wall and CPU time side by side.

    python tests/benchmarks/ground.py [--memories 10000] [--singles 100] [--json]

A loaded machine changes wall times far more than CPU times: run two versions in turn, and compare both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemoryRetrieval
from tests.benchmarks.data import SEED, Author, Clock, GivenVectors

BATCH = 5_000
Times = tuple[float, float]


def opened(folder: Path, embedder: GivenVectors) -> AgentMemoryStore:
    """Open the store of a run, with every setting at its default."""
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return AgentMemoryStore(config, embedder=embedder, clock=Clock())


def timed(call: Callable[[], Any]) -> Times:
    """Return the wall and CPU seconds of a call; those of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def median(times: list[Times]) -> Times:
    return statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times)


def less(one: Times, other: Times) -> Times:
    return one[0] - other[0], one[1] - other[1]


def asker(embedder: GivenVectors, seed: int) -> Callable[[], str]:
    """Return what makes questions that the embedder knows."""
    author = Author(SEED + seed)

    def ask() -> str:
        text, vector = author.question()
        embedder.vectors[text] = vector
        return text

    return ask


def measured(folder: Path, size: int, singles: int) -> dict[str, Any]:
    """Fill a store, use it, open it again, and return the figures by name: (wall, CPU) in ms, or one number."""
    embedder, author, figures = GivenVectors(), Author(), dict[str, Any]()
    ask = asker(embedder, 3)

    def in_ms(name: str, times: Times) -> None:
        figures[name] = [1_000 * one for one in times]

    with opened(folder, embedder) as store:
        store.insert_memory(author.memory())
        MemoryRetrieval(store).search_memories(ask())
        bulk = []
        for done in range(0, size, BATCH):
            some = author.memories(min(BATCH, size - done))
            bulk.append(timed(partial(store.insert_memories, some)))
        figures["bulk inserts/s"] = [size / sum(wall for wall, _ in bulk), size / sum(cpu for _, cpu in bulk)]
    figures["bytes a memory"] = sum(one.stat().st_blocks * 512 for one in (folder / "store").rglob("*")) / size
    with opened(folder, embedder) as store:
        retrieval = MemoryRetrieval(store)

        def search() -> Times:
            text = ask()
            return timed(lambda: retrieval.search_memories(text, limit=10))

        for _ in range(10):
            search()
        store.insert_memory(author.memory())
        store.flush()
        in_ms(
            "one durable insert", median([timed(lambda: store.insert_memory(author.memory())) for _ in range(singles)])
        )
        in_ms("search_memories", median([search() for _ in range(singles)]))
        pairs = []
        for _ in range(singles):
            before = search()
            store.insert_memory(author.memory())
            pairs.append(less(search(), before))
        in_ms("next recall after an insert, more", median(pairs))

        def retrieve(count: int) -> Times:
            texts = [ask() for _ in range(count)]
            return timed(lambda: ([retrieval.retrieve({"task_description": text}) for text in texts], store.flush()))

        def unrecorded(count: int) -> Times:
            with patch.object(type(store), "record_retrieval", lambda *_args, **_options: None):
                return retrieve(count)

        retrieve(5)
        pairs = [(unrecorded(singles // 4), retrieve(singles // 4)) for _ in range(4)]
        plain, more = median([one for one, _ in pairs]), median([less(other, one) for one, other in pairs])
        in_ms("retrieve, unrecorded", (plain[0] / (singles // 4), plain[1] / (singles // 4)))
        figures["access records, % of it"] = [100 * one / other for one, other in zip(more, plain, strict=True)]
        in_ms("found by another process", median(_seen(folder, store, author, max(5, singles // 10))))
        events = sum(1 for _ in store.reader.events_after(0))
        figures["rebuild events/s"] = [events / one for one in timed(store.rebuild)]
    in_ms("open to first recall", median([_first_recall(folder) for _ in range(3)]))
    return figures


def _child(folder: Path, what: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, "--child", what, "--folder", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _first_recall(folder: Path) -> Times:
    child = _child(folder, "open")
    wall, cpu = json.loads(child.communicate(timeout=600)[0])
    return wall, cpu


def _seen(folder: Path, store: AgentMemoryStore, author: Author, count: int) -> list[Times]:
    """Return what a search of another process takes after each insert of this one."""
    child, found = _child(folder, "seen"), []
    assert child.stdin
    assert child.stdout
    for _ in range(count + 3):
        store.insert_memory(author.memory())
        child.stdin.write("again\n")
        child.stdin.flush()
        found.append(tuple(json.loads(child.stdout.readline())))
    child.communicate(timeout=60)
    return found[3:]


def _as_child(folder: Path, what: str) -> None:
    embedder = GivenVectors()
    text = asker(embedder, 5)()
    if what == "open":
        stores: list[AgentMemoryStore] = []

        def first() -> None:
            stores.append(opened(folder, embedder))
            MemoryRetrieval(stores[0]).search_memories(text)

        print(json.dumps(timed(first)))
        stores[0].close()
        return
    with opened(folder, embedder) as store:
        retrieval = MemoryRetrieval(store)
        retrieval.search_memories(text)
        for _ in sys.stdin:
            late = timed(lambda: retrieval.search_memories(text))
            print(
                json.dumps(less(late, median([timed(lambda: retrieval.search_memories(text)) for _ in range(5)]))),
                flush=True,
            )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--singles", type=int, default=100, help="repeats of each single call")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _as_child(given.folder, given.child)
        return 0
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as temporary:
        figures = measured(Path(temporary), given.memories, given.singles)
    if given.json:
        print(json.dumps(figures))
        return 0
    print(f"{given.memories:,} memories; times in ms{'wall':>18}{'CPU':>10}")
    for name, values in figures.items():
        print(f"{name:36}" + "".join(f"{one:10,.1f}" for one in (values if isinstance(values, list) else [values])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
