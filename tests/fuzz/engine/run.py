"""Runs random histories on the graph, in a process that the engine may take down.

``python -m tests.fuzz.engine.run --engine kuzu --seeds 0:20 --steps 100``; with ``--large`` each history begins with so many
memories that it goes on in a second node group of the engine (131,072 rows).

A copy of a base follows each step; every cell, and every edge in both directions, is compared with a dictionary now and then. Prints a
line of JSON when a history begins and when it ends.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from memgraph.disk.seal import Seal
from memgraph.errors import GraphError
from memgraph.graph.copy import VENDORS, GraphCopy, QueryLimits
from memgraph.model.memory import MemoryRecord
from tests.engines import Snapshots
from tests.fuzz.engine.compare import differences, differences_around
from tests.fuzz.engine.histories import History, Rows

NODE_GROUP_ROWS = 131_072
_SHORT_OF_GROUP = 40
_REGIONS_MEMORIES = 2_500
"""The engine stores the edges of 1,024 nodes together; every fourth history begins with more nodes than that."""
_EVERY = 50
_SEAL = Seal(b"f" * 32)
_NOW = "2026-01-01T00:00:00.000Z"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="kuzu", choices=sorted(VENDORS))
    parser.add_argument("--seeds", default="0:10", help="FIRST:END")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    first, end = map(int, given.seeds.split(":"))
    has_failed = False
    with _folder() as folder:
        for seed in range(first, end):
            _say(seed=seed, begins=True)
            outcome = run(folder / str(seed), given.engine, seed, given.steps, is_large=given.large)
            has_failed |= bool(outcome["found"])
            _say(**outcome)
    sys.exit(has_failed)


class _Failures(logging.Handler):
    """Counts how often the engine refused a copy, and the graph was written anew."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.total = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.total += "written anew" in record.getMessage()


def run(folder: Path, engine_name: str, seed: int, steps: int, *, is_large: bool = False) -> dict[str, Any]:
    """Run one history and return what was found, and after how many steps."""
    chance = Random(f"engine {seed}")
    began = time.monotonic()
    history = History(seed, start=_start_of(seed, is_large=is_large))
    source = Snapshots()
    source.take(history.rows.as_changes())
    limits = QueryLimits(timeout_s=600.0, rows=1_000_000, changes=chance.choice((300, 2_000, 10_000)))
    graph = GraphCopy(folder / "graph", VENDORS[engine_name], _SEAL, source.snapshot, limits=limits)
    every = chance.choice((10, _EVERY, _EVERY))
    failures = _Failures()
    logging.getLogger("memgraph.graph").addHandler(failures)
    found: list[str] = []
    step = bases = 0
    base: list[str] = []
    touched: set[str] = set()
    try:
        while step < steps and not found:
            step += 1
            changes = history.step()
            source.take(changes)
            touched |= {str(change.key) for change in changes if change.table == "Memory"}
            graph.query("RETURN 1 AS x", {})
            found_bases = sorted(path.name for path in (folder / "graph").glob("base-*"))
            bases += found_bases != base
            base = found_bases
            if step % every == 0 or step % _EVERY == 0 or step == steps:
                around = differences_around(graph, history.rows, chance.sample(sorted(touched), min(10, len(touched))))
                found = [
                    f"after {history.done}: {one}" for one in islice(chain(differences(graph, history.rows), around), 5)
                ]
                touched.clear()
            if chance.random() < 0.01:
                graph.write_base()
    except GraphError as error:
        found = [f"after {history.done}: {error}"]
    finally:
        logging.getLogger("memgraph.graph").removeHandler(failures)
        graph.close()
        shutil.rmtree(folder, ignore_errors=True)
    seconds = round(time.monotonic() - began, 1)
    return {
        "seed": seed,
        "steps": step,
        "rows": len(history.rows),
        "bases": bases,
        "failures": failures.total,
        "seconds": seconds,
        "found": found,
    }


def _start_of(seed: int, *, is_large: bool) -> Rows | None:
    """Return rows of so many memories that the next ones begin a second node group, or of a few regions, or none."""
    if is_large:
        return _bare_memories(NODE_GROUP_ROWS - _SHORT_OF_GROUP)
    return _bare_memories(_REGIONS_MEMORIES) if seed % 4 == 3 else None


def _bare_memories(count: int) -> Rows:
    rows = Rows()
    memories: dict[Any, Any] = {}
    for number in range(count):
        key = f"00000000-0000-4000-8000-{number:012x}"
        record = MemoryRecord.model_construct(
            id=key, type="episodic", content=f"memory {number}", title=f"title {number}", created_at=_NOW, updated_at=_NOW,
            occurred_at=_NOW, relevance_at=_NOW,
        )  # fmt: skip
        memories[key] = record.model_dump(exclude_unset=True) | {"relevance_anchor": 1.0, "seq": 1}
    rows.tables["Memory"] = memories
    return rows


@contextmanager
def _folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="engine-fuzz-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def _say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
