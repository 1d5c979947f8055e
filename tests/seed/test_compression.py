"""KIMI-MEMORY-02, required tests 12 to 15, and 05's on compression."""

from __future__ import annotations

import pytest

import memgraph
from memgraph.config import ConsolidationConfig


def episode(content, **fields):
    base = {"type": "episodic", "content": content, "project_id": "shop", "outcome": "negative"}
    return {"tags": ["auth", "jwt"], **base, **fields}


@pytest.fixture
def three(store):
    """Return three failures of three builds that share two tags and more."""
    texts = ["Short-lived tokens logged users out", "Refreshing tokens raced", "The token was lost behind the proxy"]
    tags = [["auth", "jwt"], ["auth", "jwt", "race"], ["jwt", "auth", "proxy"]]
    return store.insert_memories(
        [episode(text, tags=its, build_id=f"b{n}") for n, (text, its) in enumerate(zip(texts, tags, strict=True))]
    )


def test_12_compression_makes_a_semantic_memory_of_an_episodic_group(store, three):
    result = memgraph.ConsolidationPipeline(store).compress(10)

    assert (result.compressed, result.deleted) == (1, 0)
    (made,) = store.query_by_type("semantic")
    assert [made.id] == result.new_memory_ids
    assert made.supporting_memory_ids == sorted(one.id for one in three)
    assert (made.outcome, made.project_id, made.confidence) == ("negative", "shop", 0.7)
    assert sorted(made.tags) == ["auth", "jwt"]
    assert "in 3 builds" in made.content
    assert any(one.content.rstrip(".") in made.content for one in three)


@pytest.mark.parametrize(("builds", "confidence"), [(2, None), (3, 0.7), (4, 0.8), (5, 0.9), (7, 0.9)])
def test_12_confidence_follows_the_builds_of_evidence(store, builds, confidence):
    store.insert_memories([episode(f"Attempt {n} failed", build_id=f"b{n}") for n in range(builds)])
    memgraph.ConsolidationPipeline(store).compress(10)

    assert [one.confidence for one in store.query_by_type("semantic")] == ([confidence] if confidence else [])


def test_12_outcomes_projects_and_single_tags_make_no_group(store):
    apart = [{"outcome": "positive"}, {"project_id": "other"}, {"tags": ["auth"]}]
    store.insert_memories([episode(f"Attempt {n}") for n in range(2)])
    store.insert_memories([episode(f"Apart {n}", **fields) for n, fields in enumerate(apart)])

    assert memgraph.ConsolidationPipeline(store).compress(10).compressed == 0


def test_13_compression_does_not_run_on_the_wrong_cycle(store, three):
    result = memgraph.ConsolidationPipeline(store).compress(5)

    assert (result.compressed, result.deleted, result.archived) == (0, 0, 0)
    assert store.query_by_type("semantic") == []


def test_14_compression_runs_on_the_right_cycle(open_store, three):
    assert (
        memgraph.ConsolidationPipeline(open_store(), config=ConsolidationConfig(compression_cycle_interval=7))
        .compress(14)
        .compressed
        == 1
    )


def test_15_compression_preserves_the_source_episodes(store, three):
    memgraph.ConsolidationPipeline(store).compress(10)

    assert [store.get_memory(one.id) for one in three] == three


def test_08_a_compressed_group_is_recalled_as_a_generalisation(store, three):
    memory = memgraph.MemGraph(store)
    assert memory.maintenance.compress().compressed == 1

    found = memory.recall("tokens for auth", project="shop").memories
    assert [one.type for one in found if one.type == "semantic"] == ["semantic"]


def test_10_a_landmark_survives_compression(store):
    critical = store.insert_memory(episode("All orders were lost", tags=["critical-failure"], relevance_score=0.01))
    result = memgraph.ConsolidationPipeline(store).compress(10)

    assert (result.deleted, result.archived) == (0, 0)
    assert store.get_memory(critical.id).archived_at is None
