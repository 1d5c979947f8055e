"""What the user asks to remember is compared with what is known, at once if the graph is free."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

import memgraph
from tests.growth import assert_grows_linearly

TEXT = "Deploy on Tuesdays only"
OLD, NEW = "The deploy port is 8080.", "The deploy port is 9090."


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> memgraph.MemGraph:
    return memgraph.MemGraph(open_store())


def in_force(memory: memgraph.MemGraph) -> list[str]:
    superseded = {one.id for one in memory.store.list_memories(state="superseded")}
    return sorted(one.content for one in memory.store.get_all_memories() if one.id not in superseded)


def test_the_same_text_is_one_memory(memory: memgraph.MemGraph) -> None:
    first = memory.commands.remember(TEXT, ["ops"])
    memory.curation.unpin(first.data["ids"])
    again = memory.commands.remember("deploy on **Tuesdays** only", ["day"])
    assert again.data["ids"] == first.data["ids"]
    assert again.data["action"] == "known"
    assert again.message.startswith("Already remembered: ")
    (kept,) = memory.store.get_all_memories()
    assert (kept.content, kept.tags, kept.is_pinned) == (TEXT, ["ops", "day"], True)
    assert memory.commands.remember(TEXT).data["event"] is None
    assert memory.commands.remember(TEXT, project_id="shop").data["action"] == "created"


def test_what_was_forgotten_and_is_remembered_again_is_in_force_once(memory: memgraph.MemGraph) -> None:
    (one,) = memory.commands.remember(TEXT).data["ids"]
    memory.commands.forget(TEXT)
    again = memory.commands.remember(TEXT)
    assert (again.data["action"], again.data["ids"]) == ("restored", [one])
    assert in_force(memory) == [TEXT]
    assert memory.save_observation(TEXT).action == "consolidated"
    assert in_force(memory) == [TEXT]
    memory.commands.forget(TEXT)
    assert in_force(memory) == []


def test_a_text_forgotten_as_an_agents_is_the_users_once_remembered(memory: memgraph.MemGraph) -> None:
    memory.save_observation(TEXT)
    memory.commands.forget(TEXT)
    assert memory.save_observation(TEXT).action == "forgotten"
    memory.commands.remember(TEXT)
    assert memory.save_observation(TEXT).action == "consolidated"
    assert in_force(memory) == [TEXT]


def test_copies_are_forgotten_and_restored_together(memory: memgraph.MemGraph) -> None:
    memory.save_observation(TEXT)
    memory.commands.remember(TEXT)
    assert in_force(memory) == [TEXT]
    memory.commands.forget(TEXT)
    assert memory.store.get_all_memories() == []
    memory.commands.unforget(TEXT)
    assert in_force(memory) == [TEXT]


def test_what_it_contradicts_is_replaced_at_once(memory: memgraph.MemGraph, clock: Any) -> None:
    (old,) = memory.commands.remember(OLD).data["ids"]
    clock.advance(minutes=1)
    result = memory.commands.remember(NEW)
    assert result.data["replaced"] == [old]
    assert "replaces 1 memory" in result.message
    assert in_force(memory) == [NEW]
    assert {event.actor for event in memory.store.reader.events_after(0) if event.type.startswith("memory.")} == {
        "user"
    }


def test_a_long_text_says_its_parts(memory: memgraph.MemGraph) -> None:
    text = " ".join(f"Sentence number {n} about the ledger and its audit." for n in range(60))
    result = memory.commands.remember(text)
    assert len(result.data["ids"]) > 2
    assert result.message.startswith(f"Remembered in {len(result.data['ids'])} parts: ")
    assert memory.commands.remember(text).data["ids"] == result.data["ids"]


def test_what_an_agent_saves_restores_nothing_that_the_user_forgot(memory: memgraph.MemGraph) -> None:
    (one,) = memory.commands.remember(TEXT).data["ids"]
    memory.commands.forget(TEXT)
    assert memory.commands.remember(TEXT, agent="agent").data["action"] == "created"
    assert memory.store.get_memory(one).is_suppressed


def test_a_text_costs_in_proportion_to_its_length(open_store: Callable[..., Any]) -> None:
    stores = (memgraph.MemGraph(open_store(f"store {number}")) for number in count())
    assert_grows_linearly(lambda size: next(stores).remember("a" * size), 800_000)
