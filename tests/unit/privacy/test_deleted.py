"""What was derived keeps the restrictions of its sources, deleted ones included, today and in views of the past."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.store.access.visibility import permitted, shown


@pytest.fixture
def memory(open_store: Any) -> Any:
    return memgraph.MemGraph(open_store(agents={"coach": {"domain": "health"}}))


def found(memory: Any, agent: str = "agent") -> set[str]:
    """Return the ids of what an agent may have, of which it finds nothing else."""
    reader = memory.store.reader
    with reader.frozen():
        mask = permitted(reader, memory.store.access_of(agent), "read")
        slots = np.flatnonzero(
            reader.index.column("is_live") if mask is None else reader.index.column("is_live") & mask
        )
        ids = {reader.index.ids.names[slot] for slot in slots}
    assert {one.memory.id for one in memory.search_memories("the plan", limit=50, agent=agent)} <= ids
    return ids


def derived(memory: Any, source: str, **fields: Any) -> str:
    given = {"type": "semantic", "content": f"The plan says {source[:8]}", "supporting_memory_ids": [source], **fields}
    kept: str = memory.store.insert_memory(given).id
    return kept


def a_plan(memory: Any, text: str = "The plan for the week", **fields: Any) -> str:
    kept: str = memory.store.insert_memory({"type": "semantic", "content": text, **fields}).id
    return kept


def split(memory: Any, source: str) -> list[str]:
    done = memory.curation.split(source, ["The plan begins on Monday", "The plan ends on Friday"])
    return [one.id for one in done.memories if one.change == "added"]


def chain(memory: Any, source: str) -> list[str]:
    first = derived(memory, source)
    second = derived(memory, first)
    memory.store.delete_memory(first)
    return [second]


@pytest.mark.parametrize("make", [split, chain, lambda memory, source: [derived(memory, source)]])
def test_to_raise_and_delete_a_source_discloses_nothing(memory: Any, make: Callable[..., list[str]]) -> None:
    source = a_plan(memory)
    made = make(memory, source)
    assert found(memory) >= set(made)
    memory.store.update_memory(source, privacy_tier="private", domain="health")
    assert found(memory) & {*made, source} == set()
    memory.store.delete_memory(source)
    assert found(memory) & {*made, source} == set()
    assert found(memory, "coach") >= set(made)
    with memory.store.reader.frozen():
        names = memory.store.reader.index.ids.names
        assert {names[slot] for slot in shown(memory.store.reader).nonzero()[0]} & set(made) == set()
    memory.store.undelete(source)
    memory.store.update_memory(source, privacy_tier="public", domain=None)
    assert found(memory) >= set(made)


def test_a_link_that_was_removed_derives_nothing(memory: Any) -> None:
    source = a_plan(memory)
    made = derived(memory, source)
    memory.store.update_memory(source, privacy_tier="private")
    memory.store.unlink(made, "DERIVED_FROM", source)
    memory.store.delete_memory(source)
    assert found(memory) == {made}


def test_a_reopened_store_still_knows(memory: Any, open_store: Any) -> None:
    source = a_plan(memory)
    made = derived(memory, source)
    memory.store.update_memory(source, privacy_tier="private")
    memory.store.delete_memory(source)
    memory.close()
    with memgraph.MemGraph(open_store()) as again:
        assert made not in found(again)


def test_what_was_private_when_it_was_deleted_is_in_no_agents_past(memory: Any, clock: Any) -> None:
    source, other = a_plan(memory), a_plan(memory, "The plan for the month")
    made = derived(memory, source)
    then = memory.store.now()
    clock.advance(days=1)
    memory.store.update_memory(source, privacy_tier="private")
    memory.store.delete_memory(source)
    memory.store.delete_memory(other)
    with memory.at(then) as past:
        assert {one.id for one in past.store.every_memory()} == {source, made, other}  # the owner
        assert found(past) == {other}
        with past.as_agent() as view:
            assert {one["id"] for one in view.store.cypher("MATCH (m:Memory) RETURN m.id AS id")} == {other}


def test_an_outdated_version_does_not_stand_in_for_a_private_one(memory: Any) -> None:
    old = a_plan(memory, "The plan is to meet on Monday")
    (new,) = [
        one.id
        for one in memory.curation.edit(old, {"content": "The plan is to meet on Friday"}, as_new=True).memories
        if one.change == "added"
    ]
    assert found(memory) == {old, new}
    memory.store.update_memory(new, privacy_tier="private", domain="health")
    assert found(memory) == set()
    assert memory.search_memories("the plan is to meet on monday") == []
    assert found(memory, "coach") == {old, new}
    memory.store.suppress(new)
    assert found(memory) == {old}  # nothing in force replaces it
