"""Turns: whatever happens in whichever order, a session's task changes only as its user allowed, and the state is that of the journal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import AgentMemoryStore, MemGraph
from memgraph.config import AgentMemoryConfig
from memgraph.model.results.tasks import TurnControl
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import examples

TASKS = {"login": "Fix the login", "docs": "Write the docs", "berlin": "Import customers from Berlin", "paris": "Import customers from Paris"}  # fmt: skip
SESSIONS = ("one", "two")
MESSAGES = (
    "Let us fix the login",
    "Write the docs now",
    "Import the customers",
    "import customers from Paris",
    "The login is slow",
    "Deploy it on Friday",
    "yes",
    "hello",
)
steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["turn", "turn", "turn", "turn", "switch", "push", "resume", "on", "off", "mode", "status", "reopen"]
        ),
        st.sampled_from(SESSIONS),
        st.sampled_from(sorted(TASKS)),
        st.integers(0, len(MESSAGES) - 1),
        st.sampled_from([1, 30, 700]),
    ),
    min_size=10,
    max_size=40,
)


def rows(store: AgentMemoryStore) -> list[Any]:
    with store.reader.frozen():
        tables = ("SessionTasks", "Task", "TaskItem")
        return [sorted(store._projector.rows.scan(table), key=repr) for table in tables]


def check(memory: MemGraph, before: Any, turn: TurnControl, message: str) -> None:
    """Check a turn against the rules, in the words of the documentation."""
    after = memory.tasks.sessions.get(turn.session_id)
    assert (turn.active_task, turn.resolved_task) == (before.active, after.active)
    assert (turn.autoswitch, turn.guidance) == (before.autoswitch, before.guidance)
    if turn.inferred_task is not None:
        assert memory.tasks.get(turn.inferred_task).status in ("active", "suspended")
    if before.active != after.active:
        assert turn.decision == "switched"
        assert before.autoswitch
        assert after.active == turn.inferred_task
        assert turn.confidence >= 0.75
        assert turn.ambiguous == []
        assert before.switches_back < 3
        assert before.mismatches < 3
    else:
        assert turn.decision != "switched"
    if turn.nudge is not None:
        assert len(turn.nudge.options) >= 2
        assert turn.nudge.kind != "topic_switch" or turn.guidance == "supportive"
    assert {one.task_id for one in turn.confirmations} <= {before.active}
    assert not turn.confirmations or message == "yes"
    assert TurnControl.parse(turn.model_dump(mode="json")) == turn


@settings(max_examples=examples(12, at_length=50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_the_task_of_a_session_changes_only_as_allowed(tmp_path_factory: Any, steps: Any) -> None:
    folder = tmp_path_factory.mktemp("turns")
    clock, config = FakeClock(), AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")

    def opened() -> MemGraph:
        return MemGraph(AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock))

    memory = opened()
    tasks = memory.tasks
    for name, title in TASKS.items():
        tasks.upsert(title, task_id=name)
    pin = tasks.pins.upsert("Never deploy on Fridays", kind="constraint").pin
    for what, session, name, number, seconds in steps:
        clock.advance(seconds=seconds)
        before = {one: tasks.sessions.get(one) for one in SESSIONS}
        items = {one: tasks.snapshot(one).confirmation for one in TASKS}
        if what == "turn":
            turn = tasks.begin_turn(session, MESSAGES[number])
            check(memory, before[session], turn, MESSAGES[number])
            assert {one for one in TASKS if tasks.snapshot(one).confirmation != items[one]} == {
                one.task_id for one in turn.confirmations
            }
        elif what in ("switch", "push"):
            if tasks.get(name).status in ("active", "suspended") and len(before[session].stack) < 3:
                tasks.sessions.switch(session, name, push=what == "push")
        elif what == "resume" and len(before[session].stack) > 1:
            below = [one for one in before[session].stack[:-1] if tasks.get(one).status in ("active", "suspended")]
            if below:
                tasks.sessions.resume(session)
        elif what in ("on", "off"):
            tasks.sessions.control(session, autoswitch=what == "on")
        elif what == "mode":
            tasks.sessions.control(session, guidance=("minimal", "supportive")[number % 2])
        elif what == "status":
            tasks.set_status(name, ("active", "suspended", "archived", "closed")[number % 4])
        elif what == "reopen":
            memory.close()
            memory = opened()
            tasks = memory.tasks
        for one in SESSIONS:
            if one != session:
                now = tasks.sessions.get(one)
                assert now.model_copy(update={"switches_back": 0}) == before[one].model_copy(
                    update={"switches_back": 0}
                )
    assert tasks.pins.get(pin.id) == pin
    found = rows(memory.store)
    memory.store.rebuild()
    assert rows(memory.store) == found, "the projection is that of the journal"
    memory.close()


@pytest.mark.embedded
def test_the_state_of_a_session_is_in_the_graph_and_survives_a_rebuild(tmp_path: Any) -> None:
    with MemGraph.open(tmp_path / "s", keys_home=tmp_path / "k", embedding_model="none") as memory:
        tasks = memory.tasks
        for name, title in TASKS.items():
            tasks.upsert(title, task_id=name)
        tasks.sessions.control("one", autoswitch=True, guidance="supportive")
        for message in ("fix the login", "write the docs", "fix the login", "Import the customers"):
            tasks.begin_turn("one", message)
        query = (
            "MATCH (s:SessionTasks {name: 'one'}) RETURN s.stack, s.switched_from, s.switched_to, s.switches_back, s.mismatches, "
            "s.autoswitch, s.guidance, s.asked_kind, s.asked_about"
        )
        expected = [["login"], "docs", "login", 1, 1, True, "supportive", "ambiguity", ["berlin", "paris"]]
        assert [list(row.values()) for row in memory.store.cypher(query)] == [expected]
        known = tasks.sessions.get("one")
        memory.store.rebuild()
        assert [list(row.values()) for row in memory.store.cypher(query)] == [expected]
        assert tasks.sessions.get("one") == known
        again = tasks.begin_turn("one", "yes")
        assert (again.confirmations, again.nudge.kind, again.nudge.about) == ([], "ambiguity", ["berlin", "paris"])
