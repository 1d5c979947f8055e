"""What a fresh process pays before its first recall. It imports what a user would, and not before the clock runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def measure(folder: str) -> Iterator[dict[str, Any]]:
    """Import, open, recall once; then say what the process holds."""
    started = time.perf_counter()
    from memgraph import AgentMemoryConfig, AgentMemoryStore, MemoryRetrieval

    imported = time.perf_counter()
    from tests.benchmarks.data import SEED, Author, GivenVectors
    from tests.benchmarks.machine import resident_mb

    embedder, (text, vector) = GivenVectors(), Author(SEED + 3).question()
    embedder.vectors[text] = vector
    config = AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")

    opening = time.perf_counter()
    with AgentMemoryStore(config, embedder=embedder) as store:
        opened = time.perf_counter()
        found = MemoryRetrieval(store).search_memories(text)
        recalled = time.perf_counter()
        held = resident_mb()
    if len(found) != 10:
        raise RuntimeError(f"10 memories were asked for, {len(found)} were found")
    figures = {
        "imports": imported - started,
        "open": opened - opening,
        "first_recall": recalled - opened,
        "open_to_recall": recalled - opening,
        **{f"resident_{name}": value for name, value in held.items()},
    }
    for name, value in figures.items():
        yield {"figure": name, "values": [value]}
