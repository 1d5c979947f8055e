"""KIMI-MEMORY-02, required tests 1 to 11 and 20 (12 to 19 belong to compression)."""

from __future__ import annotations

import time

import numpy as np
import pytest

import memgraph
from memgraph.config import ConsolidationConfig
from memgraph.model.results.learning import ConsolidationResult
from memgraph.model.similarity import cosine_similarity

NOW = "2026-02-01T09:00:00.000Z"


def build_log(build_id="build-1"):
    return memgraph.BuildEventLog(
        build_id=build_id,
        project_id="shop",
        tasks=[{"task_id": "t1", "agent_name": "MARS", "description": "Add refresh tokens", "outcome": "failure"}],
        build_outcome="failure",
        started_at="2026-01-31T10:00:00Z",
        completed_at="2026-01-31T11:00:00Z",
    )


def found(content, **fields):
    """Say what an extractor found, in the seed's own shape."""
    base = {"type": "episodic", "outcome": "negative", "agentsInvolved": ["MARS"], "tags": ["auth"]}
    return {**base, "content": content, **fields}


def extractor(*contents):
    from memgraph.testing import FakeExtractor

    return FakeExtractor([found(content) for content in contents])


class Batches:
    """An embedder that notes each batch before it hands it on, and can take its time over it."""

    def __init__(self, inner, *, takes_s=0.0):
        self.inner, self.takes_s, self.batches = inner, takes_s, []
        self.name, self.dimension = inner.name, inner.dimension

    def embed(self, texts):
        self.batches.append(list(texts))
        start = time.monotonic()
        while time.monotonic() - start < self.takes_s:  # busy, as a slow model would be
            pass
        return self.inner.embed(texts)

    def embed_query(self, text):
        return self.inner.embed_query(text)


@pytest.fixture
def existing(store, vector_at):
    """Return a memory that a candidate may or may not duplicate."""
    return store.insert_memory(
        memgraph.EpisodicMemory(
            content="Tokens failed",
            outcome="negative",
            project_id="shop",
            source_event_ids=["e1"],
            relevance_score=0.8,
            embedding=vector_at(1.0),
        )
    )


@pytest.fixture
def apart(fake_embedder, vector_at):
    """Make an embedder under which the given texts have nothing in common."""
    return lambda texts: fake_embedder({text: vector_at(0.0, axis=n) for n, text in enumerate(texts, start=1)})


def test_01_extracts_memories_from_build_event_log(store, apart):
    texts = ["Tokens failed", "Sessions worked", "The proxy strips headers"]
    pipeline = memgraph.ConsolidationPipeline(store, apart(texts), extractor(*texts))

    result = pipeline.consolidate(build_log())

    assert result.memories_extracted == 3
    inserted = [store.get_memory(memory_id) for memory_id in result.new_memory_ids]
    assert [memory.content for memory in inserted] == texts
    assert {(memory.type, memory.outcome) for memory in inserted} == {("episodic", "negative")}
    assert {(memory.project_id, memory.build_id) for memory in inserted} == {("shop", "build-1")}
    assert all(memory.agents_involved == ["MARS"] and memory.tags == ["auth"] for memory in inserted)
    assert store.get_stats().total == 3


def test_02_computes_embeddings_for_each_candidate(store, apart):
    texts = ["Tokens failed", "Sessions worked", "The proxy strips headers"]
    embedder = Batches(apart(texts))

    result = memgraph.ConsolidationPipeline(store, embedder, extractor(*texts)).consolidate(build_log())

    assert [text for batch in embedder.batches for text in batch] == texts  # each text once
    assert len(embedder.batches) == 2  # the first one tells how many fit into the time
    for memory_id in result.new_memory_ids:
        memory = store.get_memory(memory_id)
        np.testing.assert_array_equal(memory.embedding, embedder.inner.embed([memory.content])[0])


def test_03_deduplicates_against_existing_memories(store, existing, fake_embedder, vector_at):
    embedder = fake_embedder({"Refresh tokens failed again": vector_at(0.85)})
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor("Refresh tokens failed again"))

    assert pipeline.deduplicate(vector_at(0.85), "episodic").id == existing.id
    result = pipeline.consolidate(build_log())

    assert (result.memories_extracted, result.memories_deduplicated) == (1, 1)
    assert result.new_memory_ids == []
    assert [memory.id for memory in store.get_all_memories()] == [existing.id]


def test_04_does_not_deduplicate_below_threshold(store, existing, fake_embedder, vector_at):
    embedder = fake_embedder({"Something near it": vector_at(0.75)})
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor("Something near it"))

    assert pipeline.deduplicate(vector_at(0.75), "episodic") is None
    result = pipeline.consolidate(build_log())

    assert (result.memories_extracted, result.memories_deduplicated) == (1, 0)
    (new_id,) = result.new_memory_ids
    assert {memory.id for memory in store.get_all_memories()} == {existing.id, new_id}


@pytest.mark.parametrize(("cosine", "same"), [(0.83, True), (0.81, False)])
def test_04_the_threshold_is_0_82(store, existing, embedder, vector_at, cosine, same):
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor())

    duplicate = pipeline.deduplicate(vector_at(cosine), "episodic", project_id="shop")

    assert (duplicate is not None) is same
    assert pipeline.deduplicate(vector_at(1.0), "semantic") is None
    assert pipeline.deduplicate(vector_at(1.0), "episodic", project_id="another") is None


def test_04_opposite_outcomes_are_no_duplicates(store, existing, fake_embedder, vector_at):
    from memgraph.testing import FakeExtractor

    embedder = fake_embedder({"Tokens worked": vector_at(0.95)})
    candidates = FakeExtractor([found("Tokens worked", outcome="positive")])

    result = memgraph.ConsolidationPipeline(store, embedder, candidates).consolidate(build_log())

    assert result.memories_deduplicated == 0
    assert store.get_stats().total == 2
    assert store.get_memory(existing.id).content == "Tokens failed"


def test_05_merges_source_event_ids_on_dedup(store, existing, embedder):
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor())

    merged = pipeline.merge(
        existing, {"content": "Failed", "sourceEventIds": ["e2", "e1", "e3"], "outcome": "negative"}
    )

    assert merged.id == existing.id
    assert merged.source_event_ids == ["e1", "e2", "e3"]
    assert store.get_memory(existing.id) == merged


def test_06_averages_relevance_score_on_merge(store, existing, embedder):
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor())

    merged = pipeline.merge(existing, memgraph.EpisodicMemory(content="Failed", outcome="negative", project_id="shop"))

    assert merged.relevance_score == pytest.approx((0.8 + 1.0) / 2)
    assert store.get_memory(existing.id).relevance_score == pytest.approx(0.9)
    assert store.get_stats().total == 1


def test_07_replaces_content_when_candidate_is_more_detailed(store, existing, fake_embedder, vector_at):
    longer = "Tokens failed because the proxy strips the header"
    embedder = fake_embedder({longer: vector_at(0.9, axis=5)})
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor())

    pipeline.merge(existing, {"content": longer, "outcome": "negative"})

    read = store.get_memory(existing.id)
    assert read.content == longer
    np.testing.assert_array_equal(read.embedding, embedder.embed([longer])[0])  # embedded anew


def test_08_keeps_content_when_existing_is_more_detailed(store, existing, embedder):
    pipeline = memgraph.ConsolidationPipeline(store, embedder, extractor())

    pipeline.merge(existing, {"content": "Failed", "outcome": "negative"})

    read = store.get_memory(existing.id)
    assert read.content == "Tokens failed"
    np.testing.assert_array_equal(read.embedding, existing.embedding)


def test_09_enforces_max_extraction_count(store, apart):
    texts = [f"Finding number {n}" for n in range(12)]
    pipeline = memgraph.ConsolidationPipeline(store, apart(texts), extractor(*texts))

    result = pipeline.consolidate(build_log())

    assert result.memories_extracted == 8
    assert [store.get_memory(memory_id).content for memory_id in result.new_memory_ids] == texts[:8]
    assert store.get_stats().total == 8


def test_10_enforces_time_limit(store, open_store, apart):
    texts = ["Tokens failed", "Sessions worked", "The proxy strips headers"]
    hurried = ConsolidationConfig(max_duration_ms=1)
    slow = Batches(apart(texts), takes_s=0.01)

    cut = memgraph.ConsolidationPipeline(store, slow, extractor(*texts), hurried).consolidate(build_log())

    assert not cut.complete
    assert slow.batches == [texts[:1]]
    assert len(cut.new_memory_ids) == 1
    assert store.get_stats().total == len(cut.new_memory_ids)

    resumed = memgraph.ConsolidationPipeline(store, apart(texts), extractor(*texts)).consolidate(build_log())

    assert resumed.complete
    straight = open_store("straight")
    memgraph.ConsolidationPipeline(straight, apart(texts), extractor(*texts)).consolidate(build_log())
    assert sorted(memory.content for memory in store.get_all_memories()) == sorted(texts)
    assert store.digest() == straight.digest()


def test_11_returns_correct_consolidation_result_stats(store, existing, fake_embedder, vector_at):
    vectors = {"Tokens failed again": vector_at(0.9), "First": vector_at(0.0, axis=2), "Second": vector_at(0.0, axis=3)}
    pipeline = memgraph.ConsolidationPipeline(store, fake_embedder(vectors), extractor(*vectors))

    result = pipeline.consolidate(build_log())

    assert isinstance(result, ConsolidationResult)
    assert (result.build_id, result.consolidated_at) == ("build-1", NOW)
    assert (result.memories_extracted, result.memories_deduplicated) == (3, 1)
    assert (result.memories_compressed, result.memories_deleted) == (0, 0)
    assert [store.get_memory(memory_id).content for memory_id in result.new_memory_ids] == ["First", "Second"]
    assert result.duration_ms >= 0
    assert result.complete


def test_11_consolidating_the_same_log_again_changes_nothing(store, apart):
    texts = ["Tokens failed", "Sessions worked"]
    pipeline = memgraph.ConsolidationPipeline(store, apart(texts), extractor(*texts))
    pipeline.consolidate(build_log())
    digest = store.digest()

    again = pipeline.consolidate(build_log())

    assert again.new_memory_ids == []
    assert store.digest() == digest
    assert {memory.relevance_score for memory in store.get_all_memories()} == {1.0}


def test_20_cosine_similarity_of_identical_vectors():
    vector = np.random.default_rng(1).standard_normal(64)

    assert cosine_similarity(vector, vector) == pytest.approx(1.0)
    assert cosine_similarity(vector, -3 * vector) == pytest.approx(-1.0)
    assert cosine_similarity([1, 0], [0, 1]) == 0.0
    assert cosine_similarity([3, 4], [4, 3]) == pytest.approx(24 / 25)
    assert cosine_similarity([], []) == 0.0
    assert cosine_similarity([0, 0], [1, 2]) == 0.0
    with pytest.raises(memgraph.InvalidInputError):
        cosine_similarity([1, 0], [1, 0, 0])
