"""A replay from a baseline gives what a replay of all events gives, wherever the baseline is, and also over an earlier one.

What is left of events after the retention days gives the same state and the same charts as all of them, at the same times.
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
from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.fold.event_time import Moments
from memgraph.fold.history import history_of
from memgraph.store.compaction import compact
from memgraph.store.opening import open_store_journal
from memgraph.store.projection.replayed_rows import replayed
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


def replayed_in_full(
    config: memgraph.AgentMemoryConfig, until: int
) -> tuple[dict[tuple[str, Any], Any], list[tuple[int, str]], Any]:
    """Return what all events up to one give: the rows, when each happened, and their history without tags of deleted memories."""
    journal = open_store_journal(config, None, lambda: "2026-09-01T00:00:00.000Z")
    workspace, moments, times, events = Workspace(EmptyRows()), Moments(), list[tuple[int, str]](), []
    for commit in journal.replay(journal.start):
        times += zip((event.seq for event in commit.events), moments.of(commit.events), strict=True)
        for event in commit.events:
            fold(workspace, event)
            events.append(event)
    read = history_of(event for event in events if event.seq <= until)
    for life in read.lives.values():
        life.tags = () if life.is_deleted else life.tags
    rows = {(one.table, one.key): one.new for one in workspace.changes() if one.new is not None}
    return rows, [one for one in times if one[0] <= until], read


@settings(max_examples=5, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=st.lists(steps, min_size=10, max_size=22), days=st.lists(st.integers(1, 12), min_size=1, max_size=2))
def test_what_is_left_of_events_gives_what_all_events_give(
    history: list[tuple[str, int, int]], days: list[int]
) -> None:
    with tempfile.TemporaryDirectory(prefix="memgraph-retention-") as folder:
        config, clock = grown(folder, history)
        end = open_store_journal(config, None, lambda: "2026-09-01T00:00:00.000Z").tail.seq
        before = replayed_in_full(config, end)
        for most in sorted(days, reverse=True):
            kept = config.model_copy(update={"archive_retention_days": most})
            compact(kept, before=clock() + timedelta(days=1), clock=clock)
            assert replayed_in_full(config, end) == before


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
