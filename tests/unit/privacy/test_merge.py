"""What is made of several memories has the domain of the strictest: agents of another domain get nothing by it."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.errors import InvalidInputError


@pytest.fixture
def memory(store: Any) -> Any:
    return memgraph.MemGraph(store)


def stored(memory: Any, tier: str, domain: str | None, tag: str = "plan") -> str:
    given = {
        "type": "semantic",
        "content": "The plan for the week",
        "privacy_tier": tier,
        "domain": domain,
        "tags": [tag],
    }
    kept: str = memory.store.insert_memory(given).id
    return kept


@pytest.mark.parametrize("other", [("private", "journal"), ("private", None)])
def test_private_memories_of_different_domains_stay_apart(memory: Any, other: tuple[str, str | None]) -> None:
    ids = [stored(memory, "private", "health"), stored(memory, *other)]
    with pytest.raises(InvalidInputError, match="private memories of 'health' and"):
        memory.curation.merge(ids)
    assert all(memory.store.links(one) == [] for one in ids)


@pytest.mark.parametrize("kept", [("public", None), ("public", "work"), ("sensitive", "financial")])
def test_the_domain_comes_with_the_tier(memory: Any, kept: tuple[str, str | None]) -> None:
    ids = [stored(memory, *kept), stored(memory, "private", "Medical"), stored(memory, "private", "health")]
    memory.curation.merge(ids)
    merged = memory.store.get_memory(ids[0])
    assert (merged.privacy_tier, merged.domain) == ("private", "Medical")


def test_an_observation_takes_the_domain_of_a_stricter_episode(memory: Any) -> None:
    done = memory.save_episode("Book a doctor", "asked", "called the clinic", "success", context="health")
    for context in (None, "work"):
        saved = memory.save_observation("The clinic opens at nine", episode_id=done.episode_id, context=context)
        kept = memory.store.get_memory(saved.memory_id)
        assert (kept.privacy_tier, kept.domain) == ("private", "health")
