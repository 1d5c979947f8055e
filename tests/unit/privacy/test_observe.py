"""An observation discloses nothing of what the observing agent may not have, and changes nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph


@pytest.fixture
def memory(open_store: Any) -> Any:
    return memgraph.MemGraph(open_store(agents={"coach": {"domain": "health"}, "clerk": {"read": ["general"]}}))


@pytest.mark.parametrize("agent", ["agent", "planner"])
def test_what_is_known_in_private_is_unknown_to_who_may_not_have_it(memory: Any, agent: str) -> None:
    said = "I take insulin every morning"
    first = memory.save_observation(said, agent="coach")
    before = memory.store.get_memory(first.memory_id)
    again = memory.save_observation(said, agent=agent)
    assert (again.action, again.memory_id == first.memory_id) == ("created", False)
    assert memory.store.get_memory(first.memory_id) == before
    assert memory.save_observation(said, agent="coach").action == "consolidated"


def test_what_contradicts_it_is_not_told(memory: Any) -> None:
    secret = memory.save_observation(
        "The guest limit of the office party is 18", agent="coach", privacy_tier="private", context="health"
    )
    saved = memory.save_observation(
        "The guest limit of the office party is 20", agent="planner", privacy_tier="private", context="health"
    )
    assert saved.notice is None
    assert memory.store.links(secret.memory_id) == []
    told = memory.save_observation(
        "The guest limit of the office party is 22", agent="coach", privacy_tier="private", context="health"
    )
    assert told.notice is not None


def test_what_was_forgotten_is_not_told(memory: Any) -> None:
    secret = memory.save_observation("The office door is locked at 18:00", privacy_tier="private", context="health")
    memory.store.suppress(secret.memory_id)
    assert memory.save_observation("The office door is locked at 18:00", agent="coach").action == "forgotten"
    assert memory.save_observation("The office door is locked at 18:00", agent="planner").action == "created"


def test_domains_that_an_agent_may_not_read_count(memory: Any) -> None:
    known = memory.save_observation("The window seat is preferred", context="travel")
    assert (
        memory.save_observation("The window seat is preferred", context="travel", agent="clerk").memory_id
        != known.memory_id
    )
