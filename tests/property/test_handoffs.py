"""Handoffs and ledgers: whatever happens in whichever order, replay equals what was done step by step, and nobody gets what is not theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import AgentMemoryStore, MemGraph, MemGraphError
from memgraph.config import AgentMemoryConfig
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import examples

TASKS, AGENTS = ("t1", "t2"), ("a", "b", "c")
TABLES = (
    "Ledger", "Handoff", "Agent", "Task", "Memory", "KEPT_BY", "WORKS_ON", "COMPLETED_BY", "LEARNED_BY", "HANDS_OVER", "HANDED_BY", "HANDED_TO",
    "ACCEPTED_BY", "CARRIED_BY", "INVOLVES",
)  # fmt: skip

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "create",
                "create",
                "accept",
                "accept",
                "withdraw",
                "checkpoint",
                "memory",
                "delete",
                "undelete",
                "forget",
                "close",
                "reopen",
            ]
        ),
        st.sampled_from(TASKS),
        st.sampled_from(AGENTS),
        st.sampled_from((*AGENTS, None)),
        st.integers(0, 5),
    ),
    min_size=10,
    max_size=30,
)


class Model:
    """What should hold, as plain values."""

    def __init__(self) -> None:
        self.handoffs: dict[str, dict[str, Any]] = {}
        self.memories: dict[str, dict[str, Any]] = {}
        self.open_tasks = dict.fromkeys(TASKS, True)
        self.completed: dict[str, set[str]] = {}

    def may_carry(self, task: str) -> list[str]:
        return [one for one, row in self.memories.items() if row["task"] in (None, task) and row["state"] == "live"]


def rows(store: AgentMemoryStore) -> dict[str, list[Any]]:
    with store.reader.frozen():
        return {table: sorted(store._projector.rows.scan(table), key=repr) for table in TABLES}


def refused(call: Callable[[], Any]) -> None:
    with pytest.raises(MemGraphError):
        call()


def act(memory: MemGraph, model: Model, what: str, task: str, agent: str, other: str | None, number: int) -> None:
    """Do a step if the model allows it; else check that it is refused."""
    tasks = memory.tasks
    if what == "create":
        wanted = list(model.memories)[: number + 1]

        def create() -> Any:
            return tasks.handoffs.create(task, f"Done {number}", from_agent=agent, to_agent=other, memories=wanted)

        if agent == other or not model.open_tasks[task] or set(wanted) - set(model.may_carry(task)):
            refused(create)
        else:
            made = create()
            known = {"task": task, "from": agent, "to": other, "state": "open", "by": None, "carried": wanted}
            model.handoffs[made.id] = known
    elif what in ("accept", "withdraw") and model.handoffs:
        handoff_id, row = list(model.handoffs.items())[number % len(model.handoffs)]
        is_changeable = row["state"] == "open" and model.open_tasks[row["task"]]
        if what == "accept":
            call: Callable[[], Any] = lambda: tasks.handoffs.accept(handoff_id, agent)  # noqa: E731
            if (row["state"], row["by"]) == ("accepted", agent):
                call()
            elif is_changeable and agent != row["from"] and row["to"] in (None, agent):
                call()
                row |= {"state": "accepted", "by": agent}
            else:
                refused(call)
        elif row["state"] == "withdrawn" or (is_changeable and agent == row["from"]):
            tasks.handoffs.withdraw(handoff_id)
            row["state"] = "withdrawn"
        else:
            refused(lambda: tasks.handoffs.withdraw(handoff_id, agent="nobody"))
    elif what == "checkpoint":
        tasks.ledgers.checkpoint(agent, current_task=task, completed=[task], goal=f"Goal {number}")
        model.completed.setdefault(agent, set()).add(task)
    elif what == "memory":
        scope = (None, *TASKS)[number % 3]
        content = f"{what} {len(model.memories)} of {scope}"
        made = memory.store.insert_memory(
            {"type": "semantic", "content": content, "task_id": scope, "agents_involved": [agent]}
        )
        model.memories[made.id] = {"task": scope, "state": "live", "content": content}
    elif what in ("delete", "undelete", "forget") and model.memories:
        memory_id, row = list(model.memories.items())[number % len(model.memories)]
        if what == "delete" and row["state"] != "deleted":
            memory.store.delete_memory(memory_id)
            row["state"] = "deleted"
            for handoff in model.handoffs.values():
                handoff["carried"] = [one for one in handoff["carried"] if one != memory_id]
        elif what == "undelete" and row["state"] == "deleted":
            memory.store.undelete(memory_id)
            row["state"] = "hidden" if memory.store.get_memory(memory_id).is_suppressed else "live"
        elif what == "forget" and row["state"] == "live":
            memory.store.suppress(memory_id)
            row["state"] = "hidden"
    elif what == "close":
        model.open_tasks[task] = number % 2 == 0
        tasks.set_status(task, "active" if model.open_tasks[task] else "closed")


def check(memory: MemGraph, model: Model) -> None:
    handoffs = memory.tasks.handoffs
    for handoff_id, row in model.handoffs.items():
        found = handoffs.get(handoff_id)
        shown = [one for one in row["carried"] if model.memories[one]["state"] == "live"]
        assert (found.state, found.accepted_by, found.task_id, found.memory_ids) == (
            row["state"],
            row["by"],
            row["task"],
            shown,
        )
        page = handoffs.page(handoff_id, agent=row["from"])
        hidden = [
            one["content"]
            for one in model.memories.values()
            if one["task"] not in (None, row["task"]) or one["state"] != "live"
        ]
        assert not [text for text in hidden if text in page.text], "a page shows what is of another task or gone"
        assert {one.task_id for one in page.task.decisions} <= {row["task"]}
    for agent in AGENTS:
        theirs = {
            one for one, row in model.handoffs.items()
            if agent == row["from"] or (row["by"] == agent if row["by"] else row["to"] in (None, agent))
        }  # fmt: skip
        assert {one.id for one in handoffs.list(agent=agent)} == theirs
    found_ledgers = {one.agent_id: one.tasks_completed for one in memory.tasks.ledgers.list()}
    assert found_ledgers == {agent: len(done) for agent, done in model.completed.items()}


def run(folder: Path, steps: Any) -> None:
    clock, model = FakeClock(), Model()
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")

    def opened() -> MemGraph:
        return MemGraph(AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock))

    memory = opened()
    for name in TASKS:
        memory.tasks.upsert(name, task_id=name)
        memory.tasks.decide(name, f"Decision of {name}")
    for step in steps:
        clock.advance(seconds=1)
        if step[0] == "reopen":
            memory.close()
            memory = opened()
        act(memory, model, *step)
    check(memory, model)
    before = rows(memory.store)
    memory.store.rebuild()
    assert rows(memory.store) == before, "the projection is that of the journal"
    check(memory, model)
    memory.store.verify(deep=True)
    memory.close()


@settings(max_examples=examples(15, at_length=60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_handoffs_follow_their_model_and_replay_equals(tmp_path_factory: Any, steps: Any) -> None:
    run(tmp_path_factory.mktemp("handoffs"), steps)


def test_the_embedded_graph_holds_the_same(tmp_path: Path) -> None:
    done: Any = [
        ("memory", "t1", "a", None, 0), ("memory", "t1", "b", None, 1), ("memory", "t1", "c", None, 0), ("create", "t1", "a", "b", 2),
        ("checkpoint", "t1", "a", None, 1), ("checkpoint", "t2", "a", None, 2), ("delete", "t1", "a", None, 0), ("create", "t2", "c", None, 9),
        ("accept", "t1", "b", None, 0), ("reopen", "t1", "a", None, 0), ("undelete", "t1", "a", None, 0), ("delete", "t1", "a", None, 2),
        ("create", "t2", "a", None, 0), ("withdraw", "t2", "a", None, 1), ("accept", "t2", "b", None, 1),
    ]  # fmt: skip
    run(tmp_path, done)
