"""What was forgotten stays forgotten, whatever build log says it again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.testing import FakeExtractor

TEXT = "The login test failed because the token had expired"


def log(build: str = "b1", **fields: Any) -> memgraph.BuildEventLog:
    times = {"started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T01:00:00Z"}
    return memgraph.BuildEventLog(build_id=build, project_id="shop", build_outcome="failure", **times, **fields)


def episode(content: str = TEXT, **fields: Any) -> dict[str, Any]:
    return {"type": "episodic", "content": content, "outcome": "negative", **fields}


def pipeline(store: Any, *found: Any) -> ConsolidationPipeline:
    results = [memgraph.ExtractionResult.from_memories(list(memories)) for memories in found]
    return ConsolidationPipeline(store, extractor=FakeExtractor(results))


@pytest.fixture
def forgotten(store: Any) -> str:
    """Return the id of a memory that a build made and that was then forgotten."""
    (memory_id,) = pipeline(store, [episode()]).consolidate(log("b0")).new_memory_ids
    store.suppress(memory_id)
    return str(memory_id)


def test_a_log_that_repeats_it_does_not_restore_it(store: Any, forgotten: str) -> None:
    digest = store.digest()
    result = pipeline(store, [episode(), episode("The cache was cold")]).consolidate(log())

    assert (result.memories_forgotten, result.memories_deduplicated, len(result.new_memory_ids)) == (1, 0, 1)
    assert "forgotten" in (result.notice or "")
    assert [memory.content for memory in store.every_memory()] == [TEXT, "The cache was cold"]
    assert [memory.content for memory in store.get_all_memories()] == ["The cache was cold"]
    assert store.get_memory(forgotten).evidence_build_ids == ["b0"]  # it takes no duplicates, either
    store.delete_memory(result.new_memory_ids[0])
    assert store.digest() == digest


@pytest.mark.parametrize(
    "other",
    [{"type": "semantic"}, {"privacy_tier": "private"}, {"trust_class": "web"}],
    ids=lambda one: next(iter(one)),
)
def test_a_repetition_of_any_type_is_left_out(store: Any, forgotten: str, other: dict[str, Any]) -> None:
    assert pipeline(store, [episode() | other]).consolidate(log()).memories_forgotten == 1


@pytest.mark.parametrize("other", [{"outcome": "positive"}, {"project_id": "bank"}], ids=lambda one: next(iter(one)))
def test_another_outcome_or_project_is_not_a_repetition(store: Any, forgotten: str, other: dict[str, Any]) -> None:
    result = pipeline(store, [episode() | other]).consolidate(log())

    assert (result.memories_forgotten, len(result.new_memory_ids)) == (0, 1)


def test_shared_knowledge_is_forgotten_in_every_project(store: Any) -> None:
    store.suppress(store.insert_memory(episode(trust_class="user")).id)

    assert pipeline(store, [episode()]).consolidate(log()).memories_forgotten == 1


def test_it_stays_forgotten_when_archived_too(store: Any, forgotten: str) -> None:
    store.archive(forgotten)

    assert pipeline(store, [episode()]).consolidate(log()).memories_forgotten == 1


@pytest.mark.parametrize("way", ["archive", "invalidate", "delete_memory"])
def test_memories_hidden_otherwise_may_be_added_again(store: Any, forgotten: str, way: str) -> None:
    store.unsuppress(forgotten)
    getattr(store, way)(forgotten)
    result = pipeline(store, [episode()]).consolidate(log())

    assert (result.memories_forgotten, len(result.new_memory_ids)) == (0, 1)


def test_the_nearer_match_decides(store: Any, vector_at: Any) -> None:
    def kept(content: str, vector: np.ndarray) -> str:
        return str(store.insert_memory(episode(content, project_id="shop", embedding=vector)).id)

    store.suppress(kept("forgotten", vector_at(0.95)))
    live = kept("Said in b2!", vector_at(0.9, axis=2))

    for build, vector, expected in (("b1", vector_at(1.0), (1, 0)), ("b2", vector_at(0.9, axis=2), (0, 1))):
        result = pipeline(store, [episode(f"said in {build}", embedding=vector)]).consolidate(log(build))
        assert (result.memories_forgotten, result.memories_deduplicated) == expected
    assert store.get_memory(live).evidence_build_ids == ["b2"]


def test_after_unsuppress_duplicates_are_merged_again(store: Any, forgotten: str) -> None:
    store.unsuppress(forgotten)
    result = pipeline(store, [episode()]).consolidate(log())

    assert (result.memories_forgotten, result.memories_deduplicated) == (0, 1)
    assert store.get_memory(forgotten).evidence_build_ids == ["b0", "b1"]


def test_remembering_it_explicitly_restores_it(store: Any, forgotten: str) -> None:
    memgraph.MemoryCommands(store).remember(TEXT)

    assert [memory.content for memory in store.get_all_memories()] == [TEXT]


def test_without_vectors_equal_texts_are_compared(open_store: Any) -> None:
    from memgraph.embedding import NoEmbedder

    store = open_store(embedder=NoEmbedder())
    store.suppress(store.insert_memory(episode(project_id="shop")).id)
    result = pipeline(store, [episode(TEXT.upper()), episode("The cache was cold")]).consolidate(log())

    assert (result.memories_forgotten, len(result.new_memory_ids)) == (1, 1)


def test_an_extractors_own_suppressed_memory_takes_no_duplicates(store: Any) -> None:
    result = pipeline(store, [episode(is_suppressed=True), episode()]).consolidate(log())

    assert result.memories_deduplicated == 0
