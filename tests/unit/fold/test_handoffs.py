"""Ledgers and handoffs in the fold: an event that does not fit the state, as only a foreign writer could commit it, changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.fold.tasks import HANDOFF, LEDGER, ledger_key, task_key
from memgraph.model.events.memories import MemoryDeleted
from memgraph.model.events.tasks import (
    HandoffAccepted,
    HandoffCreated,
    HandoffWithdrawn,
    LedgerCheckpointed,
    TaskCreated,
)
from memgraph.model.ids import natural_id
from tests.unit.fold.test_tasks import commit  # noqa: F401 - a fixture

ONE, MISSING = natural_id("test", "one"), natural_id("test", "missing")
Commit = Callable[..., list[Any]]


@pytest.fixture
def handed(commit: Commit) -> Commit:  # noqa: F811 - the fixture
    commit("a", TaskCreated(title="A"), HandoffCreated(id=ONE, from_agent="x", to_agent="y", what_was_done="Done"))
    commit("b", TaskCreated(title="B"))
    return commit


def tables(changes: list[Any]) -> set[str]:
    return {one.table for one in changes} - {"Task"}


def test_what_does_not_fit_changes_nothing(state: Any, handed: Commit) -> None:
    before = dict(state.get(HANDOFF, ONE))
    for task_id, event in (
        ("b", HandoffAccepted(id=ONE, agent="y")), ("a", HandoffAccepted(id=ONE, agent="z")), ("a", HandoffAccepted(id=ONE, agent="x")),
        ("a", HandoffAccepted(id=MISSING, agent="y")), ("b", HandoffWithdrawn(id=ONE)), ("c", HandoffCreated(id=MISSING, from_agent="x", what_was_done="x")),
        ("b", HandoffCreated(id=ONE, from_agent="q", what_was_done="Other")),
    ):  # fmt: skip
        assert tables(handed(task_id, event)) == set(), event
    assert state.get(HANDOFF, ONE) == before
    assert tables(handed("a", HandoffAccepted(id=ONE, agent="y"))) == {HANDOFF, "ACCEPTED_BY"}
    assert tables(handed("a", HandoffWithdrawn(id=ONE))) == set()
    assert state.get(HANDOFF, ONE)["state"] == "accepted"


def test_a_ledger_names_only_what_exists(state: Any, handed: Commit) -> None:
    event = LedgerCheckpointed(agent="x", current_task="a", completed=["b", "nowhere"], learned=[MISSING])
    handed("a", event)
    key = ledger_key("x")
    assert (task_key("b"), key) in state.table("COMPLETED_BY")
    assert len(state.table("COMPLETED_BY")) == 1
    assert not state.table("LEARNED_BY")
    assert list(state.table("WORKS_ON")) == [(key, task_key("a"))]
    handed("a", LedgerCheckpointed(agent="x", current_task="b"))
    assert list(state.table("WORKS_ON")) == [(key, task_key("b"))]
    handed("a", LedgerCheckpointed(agent="x", goal="Rest"))
    assert not state.table("WORKS_ON")
    assert "current_task" not in state.get(LEDGER, key)
    assert len(state.table("KEPT_BY")) == 1


def test_a_deleted_memory_leaves_no_edge_and_agents_stay(state: Any, handed: Commit, added: Any) -> None:
    event = added(agents_involved=["x", "w"])
    state.fold(event)
    memory_id = event.memory.id
    handed(
        "a",
        HandoffCreated(
            id=MISSING, from_agent="x", what_was_done="x", memories=[natural_id("test", "gone"), memory_id, memory_id]
        ),
    )
    assert list(state.table("CARRIED_BY").values()) == [{"rank": 2}]
    handed("a", LedgerCheckpointed(agent="x", learned=[memory_id]))
    handed("a", MemoryDeleted(id=memory_id))
    assert not state.table("CARRIED_BY")
    assert not state.table("LEARNED_BY")
    assert {row["name"] for row in state.table("Agent").values()} == {"x", "y"}
