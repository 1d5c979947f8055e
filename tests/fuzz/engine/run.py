"""Runs random histories on a graph engine, in a process that the engine may take down.

``python -m tests.fuzz.engine.run --engine kuzu --seeds 0:20 --steps 100``; with ``--large`` each history begins with so many
memories that it goes on in a second node group of the engine (131,072 rows): they are made once, and their file is copied.

Prints a line of JSON when a history begins and when it ends.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from memgraph.disk.seal import Seal
from memgraph.errors import GraphError
from memgraph.graph.connection import VENDORS
from memgraph.graph.engine import EmbeddedEngine
from memgraph.graph.rows.writing import BulkLimits
from memgraph.graph.storage.database_file import LogLimits
from memgraph.model.memory import MemoryRecord
from memgraph.ports import Change
from tests.fuzz.engine.compare import differences, differences_around, touched_differences
from tests.fuzz.engine.histories import History, Rows

NODE_GROUP_ROWS = 131_072
_SHORT_OF_GROUP = 40
_REGIONS_MEMORIES = 2_500
"""The engine stores the edges of 1,024 nodes together; every fourth history begins with more nodes than that."""
_FAILING = 0.08
_WHOLE_EVERY = 25
"""In a large history all rows are compared once in so many steps, and those that a step has touched in each."""
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
        template = _template(folder / "template", given.engine) if given.large else None
        for seed in range(first, end):
            _say(seed=seed, begins=True)
            outcome = run(folder / str(seed), given.engine, seed, given.steps, template)
            has_failed |= bool(outcome["found"])
            _say(**outcome)
    sys.exit(has_failed)


def run(folder: Path, engine_name: str, seed: int, steps: int, template: Path | None = None) -> dict[str, Any]:
    """Run one history and return what was found, and after how many steps."""
    chance = Random(f"engine {seed}")
    began = time.monotonic()
    if template is not None:
        shutil.copytree(template, folder)
    engine = EmbeddedEngine(
        folder / "graph",
        _SEAL,
        VENDORS[engine_name],
        idle_s=600.0,
        bulk=BulkLimits(new_rows=chance.choice((100, 400, 3_000)), table_rows=chance.choice((5, 30))),
        log=LogLimits(
            short_bytes=chance.choice((0, 256 << 10)),
            long_bytes=chance.choice((1 << 14, 8 << 20)),
            most_writes=chance.choice((3, 20, 500)),
        ),
    )
    history = History(seed, start=_start_of(seed, is_large=template is not None))
    if template is None and len(history.rows):
        engine.rebuild(history.rows.as_changes(), {"seq": 0})
    found: list[str] = []
    step = 0
    try:
        while step < steps and not found:
            step += 1
            changes = history.step()
            if changes and chance.random() < _FAILING and not _opens_after_failing(engine, changes):
                engine.rebuild(history.rows.as_changes(), {"seq": step})
            elif changes:
                engine.apply(changes, {"seq": step})
            done = _disturb(engine, history, chance, is_large=template is not None)
            if template is not None and step % _WHOLE_EVERY:
                wrong = touched_differences(engine, history.rows, changes)
            else:
                wrong = differences(engine, history.rows)
            touched = {change.key for change in changes if change.table == "Memory"}
            around = chance.sample(sorted(map(str, touched)), min(10, len(touched)))
            wrong = chain(wrong, differences_around(engine, history.rows, around))
            found = [f"after {history.done}, {done}: {one}" for one in islice(wrong, 5)]
            found += [f"after {history.done}, {done}: lost() says {one}" for one in engine.lost() if not found]
    except GraphError as error:
        found = [f"after {history.done}: {error}"]
    finally:
        engine.close()
        shutil.rmtree(folder, ignore_errors=True)
    rows = len(history.rows)
    return {"seed": seed, "steps": step, "rows": rows, "seconds": round(time.monotonic() - began, 1), "found": found}


def _opens_after_failing(engine: EmbeddedEngine, changes: Sequence[Change]) -> bool:
    """Let a write fail when all its rows are written and nothing is committed yet; a COPY has written to the file then."""
    with suppress(TypeError):
        engine.apply(changes, {"seq": 0, "no JSON": object()})
    try:
        engine.state()
    except GraphError:
        return False
    return True


def _disturb(engine: EmbeddedEngine, history: History, chance: Random, *, is_large: bool) -> str:
    """Do to the file what the course of things does now and then."""
    kind = chance.random()
    if kind < 0.2:
        engine.checkpoint()
        return "a checkpoint"
    if kind < 0.35:
        engine.release()
        return "a release"
    if kind < 0.39 and not is_large:
        engine.rebuild(history.rows.as_changes(), {"seq": 1})
        return "a rebuild"
    return "nothing more"


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
        memories[key] = record.model_dump(exclude_unset=True) | {"relevance_anchor": 1.0}
    rows.tables["Memory"] = memories
    return rows


def _template(folder: Path, engine_name: str) -> Path:
    engine = EmbeddedEngine(folder / "graph", _SEAL, VENDORS[engine_name])
    engine.rebuild(_bare_memories(NODE_GROUP_ROWS - _SHORT_OF_GROUP).as_changes(), {"seq": 1})
    engine.close()
    return folder


@contextmanager
def _folder() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="engine-fuzz-", dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def _say(**told: Any) -> None:
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
