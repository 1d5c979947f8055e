"""What was forgotten, or made private, is not told by what was made of it, from the next recall or list on."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.lifecycle.antipatterns import SOURCE as ERROR_ANALYSIS
from memgraph.lifecycle.compress import compress
from memgraph.lifecycle.experience import SOURCE as COMPRESSION
from memgraph.lifecycle.procedures import SOURCE as PROCEDURES
from memgraph.model.sleep import MADE_BY_SLEEP

TASK = "deploy the shop to the cluster"
PLACES = ("Ada's laptop", "the blue runner", "the office", "a train")


@pytest.fixture
def learned(store: Any) -> tuple[Any, list[str], str]:
    """Return a store, four episodes, and what was made of them."""
    episodes = [
        store.insert_memory(
            {
                "type": "episodic", "project_id": "shop", "outcome": "failure", "build_id": f"b{number}",
                "tags": ["deploy", "cluster"], "content": f"The deploy of the shop to the cluster from {place} timed out",
            }
        ).id
        for number, place in enumerate(PLACES)
    ]  # fmt: skip
    made = compress(store, embedder=store.embedder).new_memory_ids
    assert len(made) == 1
    assert made[0] in recalled(store)
    return store, episodes, made[0]


def recalled(store: Any) -> list[str]:
    found = memgraph.MemoryRetrieval(store).retrieve({"task_description": TASK, "project_id": "shop"})
    return [one.id for one in found.memories]


def listed(store: Any, **asked: Any) -> list[str]:
    return [one.id for one in store.list_memories(**asked)]


def test_the_names_are_those_of_the_phases() -> None:
    assert {COMPRESSION, ERROR_ANALYSIS, PROCEDURES} == MADE_BY_SLEEP


def test_what_tells_of_a_forgotten_episode_is_withheld_until_it_is_made_anew(learned: Any) -> None:
    store, episodes, made = learned
    store.suppress(episodes[0])
    assert made not in recalled(store)
    assert listed(store) == listed(store, type="episodic")  # and nothing else
    assert len(listed(store)) == len(episodes) - 1
    assert made in listed(store, include_suppressed=True)
    assert listed(store, state="suppressed") == [episodes[0]]
    assert made not in [one.memory.id for one in memgraph.MemoryRetrieval(store).search_memories(TASK)]
    store.unsuppress(episodes[0])
    assert made in recalled(store)
    assert made in listed(store)
    store.suppress(episodes[0])
    compress(store, embedder=store.embedder)
    assert made in recalled(store)
    assert PLACES[0] not in store.get_memory(made).content


def test_what_tells_of_an_episode_that_was_made_private_is_withheld_until_it_is_private_itself(learned: Any) -> None:
    store, episodes, made = learned
    store.update_memory(episodes[0], privacy_tier="private")
    assert made not in recalled(store) + listed(store)
    store.archive(made)
    assert listed(store, state="archived") == [made]
    store.unarchive(made)
    compress(store, embedder=store.embedder)
    assert (made in recalled(store)) == (store.get_memory(made).privacy_tier == "private")


def test_what_is_pinned_stays_though_its_evidence_was_forgotten(learned: Any) -> None:
    store, episodes, made = learned
    store.update_memory(made, is_pinned=True)
    for one in episodes:
        store.suppress(one)
    assert recalled(store) == listed(store) == [made]
    compress(store, embedder=store.embedder)
    assert recalled(store) == [made]  # who pinned it has vouched for it


def test_what_somebody_wrote_and_linked_is_told(store: Any) -> None:
    source = store.insert_memory({"type": "episodic", "content": "The deploy timed out", "project_id": "shop"}).id
    own = store.insert_memory({"type": "semantic", "content": "Deploy the shop at night", "project_id": "shop"}).id
    store.link(own, "DERIVED_FROM", source)
    store.suppress(source)
    assert recalled(store) == listed(store) == [own]
