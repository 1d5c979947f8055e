"""Tasks: whatever happens in whichever order, no task sees another's items, and what held earlier stays readable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import AgentMemoryStore, MemGraph, MemGraphError
from memgraph.config import AgentMemoryConfig
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import examples

TASKS = ("t1", "t2", "t3")
OPENED = {"decide": "decisions", "constrain": "constraints", "ask": "open_questions", "plan": "next_actions"}
CLOSED = {"revert": "decisions", "lift": "constraints", "resolve": "open_questions", "complete": "next_actions"}
TABLES = ("Task", "TaskItem", "SessionTasks", "HAS_ITEM", "LINKED", "Memory", "IN_TASK")

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *OPENED,
                *CLOSED,
                "set_goal",
                "patch",
                "unset",
                "title",
                "status",
                "link",
                "unlink",
                "switch",
                "memory",
                "none",
                "reopen",
            ]
        ),
        st.sampled_from(TASKS),
        st.sampled_from(TASKS),
        st.integers(0, 3),
    ),
    min_size=12,
    max_size=40,
)


class Model:
    """What each task should hold, as plain dictionaries; a closed task does not change."""

    def __init__(self) -> None:
        fields: Callable[[], dict[str, Any]] = lambda: {  # noqa: E731
            **{field: [] for field in OPENED.values()},
            "goal": None,
            "state": {},
            "links": [],
            "status": "active",
        }
        self.tasks = {name: {**fields(), "title": name} for name in TASKS}
        self.stack: list[str] = []


def found(memory: MemGraph, name: str, as_of: Any = None) -> dict[str, Any]:
    one = memory.tasks.snapshot(name, as_of=as_of)
    items = {field: [item.content for item in getattr(one, field)] for field in OPENED.values()}
    assert {item.task_id for field in OPENED.values() for item in getattr(one, field)} <= {name}
    return {
        **items,
        "goal": one.goal,
        "state": one.state,
        "links": sorted(one.links),
        "status": one.status,
        "title": one.title,
    }


def expected(model: Model, name: str) -> dict[str, Any]:
    one = model.tasks[name]
    return {
        **one,
        **{field: [text for _, text in one[field]] for field in OPENED.values()},
        "links": sorted(one["links"]),
    }


def rows(store: AgentMemoryStore) -> dict[str, list[Any]]:
    with store.reader.frozen():
        return {table: sorted(store._projector.rows.scan(table), key=repr) for table in TABLES}


def act(memory: MemGraph, model: Model, what: str, name: str, other: str, number: int) -> None:
    """Do a step if the model allows it; else check that it is refused."""
    tasks, mine = memory.tasks, model.tasks[name]
    is_open, text = mine["status"] in ("active", "suspended"), f"{what} {number} of {name}"
    if what in OPENED:
        if is_open:
            mine[OPENED[what]].append((getattr(tasks, what)(name, text).id, text))
        else:
            refused(lambda: getattr(tasks, what)(name, text))
    elif what in CLOSED:
        theirs = model.tasks[other][CLOSED[what]]
        if not theirs:
            return
        item_id, _ = theirs[number % len(theirs)]
        if other == name and is_open:
            getattr(tasks, what)(name, item_id)
            mine[CLOSED[what]] = [one for one in mine[CLOSED[what]] if one[0] != item_id]
        else:
            refused(lambda: getattr(tasks, what)(name, item_id))
    elif what in ("set_goal", "patch", "unset", "title"):
        calls: dict[str, Callable[[], Any]] = {
            "set_goal": lambda: tasks.set_goal(name, text),
            "patch": lambda: tasks.patch_state(name, {f"v{number}": text}),
            "unset": lambda: tasks.patch_state(name, removed=[f"v{number}"]),
            "title": lambda: tasks.upsert(text, task_id=name),
        }
        if not is_open:
            if what != "title" or mine["title"] != text:
                refused(calls[what])
            return
        calls[what]()
        if what == "set_goal":
            mine["goal"] = text
        elif what == "title":
            mine["title"] = text
        elif what == "patch":
            mine["state"][f"v{number}"] = text
        else:
            mine["state"].pop(f"v{number}", None)
    elif what == "status":
        mine["status"] = ("active", "suspended", "archived", "closed")[number]
        tasks.set_status(name, mine["status"])
    elif what == "link":
        if other in mine["links"]:
            tasks.link(name, other)
        elif is_open and other != name and model.tasks[other]["status"] != "closed":
            tasks.link(name, other)
            mine["links"].append(other)
        else:
            refused(lambda: tasks.link(name, other))
    elif what == "unlink" and (is_open or other not in mine["links"]):
        tasks.unlink(name, other)
        mine["links"] = [one for one in mine["links"] if one != other]
    elif what == "switch":
        if is_open or model.stack[-1:] == [name]:
            tasks.sessions.switch("s", name, push=True)
            if model.stack[-1:] != [name]:
                model.stack = [*(one for one in model.stack if one != name), name]
        else:
            refused(lambda: tasks.sessions.switch("s", name, push=True))
    elif what == "memory":
        memory.store.insert_memory({"type": "semantic", "content": text, "task_id": name})
    elif what == "none":
        tasks.commit("none", [], task_id=None)


def refused(call: Callable[[], Any]) -> None:
    try:
        call()
    except MemGraphError:
        return
    raise AssertionError("it was not refused")


@settings(max_examples=examples(12, at_length=60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_tasks_never_mix_and_their_past_stays(tmp_path_factory: Any, steps: Any) -> None:
    folder = tmp_path_factory.mktemp("tasks")
    clock, kept, model = FakeClock(), [], Model()
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")

    def opened() -> MemGraph:
        return MemGraph(AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock))

    memory = opened()
    for name in TASKS:
        memory.tasks.upsert(name, task_id=name)
    for step in steps:
        clock.advance(seconds=1)
        others = {name: found(memory, name) for name in TASKS if name != step[1]}
        if step[0] == "reopen":  # the engine is a new one: all is replayed
            memory.close()
            memory = opened()
        act(memory, model, *step)
        assert {name: found(memory, name) for name in others} == others, "another task has changed"
        assert found(memory, step[1]) == expected(model, step[1])
        assert memory.tasks.sessions.get("s").stack == model.stack
        kept.append((memory.store.now(), memory.store.reader.index.offset.seq, step[1], found(memory, step[1])))
    for at, seq, name, state in kept:
        assert found(memory, name, as_of=at) == state
        assert found(memory, name, as_of=seq) == state
    before = rows(memory.store)
    memory.store.rebuild()
    assert rows(memory.store) == before, "the projection is that of the journal"
    memory.close()
