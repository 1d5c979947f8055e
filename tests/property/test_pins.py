"""Pins: whatever happens in whichever order, a pin changes only by an edit and goes only by a confirmed removal or `forget --pins`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import AgentMemoryStore, MemGraph, MemGraphError, SemanticMemory
from memgraph.config import AgentMemoryConfig
from memgraph.tasks.pins import TOKEN_LIFE_S, Pins
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import examples

SCOPES = (None, "t1", "t2")
TABLES = ("Pin", "PinRemoval", "Memory", "Task")

steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "add", "edit", "ask", "ask", "confirm", "cancel", "wait", "back", "attack", "forget", "sleep"]
        ),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    min_size=12,
    max_size=40,
)


@dataclass
class Request:
    """A token as the model knows it."""

    pin_id: str
    token: str
    at: float
    state: str = "open"


@dataclass
class Model:
    """The pins that hold, as (scope, text) by id, and the requests to remove them."""

    pins: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    uptime: float = 1_000.0


def held(pins: Pins) -> dict[str, tuple[str | None, str]]:
    return {one.id: (one.task_id, one.content) for one in pins.list(all_tasks=True)}


def is_refused(call: Any) -> bool:
    try:
        call()
    except MemGraphError:
        return True
    return False


def act(memory: MemGraph, pins: Pins, clock: FakeClock, model: Model, what: str, one: int, other: int) -> None:
    ids = list(model.pins)
    pin_id = ids[one % len(ids)] if ids else None
    request = model.requests[one % len(model.requests)] if model.requests else None
    text = f"Rule {other}"
    if what == "add":
        scope = SCOPES[one % 3]
        known = next((key for key, value in model.pins.items() if value == (scope, text)), None)
        made = pins.upsert(text, kind="constraint", task_id=scope)
        assert made.is_new == (known is None)
        assert known in (None, made.pin.id)
        model.pins[made.pin.id] = (scope, text)
    elif what == "edit" and pin_id:
        scope = model.pins[pin_id][0]
        twin = any(key != pin_id and value == (scope, text) for key, value in model.pins.items())
        assert is_refused(lambda: pins.edit(pin_id, text=text)) == twin
        if not twin:
            model.pins[pin_id] = (scope, text)
    elif what == "ask" and pin_id:
        model.requests.append(Request(pin_id, pins.request_removal(pin_id).token, model.uptime))
    elif what == "confirm" and request:
        is_alive = model.uptime - request.at <= TOKEN_LIFE_S and request.pin_id in model.pins
        may = request.state == "confirmed" or (request.state == "open" and is_alive)
        assert is_refused(lambda: pins.confirm_removal(request.pin_id, request.token)) == (not may)
        if may:
            request.state = "confirmed"
            model.pins.pop(request.pin_id, None)
        for wrong in model.pins.keys() - {request.pin_id}:
            assert is_refused(lambda wrong=wrong: pins.confirm_removal(wrong, request.token))
    elif what == "cancel" and request:
        assert is_refused(lambda: pins.cancel_removal(request.pin_id, request.token)) == (request.state == "confirmed")
        if request.state == "open" and request.pin_id in model.pins:
            request.state = "cancelled"
    elif what == "wait":
        clock.advance(seconds=40 * (one + 1))
        model.uptime += 40 * (one + 1)
    elif what == "back":
        clock.advance(seconds=-3_600 * one)
    elif what == "attack" and pin_id:
        store = memory.store
        doors = (
            lambda: store.update_memory(pin_id, content="Other"),
            lambda: store.suppress(pin_id),
            lambda: store.archive(pin_id),
            lambda: store.delete_memory(pin_id),
            lambda: store.invalidate(pin_id),
            lambda: memory.curation.unpin(pin_id),
        )
        assert is_refused(doors[other])
    elif what == "forget" and pin_id:
        assert pins.forget([pin_id]) == [pin_id]
        del model.pins[pin_id]
    elif what == "sleep":
        memory.store.insert_memory(SemanticMemory(content=text, is_pinned=True, task_id=SCOPES[one % 3]))
        memory.maintenance.sleep()


@settings(max_examples=examples(8, at_length=30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_pins_change_only_explicitly(tmp_path_factory: Any, steps: Any) -> None:
    folder, clock, model = tmp_path_factory.mktemp("pins"), FakeClock(), Model()
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock) as store:
        memory, pins = MemGraph(store), Pins(store, lambda: model.uptime)
        for name in SCOPES[1:]:
            memory.tasks.upsert(name, task_id=name)
        for step in steps:
            act(memory, pins, clock, model, *step)
            assert held(pins) == model.pins
            for name in SCOPES:
                assert {one.task_id for one in pins.list(task_id=name)} <= {None, name}
        before = {table: store.reader.every_record(table) for table in TABLES}
        store.rebuild()
        assert {table: store.reader.every_record(table) for table in TABLES} == before
