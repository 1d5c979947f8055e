"""A replay from a baseline gives what a replay of all events gives, wherever the baseline is, and also over an earlier one.

A retention changes no memory that exists, no link between such, no task and no pin, and a replay of what it leaves gives what is stored.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph import MemGraph
from memgraph.errors import MemGraphError
from memgraph.store.compaction import compact
from memgraph.store.opening import open_store_journal
from memgraph.store.replayed import replayed
from memgraph.testing import FakeClock, FakeEmbedder

WORDS = ("login", "deploy", "cache", "clock", "queue")
steps = st.tuples(
    st.sampled_from(
        ["insert", "insert", "insert", "update", "link", "delete", "undelete", "use", "archive", "invalidate", "task", "close", "pin", "derive", "purge", "reset"]
    ),
    st.integers(0, 4),
    st.integers(0, 4),
)  # fmt: skip
histories = st.lists(steps, min_size=6, max_size=16)
moments = st.lists(st.integers(0, 20), min_size=2, max_size=4).map(sorted)


def take(memory: MemGraph, ids: list[str], step: tuple[str, int, int]) -> None:
    """Do one thing; what is impossible just now is refused."""
    what, one, other = step
    store = memory.store
    first, second = ids[one % len(ids)], ids[other % len(ids)]
    context = {"project_id": f"P{one % 2}", "tags": [WORDS[other], "shared"], "session_id": f"s{one}"}
    doings: dict[str, Callable[[], object]] = {
        "insert": lambda: ids.append(store.insert_memory({"type": "episodic", "content": f"The {WORDS[one]} failed", **context}).id),
        "derive": lambda: ids.append(store.insert_memory({"type": "semantic", "content": f"A {WORDS[one]} fails", "supporting_memory_ids": [first, second]}).id),
        "update": lambda: store.update_memory(first, content=f"The {WORDS[other]} was slow", tags=[WORDS[one]]),
        "link": lambda: store.link(first, "SUPERSEDES", second, score=0.5, reason="newer"),
        "delete": lambda: store.delete_memory(first),
        "undelete": lambda: store.undelete(first),
        "use": lambda: (store.record_access(first), store.flush()),
        "archive": lambda: store.archive(first, reason="old"),
        "invalidate": lambda: store.invalidate(first, reason="over"),
        "task": lambda: memory.tasks.upsert(f"Task {other}", task_id=f"task-{one}"),
        "close": lambda: memory.tasks.set_status(f"task-{one}", "closed"),
        "pin": lambda: memory.tasks.pins.upsert(f"Never touch {WORDS[one]}"),
        "purge": lambda: store.purge([first]),
        "reset": lambda: store.reset("memory"),
    }  # fmt: skip
    try:
        doings[what]()
    except (MemGraphError, IndexError):
        return


def state(config: memgraph.AgentMemoryConfig) -> tuple[dict[tuple[str, Any], Any], Any]:
    """Return all rows as a rebuild makes them, and what it says about them."""
    journal = open_store_journal(config, None, lambda: "2026-09-01T00:00:00.000Z")
    changes, projection = replayed(journal, journal.tail.seq)
    return {(one.table, one.key): one.new for one in changes if one.new is not None}, projection


def grown(folder: str, history: list[tuple[str, int, int]]) -> tuple[memgraph.AgentMemoryConfig, FakeClock]:
    """Make a store with a history of one step a day."""
    config = memgraph.AgentMemoryConfig(home=Path(folder, "store"), keys_home=Path(folder, "keys"))
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
        memory = MemGraph(store)
        ids = [memory.store.insert_memory({"type": "episodic", "content": "It began"}).id]
        for step in history:
            clock.advance(days=1)
            take(memory, ids, step)
    return config, clock


def answers(config: memgraph.AgentMemoryConfig, clock: FakeClock) -> dict[str, Any]:
    """Return what a user finds: memories, links, tasks, pins and lives; the store is what a replay gives."""
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
        memory = MemGraph(store)
        store.verify(deep=True)
        existing = {one.id: one for one in store.every_memory()}
        return {
            "memories": {key: one.model_dump(exclude={"embedding", "previous_id"}) for key, one in existing.items()},
            "vectors": {key: one.embedding.tobytes() for key, one in existing.items()},
            "links": sorted(map(repr, store.every_link())),
            "tasks": [one.model_dump() for one in memory.tasks.list()],
            "pins": [one.model_dump() for one in memory.tasks.pins.list()],
            "lives": {key: [repr(one) for one in memory.curation.history(key)] for key in existing},
        }


@settings(max_examples=5, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=st.lists(steps, min_size=10, max_size=22), days=st.lists(st.integers(1, 12), min_size=1, max_size=2))
def test_a_retention_changes_nothing_that_exists(history: list[tuple[str, int, int]], days: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="memgraph-retention-") as folder:
        config, clock = grown(folder, history)
        before = answers(config, clock)
        for most in sorted(days, reverse=True):
            kept = config.model_copy(update={"archive_retention_days": most})
            compact(kept, before=clock() + timedelta(days=1), clock=clock)
            assert answers(config, clock) == before


@settings(max_examples=5, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=histories, days=moments)
def test_baseline_and_tail_give_what_all_events_give(history: list[tuple[str, int, int]], days: list[int]) -> None:
    with tempfile.TemporaryDirectory(prefix="memgraph-baseline-") as folder:
        config, clock = grown(folder, history)
        rows, projection = state(config)
        begin = clock() - timedelta(days=len(history))
        for day in days:
            done = compact(config, before=begin + timedelta(days=min(day, len(history)), seconds=1), clock=clock)
            assert done.seq > 0
            again, projected = state(config)
            assert again == rows
            assert projected == projection
