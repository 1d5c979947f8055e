"""Laws of state transitions: any sequence of them, seen from any scope, and undone in any order."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

COUNT = 5
few = settings(max_examples=3, database=None, suppress_health_check=[HealthCheck.too_slow])
places = st.integers(0, COUNT - 1)
relations = st.sampled_from(["SUPERSEDES", "SUPPORTS", "CONTRADICTS"])
fields = ["suppress", "unsuppress", "archive", "unarchive", "invalidate", "revalidate"]
ways = st.sampled_from([*fields, *["delete_memory", "undelete"] * 2])
steps = st.lists(
    st.one_of(
        st.tuples(ways, places),
        st.tuples(ways, places),
        st.tuples(st.sampled_from(["link", "unlink"]), places, relations, places),
        st.tuples(st.just("add"), places),
        st.tuples(st.just("access"), places),
    ),
    min_size=4,
    max_size=12,
)


@contextmanager
def stores() -> Iterator[tuple[Any, Any, Any, list[str]]]:
    """Open two stores on one directory with some memories of one session; yield them, their clock, and the ids."""
    with tempfile.TemporaryDirectory(prefix="memgraph-ways-") as folder:
        config = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        clock = FakeClock(start="2026-02-01T09:00:00.000Z")

        def opened() -> memgraph.AgentMemoryStore:
            return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock)

        with opened() as one, opened() as other:
            yield one, other, clock, [added(one) for _ in range(COUNT)]


def added(store: Any) -> str:
    fields = {"type": "episodic", "project_id": "P", "session_id": "s", "tags": ["night"], "outcome": "negative"}
    return str(store.insert_memory({**fields, "content": "An event of the night"}).id)


def take(store: Any, ids: list[str], step: tuple[Any, ...]) -> None:
    """Do one step; a way of a memory that is gone is refused, and that is all that may happen to it."""
    way, chosen = step[0], ids[step[1] % len(ids)]
    try:
        if way == "add":
            ids.append(added(store))
        elif way == "access":
            store.record_access(chosen)
        elif way in {"link", "unlink"}:
            if step[1] != step[3]:
                getattr(store, way)(chosen, step[2], ids[step[3]])
        else:
            getattr(store, way)(chosen)
    except memgraph.NotFoundError:
        assert any(store.get_memory(ids[place]) is None for place in step[1:] if isinstance(place, int))


def view(store: Any) -> dict[str, Any]:
    """Return all that a store shows."""
    store.flush()
    retrieval = memgraph.MemoryRetrieval(store)
    everything = {memory.id: memory for memory in store.every_memory()}
    found = retrieval.search_memories("event of the night", limit=20)
    vector = store.embedder.embed(["An event of the night"])[0]
    duplicate = memgraph.ConsolidationPipeline(store).deduplicate(vector, "episodic")
    states = ("suppressed", "archived", "invalidated", "superseded")
    return {
        "digest": store.digest(),
        "memories": everything,
        "links": {key: sorted(map(repr, store.links(key))) for key in everything},
        "listed": [memory.id for memory in store.get_all_memories()],
        "states": {state: [memory.id for memory in store.list_memories(state=state)] for state in states},
        "recalled": [(one.memory.id, one.score) for one in found],
        "duplicate": duplicate and duplicate.id,
        "counted": store.get_stats().model_dump(exclude={"db_size_bytes"}),
    }


@few
@given(taken=steps, switch=st.integers(3, 6))
def test_rebuilt_incremental_and_another_process_are_one(taken: list[tuple[Any, ...]], switch: int) -> None:
    with stores() as (one, other, clock, ids):
        view(other)  # its index is in memory from here on, and must follow
        for number, step in enumerate(taken):
            clock.advance(minutes=1)
            take(one, ids, step)
            if number % switch == 0:
                one.flush()
                assert [memory.id for memory in other.get_all_memories()] == [
                    memory.id for memory in one.get_all_memories()
                ]
        incremental = view(one)
        assert view(other) == incremental
        one.rebuild()
        assert view(one) == incremental
        one.verify()


@few
@given(
    taken=steps, gone=st.lists(places, min_size=1, max_size=COUNT, unique=True), order=st.randoms(use_true_random=False)
)
def test_deleted_memories_are_restored_unchanged_in_any_order(
    taken: list[tuple[Any, ...]], gone: list[int], order: Any
) -> None:
    with stores() as (one, _, clock, ids):
        for step in taken:
            clock.advance(minutes=1)
            take(one, ids, step)
        for key in ids:
            one.undelete(key)
        before = view(one)
        for place in gone:
            one.delete_memory(ids[place])
        order.shuffle(gone)
        for place in gone:
            one.undelete(ids[place])
        assert view(one) == before


@few
@given(taken=steps)
def test_every_view_obeys_the_table(taken: list[tuple[Any, ...]]) -> None:
    with stores() as (one, _, clock, ids):
        for step in taken:
            clock.advance(minutes=1)
            take(one, ids, step)
        shown, now = view(one), one.now()
        for key in ids:
            memory = shown["memories"].get(key)
            is_valid = memory is not None and (memory.invalid_at is None or memory.invalid_at > now)
            is_listed = is_valid and not memory.is_suppressed and not memory.archived_at
            is_superseded = key in shown["states"]["superseded"]
            assert (key in shown["listed"]) == is_listed
            assert (key in [recalled for recalled, _ in shown["recalled"]]) == (is_listed and not is_superseded)
            if shown["duplicate"] == key:
                assert is_listed
                assert not is_superseded
        counted = [memory for memory in shown["memories"].values() if not memory.archived_at]
        assert shown["counted"]["total"] == len(counted)
        in_force = set(shown["listed"]) - set(shown["states"]["superseded"])
        assert (shown["duplicate"] is not None) == bool(in_force)
