"""Embedding of pending writes before any lock is taken, so that nobody waits for the model."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError
from memgraph.model.memory import Vector
from memgraph.ports import Embedder


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """Embed texts in one batch; None for a text that fails: the store keeps it without a vector and reports it."""
    try:
        made = embed_each(embedder, texts)
    except EmbeddingError:
        return [None] * len(texts)
    return [None if isinstance(vector, EmbeddingError) else vector for vector in made]
