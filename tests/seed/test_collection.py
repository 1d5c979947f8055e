"""KIMI-MEMORY-02, required tests 16 to 19, and 05's on landmarks."""

from __future__ import annotations

import pytest

import memgraph


def episode(content, **fields):
    base = {
        "type": "episodic",
        "content": content,
        "project_id": "shop",
        "tags": ["auth", "jwt"],
        "outcome": "negative",
    }
    return {**base, **fields}


@pytest.fixture
def memory(store):
    """Return everything that works on this test's store."""
    return memgraph.MemGraph(store)


@pytest.mark.parametrize("setting", ["archive", "delete"])
def test_16_garbage_collection_takes_low_relevance_memories(open_store, setting):
    store = open_store(garbage_collection=setting)
    faded = store.insert_memory(episode("Tokens failed", relevance_score=0.05, access_count=1))
    kept = [
        store.insert_memory(episode("Tokens failed again", relevance_score=0.1)),
        store.insert_memory(episode("Used three times", relevance_score=0.05, access_count=3)),
        store.insert_memory(episode("Forgotten by the user", relevance_score=0.05, is_suppressed=True)),
    ]

    result = memgraph.MemGraph(store).maintenance.collect()

    if setting == "delete":
        assert (result.archived, result.deleted) == (0, 1)
        assert store.get_memory(faded.id) is None
        assert store.undelete(faded.id) == faded
    else:
        assert (result.archived, result.deleted) == (1, 0)
        assert (store.get_memory(faded.id).archived_at, store.get_memory(faded.id).archive_reason) == (
            store.now(),
            "faded",
        )
    assert [store.get_memory(one.id) for one in kept] == kept


def test_17_pinned_memories_stay(store, memory):
    pinned = store.insert_memory(episode("Tokens failed", relevance_score=0.01, is_pinned=True))
    store.insert_memory(episode("Tokens failed again"))

    assert memory.maintenance.collect().archived == 0
    assert store.get_memory(pinned.id) == pinned


def test_18_landmarks_stay_at_0_1(store, memory, clock):
    only = store.insert_memory(episode("The payment was charged twice", relevance_score=0.04))

    result = memory.maintenance.collect()

    assert (result.archived, result.landmarks, result.floors_set) == (0, 1, 1)
    assert store.get_memory(only.id).relevance_score == 0.1
    clock.advance(days=3650)
    assert memory.maintenance.collect().archived == 0
    assert store.get_memory(only.id).relevance_score == 0.1


@pytest.mark.parametrize("tag", ["critical-failure", "data-loss", "security-incident", "user-escalation"])
def test_19_some_tags_make_a_landmark(store, tag):
    pipeline = memgraph.ConsolidationPipeline(store)

    marked = store.insert_memory(episode("A backup was lost", tags=["ops", tag], outcome="positive"))
    plain = store.insert_memory(episode("A backup was made", tags=["ops"], outcome="positive"))

    assert pipeline.is_landmark(marked)
    assert not pipeline.is_landmark(plain)


def test_05_landmark_memories_survive_garbage_collection(store, memory):
    critical = store.insert_memory(episode("The database is gone", tags=["critical-failure"], relevance_score=0.01))
    twin = store.insert_memory(episode("The database is back", tags=["critical-failure"], outcome="positive"))

    memory.maintenance.collect()

    assert store.get_memory(critical.id).archived_at is None
    assert store.get_memory(critical.id).relevance_score == 0.1
    assert store.get_memory(twin.id).floor == 0.1


def test_05_pinned_memories_persist_through_decay(store, memory, clock):
    pinned = store.insert_memory(episode("Deploy on Tuesdays", is_pinned=True))
    clock.advance(days=400)

    memory.retrieval.apply_decay()
    memory.maintenance.collect()

    assert store.get_memory(pinned.id).relevance_score == 1.0
