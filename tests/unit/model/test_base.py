"""Invalid input to the models, and the errors it raises."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.errors import InvalidInputError
from memgraph.model.base import MAX_COUNT, Limit, Name, checked
from memgraph.model.build import BuildEventLog
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessRecorded
from memgraph.model.events.registry import PAYLOADS
from memgraph.model.memory import ActionStep, EpisodicMemory, MemoryRecord, parse_memory
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.curation import MemoryStats
from memgraph.model.timestamps import to_iso

TIMES = dict.fromkeys(["created_at", "updated_at", "occurred_at", "relevance_at"], "2026-01-01T00:00:00.000Z")


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("count", [MAX_COUNT + 1, 2**63, 10**400, 10**5_000], ids=["31", "63", "400", "5000"])
def test_a_count_must_fit_the_index(count: int) -> None:
    with pytest.raises(InvalidInputError, match="access_count"):
        EpisodicMemory(content="x", access_count=count)


def test_the_largest_count_is_stored() -> None:
    assert EpisodicMemory(content="x", access_count=MAX_COUNT).access_count == MAX_COUNT


def test_a_store_may_be_larger_than_a_count() -> None:
    counts = dict.fromkeys(["total", "avg_relevance", "pinned_count", "suppressed_count"], 0)
    assert MemoryStats(by_type={}, db_size_bytes=2**40, **counts).db_size_bytes == 2**40


def test_a_number_too_large_for_a_float_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="t: "):
        ActionStep(t=10**400, action="x")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_outside_of_utcs_years_is_refused(time: str) -> None:
    with pytest.raises(ValueError, match="1 to 9999"):
        to_iso(time)
    with pytest.raises(InvalidInputError, match="occurred_at"):
        EpisodicMemory(content="x", occurred_at=time)


def test_an_access_record_names_accesses() -> None:
    with pytest.raises(InvalidInputError, match="accesses"):
        AccessRecorded(accesses=[])


def test_an_invalid_payload_is_named() -> None:
    with pytest.raises(InvalidInputError) as caught:
        PAYLOADS["access.recorded", 1].parse({"accesses": [{"id": "x"}]})

    assert caught.value.field.startswith("accesses.0.")
    assert "Value error" not in caught.value.problem


def test_a_type_of_event_without_a_policy_is_refused_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match=r"Unheard \(memory\.unheard\) has no POLICY"):

        class Unheard(Payload, type="memory.unheard"):
            pass


def test_all_versions_of_a_type_have_one_policy() -> None:
    newest = {kind.TYPE: kind for _, kind in sorted(PAYLOADS.items())}
    assert all(kind.POLICY == newest[kind.TYPE].POLICY for kind in PAYLOADS.values())


def test_a_memory_changed_by_hand_is_refused_by_field_and_value() -> None:
    memory = EpisodicMemory(content="x", id="11111111-1111-4111-8111-111111111111")
    memory.tags.append(5)  # type: ignore[arg-type]
    fields = {name: value for name, value in memory if name in MemoryRecord.model_fields and value is not None}

    with pytest.raises(InvalidInputError) as caught:
        MemoryRecord.parse({**fields, **TIMES})

    assert (caught.value.field, caught.value.value) == ("tags.0", 5)


@pytest.mark.parametrize(
    "data",
    [
        {"type": "episodic", "content": "x", 1: 2},
        {"type": "episodic", "content": "x", "entities": [{1: 2}]},
        {"type": "episodic", "content": "x", "action_log": [{"t": 1.0, "action": "a", None: 2}]},
    ],
)
def test_keys_are_strings(data: Any) -> None:
    with pytest.raises(InvalidInputError, match="strings as its keys"):
        parse_memory(data)


def test_keys_are_strings_inside_a_build_too() -> None:
    with pytest.raises(InvalidInputError) as caught:
        BuildEventLog.parse({"build_id": "b", "project_id": "p", "tasks": [{1: 2}]})

    assert caught.value.field == "tasks.0"


@pytest.mark.parametrize("value", [nested(100_000), 10**5_000], ids=["nested", "long"])
def test_a_value_that_cannot_be_shown_is_still_refused_clearly(value: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        EpisodicMemory(content=value)

    assert str(caught.value).startswith("content: ")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("vector", [[1j, 2.0], ["1", "2"], [b"1"], {"a": 1}, [[1.0], [2.0, 3.0]], [10**400]])
def test_a_vector_of_anything_but_numbers_is_refused(vector: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"embedding: is not a vector of numbers"):
        EpisodicMemory(content="x", embedding=vector)


@pytest.mark.parametrize(
    "settings",
    [
        {"decay_rate": -0.1},
        {"knowledge_decay_rate": -1.0},
        {"decay_rate": float("nan")},
        {"max_relevance": 0.0},
        {"max_relevance": 5.1},
        {"deletion_threshold": 2.0},
    ],
)
def test_a_curve_falls_and_has_a_ceiling(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        ForgettingCurveConfig(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "value", "field"),
    [
        (list[Name] | None, "bob", "names"),
        (list[Name] | None, ["bob", 7], "names.1"),
        (Limit, True, "names"),
        (Limit, "5", "names"),
        (Limit, -1, "names"),
    ],
)
def test_an_argument_is_named_with_its_value(kind: Any, value: Any, field: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        checked(kind, value, "names")

    assert caught.value.field == field
