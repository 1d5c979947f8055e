"""The measurements that memgraph and its peers share, each a job for a process of its own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.data import SEED, Author
from tests.benchmarks.figures import timed_ms
from tests.benchmarks.machine import resident_mb, size_of
from tests.benchmarks.peers import imported, opened

Result = dict[str, Any]
_SAMPLE = 100
_LONGEST_QUERIES_S = 20.0


def fill(
    name: str, folder: str, size: int, batch: int, singles: int, queries: int, within_s: float
) -> Iterator[Result]:
    """Insert many, then one by one, then query. Stop inserting many at the end of the call that exceeds the time."""
    author, taken, ids = Author(), list[float](), list[str]()
    store = opened(name, Path(folder))
    store.insert(author.memories(1))  # opens files, imports modules
    done = 0
    while done < size and sum(taken) < within_s:
        memories = author.memories(min(batch, size - done))
        start = time.perf_counter()
        ids += store.insert(memories)
        taken.append(time.perf_counter() - start)
        done += len(memories)
    yield {"figure": "bulk", "values": [done / sum(taken)]}
    yield {"spent_s": sum(taken)}
    if done < size:
        yield {
            "note": f"stopped at {done:,} of {size:,} memories after {sum(taken):,.0f} s; the other figures are taken there"
        }
    sample = ids[:: max(1, len(ids) // _SAMPLE)][:_SAMPLE]
    yield {"sample": sample}

    calls = [partial(store.insert, [memory]) for memory in author.memories(singles)]
    yield {"figure": "single", "values": timed_ms(calls, within_s=_LONGEST_QUERIES_S)}
    found = store.query(*author.question(), 10)  # loads what is loaded late
    calls = [partial(store.query, *author.question(), 10) for _ in range(queries)]
    yield {"figure": "query", "values": timed_ms(calls, within_s=_LONGEST_QUERIES_S)}
    if len(found) != 10:
        yield {"note": f"10 memories were asked for, {len(found)} were found"}
    store.close()
    if used := size_of(Path(folder)):
        yield {"figure": "disk", "values": [used / (done + 1 + singles)]}


def reopen(name: str, folder: str) -> Iterator[Result]:
    """Open what was filled, in this new process, and query once; then look for the ids on standard input."""
    imported(name)  # before the clock runs
    question = Author(SEED + 1).question()
    start = time.perf_counter()
    store = opened(name, Path(folder))
    found = store.query(*question, 10)
    seconds = time.perf_counter() - start
    held = resident_mb()
    kept = store.count(json.loads(sys.stdin.readline()))
    store.close()
    if found:
        yield {"figure": "reopen", "values": [seconds]}
        if "now" in held:
            yield {"figure": "resident_now", "values": [held["now"]]}
    yield {"kept": kept}


def insert_on(name: str, folder: str, count: int, first: int) -> Iterator[Result]:
    """Insert one by one, telling each id once it is kept."""
    author = Author(first=first)
    store = opened(name, Path(folder))
    yield {"ready": True}
    sys.stdin.readline()  # until all are ready
    for _ in range(count):
        yield {"id": store.insert([author.memory()])[0]}
    store.close()
    yield {"closed": True}


def count(name: str, folder: str) -> Iterator[Result]:
    """Say how many of the ids on standard input are held."""
    store = opened(name, Path(folder))
    yield {"kept": store.count(json.loads(sys.stdin.readline()))}
    store.close()
