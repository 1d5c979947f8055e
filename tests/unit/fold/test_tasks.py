"""Tasks in the fold: an event that does not fit the state, as only a foreign writer could commit it, changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.fold import Workspace, fold
from memgraph.fold.tasks import task_key
from memgraph.journal.envelope import Event
from memgraph.model.events.payload import Payload
from memgraph.model.events.tasks import (
    DecisionMade,
    DecisionReverted,
    GoalSet,
    NextActionCompleted,
    PinRemoved,
    StatePatchApplied,
    TaskCreated,
    TaskLinked,
    TaskUnlinked,
)
from memgraph.model.ids import natural_id
from tests.unit.fold.conftest import NOW

ONE = natural_id("test", "one")


@pytest.fixture
def commit(state: Any) -> Callable[..., list[Any]]:
    """Fold events of a task; return what changed."""

    def folded(task_id: str, *payloads: Payload) -> list[Any]:
        workspace = Workspace(state)
        for payload in payloads:
            state.seq += 1
            fold(
                workspace,
                Event(
                    state.seq, "c", True, payload.TYPE, payload, payload.dump(), "task", task_id, "user", NOW, NOW, "s"
                ),
            )
        changes = list(workspace.changes())
        for change in changes:
            state.rows.pop((change.table, change.key), None)
            if change.new is not None:
                state.rows[change.table, change.key] = change.new
        return changes

    return folded


def test_an_item_of_another_task_stays_as_it_is(state: Any, commit: Any) -> None:
    commit("a", TaskCreated(title="A"), DecisionMade(id=ONE, decision="Go"))
    commit("b", TaskCreated(title="B"))
    assert commit("b", DecisionReverted(id=ONE)) == []
    assert commit("a", NextActionCompleted(id=ONE)) == []
    assert "closed_seq" not in state.get("TaskItem", ONE)
    commit("a", DecisionReverted(id=ONE, reason="no"))
    closed = dict(state.get("TaskItem", ONE))
    assert (closed["closed_seq"], closed["resolution"]) == (state.seq, "no")
    assert commit("a", DecisionReverted(id=ONE, reason="again")) == []
    assert commit("b", DecisionMade(id=ONE, decision="Stop")) == []


def test_a_task_that_is_not_registered_has_no_items(state: Any, commit: Any) -> None:
    events = (GoalSet(goal="x"), StatePatchApplied(changed={"a": "b"}), DecisionMade(id=ONE, decision="x"))
    assert commit("a", *events, TaskUnlinked(target_id="b"), PinRemoved(id=ONE)) == []
    commit("a", TaskCreated(title="A"))
    assert commit("a", TaskCreated(title="Again"), TaskLinked(target_id="b")) == []
    assert state.get("Task", task_key("a"))["title"] == "A"


def test_a_value_that_is_replaced_is_kept_with_its_end(state: Any, commit: Any) -> None:
    commit("a", TaskCreated(title="A"), GoalSet(goal="one"))
    commit("a", GoalSet(goal="one"))
    commit("a", GoalSet(goal="two"))
    goals = sorted(
        (row for row in state.table("TaskItem").values() if row["kind"] == "goal"), key=lambda row: row["seq"]
    )
    assert [(row["content"], row["seq"], row.get("closed_seq")) for row in goals] == [("one", 2, 4), ("two", 4, None)]
    assert {key[0] for key in state.table("HAS_ITEM")} == {task_key("a")}
