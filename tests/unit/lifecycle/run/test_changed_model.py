"""The store changes its embedding model beside what is just written, and before what is written next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import memgraph
from memgraph.errors import ModelMismatchError
from memgraph.testing import FakeEmbedder, FakeExtractor

FACT = "The user prefers a window seat on long flights"
LOG = {
    "build_id": "b1", "project_id": "shop", "build_outcome": "failure", "started_at": "2026-01-01", "completed_at": "2026-01-02",
}  # fmt: skip


class Watched(FakeEmbedder):
    """Beside its next call something happens, once."""

    beside: Callable[[], Any] | None = None

    def embed(self, texts: Sequence[str]) -> Any:
        made = super().embed(texts)
        beside, self.beside = self.beside, None
        if beside:
            beside()
        return made


@pytest.fixture
def old() -> Watched:
    return Watched(64, "old")


@pytest.fixture
def memory(open_store: Any, old: Watched) -> memgraph.MemGraph:
    return memgraph.MemGraph(
        open_store(embedder=old),
        extractor=FakeExtractor([memgraph.ExtractionResult.from_memories([{"type": "episodic", "content": FACT}])]),
    )


def changes_beside(memory: memgraph.MemGraph, old: Watched) -> FakeEmbedder:
    """Let the store change, while the old model embeds, to another one of the same length; return that."""
    new = FakeEmbedder(64, "new", vectors={text: [1.0, *[0.0] * 63] for text in (FACT, "Unlike")})
    old.beside = lambda: memory.store.reembed(new)
    return new


def assert_all_of(memory: memgraph.MemGraph, new: FakeEmbedder) -> None:
    for kept in memory.store.get_all_memories():
        assert kept.embedding_model == "new"
        assert kept.embedding == pytest.approx(new._vector(kept.content))


@pytest.mark.parametrize("is_empty", [False, True])
def test_an_observation_is_rejected_and_its_retry_succeeds(
    memory: memgraph.MemGraph, old: Watched, is_empty: bool
) -> None:
    if not is_empty:
        memory.store.insert_memory({"type": "semantic", "content": "Deploy on Tuesdays only"})
    new = changes_beside(memory, old)
    with pytest.raises(ModelMismatchError):
        memory.save_observation(FACT)
    assert FACT not in [kept.content for kept in memory.store.get_all_memories()]
    assert memory.save_observation(FACT).action == "created"
    assert_all_of(memory, new)


def test_feedback_is_rejected_and_its_retry_succeeds(memory: memgraph.MemGraph, old: Watched) -> None:
    episode_id = memory.save_episode("Book a flight", "Asked for the seat", "Booked 12A", "success").episode_id
    new = changes_beside(memory, old)
    with pytest.raises(ModelMismatchError):
        memory.update_episode_with_feedback(episode_id, "love")
    assert memory.store.get_memory(episode_id).user_feedback is None  # type: ignore[union-attr]
    assert memory.update_episode_with_feedback(episode_id, "love").user_feedback == "2026-02-01 love"
    assert_all_of(memory, new)


def test_consolidation_continues_with_the_new_model(memory: memgraph.MemGraph) -> None:
    memory.store.insert_memory({"type": "semantic", "content": "Deploy on Tuesdays only"})
    new = FakeEmbedder(32, "new")
    memory.store.reembed(new)
    assert len(memory.consolidation.consolidate(LOG).new_memory_ids) == 1
    assert len(memory.store.get_all_memories()) == 2
    assert_all_of(memory, new)
    assert memory.store.verify() > 0


def test_a_log_is_rejected_during_the_change_and_its_retry_succeeds(memory: memgraph.MemGraph, old: Watched) -> None:
    new = changes_beside(memory, old)
    with pytest.raises(ModelMismatchError):
        memory.consolidation.consolidate(LOG)
    assert memory.consolidation.consolidate(LOG).new_memory_ids
    assert_all_of(memory, new)
