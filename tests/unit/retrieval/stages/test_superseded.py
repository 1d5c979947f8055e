"""What supersedes a memory takes its place only where it may be seen itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import memgraph

OLD, NEW, NEWEST = "The queue is redis", "The queue is rabbit", "The queue is kafka"


@pytest.fixture
def chain(store: Any, embedder: Any) -> Any:
    """Make memories, each superseding the one before; `fields` are those of the last."""

    def make(*contents: str, **fields: Any) -> list[str]:
        ids = []
        for place, content in enumerate(contents):
            given = fields if place == len(contents) - 1 else {}
            ids.append(store.insert_memory(memgraph.EpisodicMemory(content=content, project_id="shop", **given)).id)
        for older, newer in pairwise(ids):
            store.link(newer, "SUPERSEDES", older)
        return ids

    return make


@pytest.fixture
def found(store: Any, embedder: Any) -> Any:
    retrieval = memgraph.MemoryRetrieval(store, embedder)

    def search(text: str = "queue", **scope: Any) -> set[str]:
        return {scored.memory.content for scored in retrieval.search_memories(text, **{"project_id": "shop", **scope})}

    return search


def test_the_newest_memory_replaces_all(chain: Any, found: Any) -> None:
    chain(OLD, NEW, NEWEST)

    assert found() == {NEWEST}


@pytest.mark.parametrize(
    "fields",
    [
        {"task_id": "t1"},
        {"trust_class": "web"},
        {"is_suppressed": True},
        {"archived_at": "2026-01-01"},
        {"invalid_at": "2026-01-01"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_an_invisible_newer_memory_hides_nothing(chain: Any, found: Any, fields: dict[str, Any]) -> None:
    chain(OLD, NEW, NEWEST, **fields)

    assert found(privacy_tiers=["public"], trust_classes=["agent"]) == {NEW}


def test_a_newer_memory_that_the_agent_may_not_have_is_not_replaced_by_an_older_one(chain: Any, found: Any) -> None:
    chain(OLD, NEW, NEWEST, privacy_tier="private")
    assert found() == set()


def test_a_newer_memory_of_another_project_hides_nothing(store: Any, chain: Any, found: Any) -> None:
    old = chain(OLD)[0]
    other = store.insert_memory(memgraph.EpisodicMemory(content=NEW, project_id="bank")).id
    store.link(other, "SUPERSEDES", old)

    assert found() == {OLD}
    assert found(project_id="bank") == {NEW}


def test_invisible_memories_in_a_chain_are_skipped(store: Any, chain: Any, found: Any) -> None:
    _, middle, _ = chain(OLD, NEW, NEWEST)
    store.update_memory(middle, is_suppressed=True)

    assert found() == {NEWEST}


def test_a_cycle_leaves_its_last(store: Any, chain: Any, found: Any) -> None:
    ids = chain(OLD, NEW, NEWEST)
    store.link(ids[0], "SUPERSEDES", ids[-1])

    assert found() == {NEWEST}


def test_of_several_newer_ones_the_last_recorded_takes_the_score(store: Any, chain: Any, embedder: Any) -> None:
    old = chain("Postmortem of the outage in Vienna")[0]
    first, last = (
        store.insert_memory(memgraph.EpisodicMemory(content=content, project_id="shop")).id
        for content in ("Entirely different A", "Entirely different B")
    )
    store.link(last, "SUPERSEDES", old)
    store.link(first, "SUPERSEDES", old)

    best = memgraph.MemoryRetrieval(store, embedder).search_memories("Postmortem of the outage in Vienna", limit=5)

    assert [scored.memory.id for scored in best] == [last, first]


def test_ask_returns_the_older_memory_if_the_newer_is_not_visible(store: Any, chain: Any, embedder: Any) -> None:
    ids = chain(OLD, NEW)
    commands = memgraph.MemoryCommands(store, embedder)

    assert commands.ask("queue").data["ids"] == [ids[1]]
    store.update_memory(ids[1], is_suppressed=True)
    assert commands.ask("queue").data["ids"] == [ids[0]]
