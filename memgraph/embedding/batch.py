"""Embeds texts and checks the results, so that a text on which the model fails does not affect the others."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.errors import EmbeddingError
from memgraph.model.memory import Vector
from memgraph.model.similarity import to_vector
from memgraph.ports import Embedder

PLAIN_TEXT = "memory"
"""A text that every working model can embed."""


def embed_each(embedder: Embedder, texts: Sequence[str]) -> list[Vector | EmbeddingError]:
    """Return for each text its vector (shape (dimension,), float32, finite, not zero, read-only), or the error that prevented it.

    A failing batch is halved until the texts at fault are found. If a plain text fails as well, the model is at fault, and its
    `EmbeddingError` is raised.
    """
    if not texts:
        return []
    try:
        found = _embed(embedder, texts)
    except EmbeddingError as error:
        _check_works(embedder)
        if len(texts) == 1:
            return [error]
        middle = len(texts) // 2
        return [*embed_each(embedder, texts[:middle]), *embed_each(embedder, texts[middle:])]
    if all(isinstance(one, EmbeddingError) for one in found):
        _check_works(embedder)
    return found


def embed_query(embedder: Embedder, text: str) -> Vector:
    """Return the vector of a query, shape (dimension,), float32, finite and not zero, or raise an `EmbeddingError`."""
    vector = _usable(embedder, embedder.embed_query(text))
    if isinstance(vector, EmbeddingError):
        raise vector
    return vector


def _embed(embedder: Embedder, texts: Sequence[str]) -> list[Vector | EmbeddingError]:
    made = embedder.embed(texts)
    if len(made) != len(texts):
        raise EmbeddingError(f"{embedder.name} returned {len(made)} vectors for {len(texts)} texts")
    return [_usable(embedder, row) for row in made]


def _usable(embedder: Embedder, row: object) -> Vector | EmbeddingError:
    try:
        vector = to_vector(row)
    except ValueError as error:
        return EmbeddingError(f"the vector that {embedder.name} returned {error}")
    if vector.size != embedder.dimension:
        return EmbeddingError(f"{embedder.name} returned {vector.size} dimensions instead of its {embedder.dimension}")
    return vector


def _check_works(embedder: Embedder) -> None:
    """Raise the model's error if it cannot embed even a plain text."""
    vector = _embed(embedder, [PLAIN_TEXT])[0]
    if isinstance(vector, EmbeddingError):
        raise vector
