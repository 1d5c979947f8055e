"""`record_outcome`: what was used counts once, and what cannot be true is refused."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph

GONE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def memory(store: Any) -> memgraph.MemGraph:
    store.insert_memories([{"type": "episodic", "content": f"The deploy failed at step {n}"} for n in range(3)])
    return memgraph.MemGraph(store)


@pytest.fixture
def recalled(memory: memgraph.MemGraph, clock: Any) -> memgraph.RetrievalResult:
    clock.advance(days=20)
    result = memory.recall("deploy")
    clock.advance(days=20)
    return result


def state(memory: memgraph.MemGraph, memory_id: str | None) -> tuple[int, float]:
    (found,) = memory.store.read_memories([memory_id or ""])
    return found.access_count, round(found.relevance_score, 6)


def marks(memory: memgraph.MemGraph) -> dict[str, bool | None]:
    return {str(ends[1]): row.get("used") for ends, row in memory.store._projector.rows.scan("RECALLED")}


def events(memory: memgraph.MemGraph) -> int:
    memory.store.flush()
    return int(memory.store._journal.tail.seq)


@pytest.mark.parametrize("outcome", [pytest.param("success", marks=pytest.mark.embedded), "failure"])
def test_used_memories_are_counted_and_reinforced(
    memory: memgraph.MemGraph, recalled: memgraph.RetrievalResult, outcome: str
) -> None:
    used, overridden, other = (one.id for one in recalled.memories)
    before = {one: state(memory, one) for one in (used, overridden, other)}
    memory.record_outcome(recalled.query_id, outcome, used=[used or ""], overridden=[overridden or ""])

    assert state(memory, used) == (before[used][0] + 1, pytest.approx(before[used][1] + 0.2, abs=1e-5))
    assert {one: state(memory, one) for one in (overridden, other)} == {one: before[one] for one in (overridden, other)}
    assert marks(memory) == {used: True, overridden: False, other: None}
    ((_, row),) = memory.store._projector.rows.scan("Recall")
    assert row["outcome"] == outcome
    after, digest = state(memory, used), memory.store.digest()
    memory.store.rebuild()
    assert (state(memory, used), memory.store.digest()) == (after, digest)


def test_a_repeated_outcome_is_recorded_and_counted_once(
    memory: memgraph.MemGraph, recalled: memgraph.RetrievalResult
) -> None:
    used = recalled.memories[0].id
    memory.record_outcome(recalled.query_id, "success", used=[used, used])
    before, known = events(memory), state(memory, used)
    memory.record_outcome(recalled.query_id, "success", used=[used])
    memory.record_outcome(recalled.query_id, "success")

    assert (events(memory), state(memory, used)) == (before, known)


def test_a_changed_outcome_replaces_the_last_and_counts_only_new_uses(
    memory: memgraph.MemGraph, recalled: memgraph.RetrievalResult
) -> None:
    first, second, third = (one.id for one in recalled.memories)
    memory.record_outcome(recalled.query_id, "pending", used=[first])
    memory.record_outcome(recalled.query_id, "meh", used=[first, second], overridden=[third])

    assert [state(memory, one)[0] for one in (first, second, third)] == [2, 2, 1]
    assert marks(memory) == {first: True, second: True, third: False}


def test_what_cannot_be_true_is_refused(memory: memgraph.MemGraph, recalled: memgraph.RetrievalResult) -> None:
    known = recalled.memories[0].id
    stranger = memory.store.insert_memory({"type": "episodic", "content": "Something else"}).id
    before, marked = events(memory), marks(memory)

    with pytest.raises(memgraph.NotFoundError, match="no retrieval"):
        memory.record_outcome(GONE, "success")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("outcome", {"outcome": "great"}),
        ("query_id", {"query_id": "no id"}),
        ("used", {"used": [stranger]}),
        ("used", {"used": ["no id"]}),
        ("used", {"used": known}),
        ("used", {"used": None}),
        ("overridden", {"overridden": [GONE]}),
        ("overridden", {"used": [known], "overridden": [known.upper()]}),
    ]
    for field, given in wrong:
        with pytest.raises(memgraph.InvalidInputError) as refused:
            memory.record_outcome(**{"query_id": recalled.query_id, "outcome": "success", **given})
        assert refused.value.field.split(".")[0] == field
    assert (events(memory), marks(memory)) == (before, marked)
