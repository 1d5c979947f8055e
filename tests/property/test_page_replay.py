"""The page's slider, the series and the store as it was tell the same of what was in force, whatever was done with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.testing import FakeClock, FakeEmbedder
from memgraph.viz.page.data import PageData, page_data

FIRST_DAY = 2
ways = st.sampled_from(
    ["suppress", "unsuppress", "archive", "delete_memory", "undelete", "add_anew", "end", "supersede", "supersede"]
)
steps = st.lists(st.tuples(ways, st.integers(0, 3), st.integers(0, 3)), min_size=5, max_size=9)
CHAIN = [
    ("supersede", 0, 1),
    ("supersede", 1, 2),
    ("delete_memory", 2, 0),
    ("suppress", 1, 0),
    ("undelete", 2, 0),
    ("end", 2, 0),
]
Step = tuple[str, int, int]


@contextmanager
def told(taken: list[Step]) -> Iterator[Any]:
    """Yield a store of four memories with which something was done each morning from February 3rd on."""
    with tempfile.TemporaryDirectory(prefix="memgraph-page-") as folder:
        config = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        clock = FakeClock(f"2026-02-0{FIRST_DAY}T09:00:00.000Z")
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
            added = [{"type": "episodic", "content": f"The lamp {number} is on"} for number in range(4)]
            ids = sorted(memory.id for memory in store.insert_memories(added))
            for step in taken:
                clock.advance(days=1)
                take(store, ids, step)
            yield store


def take(store: Any, ids: list[str], step: Step) -> None:
    way, one, other = step[0], ids[step[1]], ids[step[2]]
    if way == "undelete":
        store.undelete(one)
    elif way == "add_anew" and store.get_memory(one) is None:
        store.insert_memory({"type": "episodic", "content": "Quite another lamp", "id": one})
    elif store.get_memory(one) is None or way == "add_anew":
        return
    elif way == "supersede":
        if one < other and store.get_memory(other) is not None:
            store.supersede(one, by=other)
    elif way == "end":
        store.invalidate(one, at="2026-02-08")
    else:
        getattr(store, way)(one)


def in_force(data: PageData, day: int) -> set[str]:
    """Return what the slider shows as in force at the end of a day, read as the page's script reads it."""
    columns = data.document["memories"]
    lives = {place: turns for place, *turns in data.document["lives"]}
    added = np.cumsum(columns["added"]).tolist()
    end = (day - FIRST_DAY + 1) * 86_400 - 9 * 3_600 - 1
    return {
        memory.id
        for place, memory in enumerate(data.memories)
        if sum(turn <= end for turn in lives.get(place, [added[place]])) % 2
    }


def listed(store: Any) -> set[str]:
    mask = store.reader.listed() & ~store.reader.superseded()
    return {store.reader.index.ids.names[slot] for slot in np.flatnonzero(mask)}


@settings(max_examples=2, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(taken=steps)
@example(taken=CHAIN)
@example(taken=[("supersede", 0, 1), ("suppress", 3, 0), ("delete_memory", 1, 0)])
@example(taken=[("supersede", 0, 1), ("delete_memory", 1, 0), ("add_anew", 1, 0)])
def test_slider_series_and_the_past_agree(taken: list[Step]) -> None:
    with told(taken) as store:
        data = page_data(store, include={"suppressed"})
        shown = {memory.id for memory in data.memories}
        live = next(one for one in data.document["series"] if one["name"] == "live_memories")
        counted = {int(point["at"][-2:]): point["count"] for point in live["points"]}
        assert max(counted) == int(data.last[8:10])
        for day, count in counted.items():
            assert len(in_force(data, day)) == count
        assert in_force(data, FIRST_DAY + len(taken)) == listed(store)
        for day in {FIRST_DAY + len(taken) // 2, FIRST_DAY + len(taken) - 1}:
            with store.at(f"2026-02-{day:02}") as past:
                assert in_force(data, day) == listed(past) & shown
        few = page_data(store, include={"suppressed"}, limit=2)  # what replaced them may be off the page
        for day in range(FIRST_DAY, FIRST_DAY + len(taken)):
            assert in_force(few, day) == in_force(data, day) & {memory.id for memory in few.memories}
