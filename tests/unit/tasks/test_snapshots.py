"""What a task's events make of its state, now and at a moment; one write scope for each commit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph, MemGraphError, NotFoundError
from memgraph.errors import DuplicateIdError, ScopeError
from memgraph.model.events.tasks import (
    ConstraintAdded,
    DecisionMade,
    DecisionReverted,
    NextActionCompleted,
    NextActionSet,
    TaskCreated,
)
from memgraph.model.ids import new_id

pytestmark = pytest.mark.embedded


def texts(items: list[Any]) -> list[str]:
    return [item.content for item in items]


def test_a_snapshot_is_what_holds_now(tasks: Any) -> None:
    tasks.set_goal("login", "Users can sign in")
    tasks.set_goal("login", "Users can sign in with tokens")
    dropped = tasks.decide("login", "Use cookies")
    tasks.decide("login", "Use tokens", reason="the API needs them")
    tasks.revert("login", dropped.id, reason="the API needs tokens")
    lifted = tasks.constrain("login", "No new tables")
    tasks.constrain("login", "No downtime")
    tasks.lift("login", lifted.id)
    question = tasks.ask("login", "Which key?")
    answered = tasks.resolve("login", question.id, resolution="RSA")
    action = tasks.plan("login", "Write the migration")
    tasks.complete("login", action.id, result="0007_tokens.sql")
    tasks.plan("login", "Deploy")
    tasks.add_artifact("login", "migrations/0007_tokens.sql", title="the migration")
    tasks.patch_state("login", {"branch": "tokens", "phase": "review"})
    tasks.patch_state("login", {"phase": "deploy"}, removed=["branch", "unknown"])
    tasks.confirm("login", "yes", confirmed="Deploy on Tuesday")
    found = tasks.snapshot("login")
    assert found.goal == "Users can sign in with tokens"
    assert [(item.content, item.reason) for item in found.decisions] == [("Use tokens", "the API needs them")]
    assert texts(found.constraints) == ["No downtime"]
    assert found.open_questions == []
    assert (answered.resolution, answered.closed_seq) == ("RSA", answered.seq + 1)
    assert texts(found.next_actions) == ["Deploy"]
    assert [(item.content, item.reason) for item in found.artifacts] == [
        ("migrations/0007_tokens.sql", "the migration")
    ]
    assert found.state == {"phase": "deploy"}
    assert (found.confirmation.content, found.confirmation.reason) == ("yes", "Deploy on Tuesday")


def test_a_snapshot_at_an_earlier_event_knows_nothing_later(tasks: Any, clock: Any) -> None:
    question = tasks.ask("login", "Which key?")
    tasks.revert("login", tasks.decide("login", "Use cookies").id)
    tasks.patch_state("login", {"phase": "design", "gone": "x"})
    tasks.patch_state("login", removed=["gone"])
    tasks.set_status("login", "suspended")
    then = tasks.snapshot("login")
    at = clock()
    clock.advance(hours=1)
    tasks.set_status("login", "active")
    tasks.resolve("login", question.id, resolution="RSA")
    tasks.patch_state("login", {"phase": "build"})
    tasks.upsert("Fix the sign-in", task_id="login")
    tasks.link("login", "docs")
    for moment in (then.through, at):
        found = tasks.snapshot("login", as_of=moment)
        assert found.model_copy(update={"as_of": None}) == then
        assert found.open_questions[0].resolution is None
        assert (found.decisions, found.state) == ([], {"phase": "design"})
    assert tasks.snapshot("login").title == "Fix the sign-in"


def test_a_snapshot_equals_that_of_the_store_as_it_was(tasks: Any, memory: MemGraph, clock: Any) -> None:
    tasks.decide("login", "Use tokens")
    at = clock()
    clock.advance(hours=1)
    tasks.set_goal("login", "Later")
    with memory.at(at) as past:
        assert past.tasks.snapshot("login") == tasks.snapshot("login", as_of=at).model_copy(update={"as_of": None})


@pytest.mark.parametrize("moment", [1, "2020-01-01", -1, True, 1.5, "yesterday"])
def test_a_moment_before_the_task_or_that_is_none_is_refused(tasks: Any, moment: Any) -> None:
    with pytest.raises(InvalidInputError, match="as_of"):
        tasks.snapshot("login", as_of=moment)


def test_items_of_another_task_kind_or_state_are_refused(tasks: Any, bytes_of: Callable[[], bytes]) -> None:
    decision = tasks.decide("login", "Use tokens")
    reverted = tasks.decide("login", "Use cookies")
    tasks.revert("login", reverted.id)
    before = bytes_of()
    with pytest.raises(NotFoundError, match="no decision with id"):
        tasks.revert("docs", decision.id)
    with pytest.raises(NotFoundError, match="no next action with id"):
        tasks.complete("login", decision.id)
    with pytest.raises(InvalidInputError, match="is closed already"):
        tasks.revert("login", reverted.id)
    with pytest.raises(DuplicateIdError):
        tasks.store.commit("task", [ConstraintAdded(id=decision.id, constraint="x")], task_id="docs")
    with pytest.raises(InvalidInputError, match="must not be empty"):
        tasks.decide("login", "   ")
    with pytest.raises(InvalidInputError, match="at most 800 characters"):
        tasks.constrain("login", "x" * 801)
    with pytest.raises(InvalidInputError, match="sets and removes 'a'"):
        tasks.patch_state("login", {"a": "1"}, removed=["a"])
    with pytest.raises(InvalidInputError, match="must set or remove a value"):
        tasks.patch_state("login")
    with pytest.raises(NotFoundError, match="no task with id 'nowhere'"):
        tasks.decide("nowhere", "Use tokens")
    assert bytes_of() == before


class TestWriteScope:
    def test_none_touches_nothing(self, tasks: Any, bytes_of: Callable[[], bytes], clock: Any) -> None:
        before, rows, touched = bytes_of(), tasks.store.reader.every_record("TaskItem"), tasks.get("login").touched_at
        clock.advance(hours=1)
        event = DecisionMade(id=new_id(), decision="Use tokens")
        assert tasks.commit("none", [event]) == []
        assert tasks.commit("none", [event], task_id="login") == []
        assert bytes_of() == before
        assert tasks.store.reader.every_record("TaskItem") == rows
        assert tasks.get("login").touched_at == touched

    @pytest.mark.parametrize(
        ("scope", "task_id"), [("global", None), ("system", None), ("global", "login"), ("task", None)]
    )
    def test_an_event_of_a_task_has_its_scope_alone(
        self, tasks: Any, scope: str, task_id: str | None, bytes_of: Callable[[], bytes]
    ) -> None:
        before = bytes_of()
        with pytest.raises(ScopeError):
            tasks.commit(scope, [DecisionMade(id=new_id(), decision="Use tokens")], task_id=task_id)
        assert bytes_of() == before

    def test_a_memory_of_another_task_is_no_part_of_the_commit(self, tasks: Any, bytes_of: Callable[[], bytes]) -> None:
        from memgraph import SemanticMemory

        before = bytes_of()
        event = DecisionMade(id=new_id(), decision="Use tokens")
        for other in ("docs", None):
            with pytest.raises(ScopeError, match="one write scope"):
                tasks.store.commit("task", [event, SemanticMemory(content="x", task_id=other)], task_id="login")
        assert bytes_of() == before

    def test_a_commit_is_accepted_as_a_whole_or_refused(self, tasks: Any, bytes_of: Callable[[], bytes]) -> None:
        one, action = new_id(), new_id()
        tasks.commit(
            "task",
            [TaskCreated(title="New"), DecisionMade(id=one, decision="Go"), DecisionReverted(id=one)],
            task_id="new",
        )
        assert tasks.snapshot("new").decisions == []
        before = bytes_of()
        for bad in (
            [NextActionSet(id=action, action="a"), NextActionCompleted(id=action), NextActionCompleted(id=action)],
            [NextActionSet(id=action, action="a"), DecisionReverted(id=action)],
            [NextActionSet(id=action, action="a"), TaskCreated(title="Again")],
        ):
            with pytest.raises(MemGraphError):
                tasks.commit("task", bad, task_id="new")
        assert bytes_of() == before

    def test_memories_touch_their_task_and_outlive_nothing_of_it(self, tasks: Any, clock: Any) -> None:
        touched = tasks.get("login").touched_at
        clock.advance(hours=1)
        made = tasks.store.insert_memory({"type": "semantic", "content": "Tokens expire", "task_id": "login"})
        assert tasks.get("login").touched_at > touched
        tasks.store.delete_memory(made.id)
        assert tasks.get("login").title == "Fix the login"
        assert tasks.get("docs").touched_at == touched

    def test_a_task_that_memories_merely_name_is_not_registered(self, tasks: Any) -> None:
        tasks.store.insert_memory({"type": "semantic", "content": "Old note", "task_id": "note", "project_id": "shop"})
        assert "note" not in [task.id for task in tasks.list()]
        with pytest.raises(NotFoundError):
            tasks.decide("note", "x")
        assert tasks.upsert("A note", task_id="note").title == "A note"


@pytest.mark.long
def test_ten_thousand_events_and_a_snapshot(tasks: Any, capsys: Any) -> None:
    """Three tasks; of four decisions three are reverted again."""
    for name in ("a", "b", "c"):
        events: list[Any] = [TaskCreated(title=name)]
        while len(events) < 3_334:
            ids = [new_id() for _ in range(4)]
            events += [DecisionMade(id=one, decision=f"Decision {len(events)} of {name}") for one in ids]
            events += [DecisionReverted(id=one) for one in ids[:3]]
        tasks.commit("task", events, task_id=name)
    middle = tasks.snapshot("b").through - 1_700
    for moment, named in ((None, "at the head"), (middle, "half way back")):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            found = tasks.snapshot("b", as_of=moment)
            times.append(1_000 * (time.perf_counter() - start))
        assert {item.task_id for item in found.decisions} == {"b"}
        with capsys.disabled():
            print(
                f"\n10,000 task events, {len(found.decisions)} decisions hold, snapshot {named}: median {sorted(times)[3]:.1f} ms"
            )
