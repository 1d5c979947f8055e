"""What compression costs: made-up episodes with tags of a Zipf vocabulary, each size in a process of its own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from memgraph import MemGraph
from memgraph.lifecycle.lessons import compress
from memgraph.testing import FakeEmbedder
from tests.benchmarks import child
from tests.benchmarks.data import AGENTS, DIMENSION, SEED, Memory
from tests.benchmarks.machine import resident_mb
from tests.benchmarks.tables import table

_TAGS = 2_000
_EXPONENT = 1.07
_CALL = 10_000
_LATER = 100
_EPISODES_A_BUILD = 5
_JOB = "tests.benchmarks.learning_scale:measured"
_LONGEST_S = 3_600.0
Record = dict[str, Any]


class Experience:
    """Makes episodes of one project: two to six tags of 2,000, the n-th as frequent as n^-1.07, five episodes to a build."""

    def __init__(self, seed: int = SEED) -> None:
        self._chance = np.random.default_rng(seed)
        share = np.arange(1, _TAGS + 1) ** -_EXPONENT
        self._share = share / share.sum()
        self._number = 0

    def episodes(self, count: int) -> list[Memory]:
        """Make so many."""
        return [self._episode() for _ in range(count)]

    def _episode(self) -> Memory:
        chance, number = self._chance, self._number
        self._number += 1
        tags = sorted({*chance.choice(_TAGS, size=chance.integers(2, 7), p=self._share).tolist()})
        queue = "".join(chr(ord("a") + int(digit)) for digit in str(tags[0]))  # a word: numbers state nothing
        return {
            "type": "episodic",
            "id": str(uuid5(NAMESPACE_URL, f"episode {number}")),  # communities follow the order of ids
            "content": f"Step {number} by {AGENTS[number % len(AGENTS)]} failed because the queue {queue} was full for {number % 97} s.",
            "tags": [f"t{tag}" for tag in tags],
            "outcome": "negative",
            "project_id": "scale",
            "build_id": f"build-{number // _EPISODES_A_BUILD}",
            "embedding": chance.standard_normal(DIMENSION).astype(np.float32),
        }


def measured(count: int, folder: str) -> Iterator[Record]:
    """Fill a store and compress it three times: all, nothing new, a hundred new ones. A job for a process of its own."""
    made = Experience()
    embedder = FakeEmbedder(DIMENSION)
    with MemGraph.open(Path(folder) / "store", keys_home=Path(folder) / "keys", embedder=embedder) as graph:
        for first in range(0, count, _CALL):
            graph.store.insert_memories(made.episodes(min(_CALL, count - first)))
        before = resident_mb()
        first_run = _run(graph)
        held = resident_mb()
        digest = graph.store.digest()
        again = _run(graph)
        is_same = graph.store.digest() == digest
        graph.store.insert_memories(made.episodes(_LATER))
        later = _run(graph)
    yield {
        "episodes": count,
        "first": first_run,
        "again": again,
        "again_changed_nothing": is_same,
        "hundred_more": later,
        "peak_mb": held["peak"],
        "peak_before_mb": before["peak"],
    }


def _run(graph: MemGraph) -> Record:
    started, used = time.perf_counter(), time.process_time()
    result = compress(graph.store, embedder=graph.store.embedder)
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - used,
        "created": result.compressed,
        "updated": result.updated,
        "superseded": result.superseded,
    }


def measure(sizes: Sequence[int], say: Callable[[str], None]) -> list[Record]:
    """Measure each size, print a table and the ratio of costs between the two largest."""
    found = []
    for count in sizes:
        with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder:
            home = Path(folder)
            found += child.run(_JOB, home / "home", timeout_s=_LONGEST_S, count=count, folder=folder)
    rows = [
        [
            f"{one['episodes']:,}",
            f"{one['first']['seconds']:.1f} ({one['first']['cpu_seconds']:.1f})",
            f"{1_000 * one['first']['seconds'] / one['episodes']:.2f}",
            f"{one['first']['created']:,}",
            f"{one['peak_mb']:,.0f} ({one['peak_before_mb']:,.0f})",
            f"{one['again']['seconds']:.2f}{'' if one['again_changed_nothing'] else ', CHANGED'}",
            f"{one['hundred_more']['seconds']:.1f}",
        ]
        for one in found
    ]
    say("")
    heads = ["episodes", "compress, s (of processor)", "s per 1,000", "made", "peak, MB (before)", "again, s"]
    for line in table([*heads, "a hundred more, s"], rows):
        say(line)
    if len(found) > 1:
        less, more = found[-2], found[-1]
        cost = more["first"]["cpu_seconds"] / less["first"]["cpu_seconds"]
        say(f"cost grows {cost / (more['episodes'] / less['episodes']):.2f} times as fast as the input")
    return found
