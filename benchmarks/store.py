"""How fast a store writes, reads, rebuilds and opens. Run it alone on an idle machine:

    python benchmarks/store.py [--memories 10000] [--repeats 5] [--json]

Data are made from a seed, vectors are given (no model runs), everything happens in a temporary directory. Each figure is
the median of several measurements, unless it names a percentile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.testing import FakeEmbedder

DIMENSION = 384
SEED = 20260201
COMPONENTS = ("auth", "billing", "search", "deploy", "database", "cache", "queue", "frontend", "mobile", "docs")
AGENTS = ("MARS", "VENUS", "JUPITER", "SATURN")
FAILURES = (
    "timed out",
    "was refused",
    "returned HTTP 500",
    "raised ConnectionError",
    "leaked a lock",
    "lost its session",
)
FIXES = (
    "retried with a back-off",
    "pinned the version",
    "raised the timeout",
    "rolled the migration back",
    "added an index",
)


class Author:
    """Makes memories like those of a build: two sentences, three tags, three entities, two agents."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._vectors = np.random.default_rng(seed)
        self._number = 0

    def memory(self) -> dict[str, Any]:
        self._number += 1
        chance, number = self._chance, self._number
        component, other = chance.sample(COMPONENTS, 2)
        file = f"src/{component}/{chance.choice(('service', 'client', 'model', 'views'))}.py"
        agents = chance.sample(AGENTS, 2)
        failure, fix = chance.choice(FAILURES), chance.choice(FIXES)
        return {
            "type": "episodic",
            "content": (
                f"While {agents[0]} worked on {component} in build {number // 20}, the call to {other} {failure} after "
                f"{chance.randrange(1, 900)} ms. {agents[1]} {fix} in {file} and the tests of {component} passed again."
            ),
            "outcome": chance.choice(("positive", "negative", "neutral")),
            "project_id": f"project-{number % 5}",
            "build_id": f"build-{number // 20}",
            "session_id": f"session-{number // 50}",
            "tags": [component, other, chance.choice(("fix", "incident", "retry", "migration"))],
            "agents_involved": agents,
            "entities": [
                {"name": file, "kind": "file", "about": True},
                {"name": f"{component}_client_{chance.randrange(300)}", "kind": "symbol"},
                {"name": "ConnectionError", "kind": "error"},
            ],
            "embedding": self._vectors.standard_normal(DIMENSION).astype(np.float32),
        }

    def memories(self, count: int) -> list[dict[str, Any]]:
        return [self.memory() for _ in range(count)]


class Clock:
    """A clock that moves a second at each look, the same in every run."""

    def __init__(self) -> None:
        self._now = datetime(2026, 2, 1, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


def opened(folder: Path) -> AgentMemoryStore:
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=Clock())


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def percentile(seconds: list[float], share: float) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[round(share * 100) - 1]


def figures(memories: int, repeats: int, singles: int) -> Iterator[tuple[str, float, str]]:
    """Yield (what, figure, unit) as they are measured."""
    author = Author(SEED)
    rates = []
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as temporary:
        for run in range(repeats):
            folder = Path(temporary) / f"run{run}"
            batch = author.memories(memories)
            with opened(folder) as store:
                store.insert_memory(author.memory())  # opens files, imports modules
                rates.append(memories / timed(lambda store=store, batch=batch: store.insert_memories(batch)))
        yield f"bulk insert of {memories:,}", statistics.median(rates), "memories/s"

        with opened(folder) as store:
            ids = [memory.id for memory in store.get_all_memories()]
            singly = [timed(lambda store=store, one=one: store.insert_memory(one)) for one in author.memories(singles)]
            yield f"commit of one memory at {memories:,}, p50", 1e3 * percentile(singly, 0.50), "ms"
            yield f"commit of one memory at {memories:,}, p95", 1e3 * percentile(singly, 0.95), "ms"
        with opened(folder) as store:  # anew, so that no row is in memory
            wanted = random.Random(SEED).sample(ids, min(500, len(ids)))
            store.get_memory(wanted.pop())
            for times in ("first time", "again"):
                reads = [timed(lambda store=store, one=one: store.get_memory(one)) for one in wanted]
                yield f"get by id, {times}, p50", 1e3 * percentile(reads, 0.50), "ms"
                yield f"get by id, {times}, p95", 1e3 * percentile(reads, 0.95), "ms"
            events = store.verify()
            rebuilds = [events / timed(store.rebuild) for _ in range(repeats)]
            yield f"rebuild of {events:,} events", statistics.median(rebuilds), "events/s"

        def reopen() -> None:
            with opened(folder) as store:
                store.get_memory(ids[0])

        yield "reopen, get one, close", 1e3 * statistics.median(timed(reopen) for _ in range(max(5, repeats))), "ms"

        def reopen_and_list() -> None:
            with opened(folder) as store:
                store.list_memories(limit=10)

        yield (
            "reopen, list ten, close",
            1e3 * statistics.median(timed(reopen_and_list) for _ in range(max(5, repeats))),
            "ms",
        )
        size = sum(path.stat().st_size for path in (folder / "store").rglob("*") if path.is_file())
        yield "size on disk", size / events / 1e3, "kB/event"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memories", type=int, default=10_000, help="memories in a bulk insert (default 10,000)")
    parser.add_argument("--singles", type=int, default=200, help="single commits measured (default 200)")
    parser.add_argument("--repeats", type=int, default=5, help="runs that a median is taken over (default 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    if min(given.memories, given.repeats) < 1 or given.singles < 2:
        parser.error("--memories and --repeats must be at least 1, --singles at least 2")
    load = os.getloadavg()[0]
    results = []
    for what, figure, unit in figures(given.memories, given.repeats, given.singles):
        results.append({"what": what, "figure": round(figure, 3), "unit": unit})
        if not given.json:
            print(f"{what:<45}{figure:>12,.2f}  {unit}", flush=True)
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "load_at_start": round(load, 2)}
    if given.json:
        print(json.dumps({"machine": machine, "settings": vars(given), "results": results}, indent=2))
    else:
        print(f"Python {machine['python']}, {machine['cores']} cores, load at start {machine['load_at_start']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
