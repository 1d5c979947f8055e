"""Embedding with an eye on what comes back: a text that a model fails on does not cost the others their vectors."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.errors import EmbeddingError
from memgraph.model.memory import Vector
from memgraph.model.similarity import to_vector
from memgraph.ports import Embedder

_PLAIN_TEXT = "memory"
"""What every working model can embed."""


def embed_each(embedder: Embedder, texts: Sequence[str]) -> list[Vector | EmbeddingError]:
    """Return for each text its vector, or why it has none.

    A batch that fails is halved until the texts at fault are found, unless a plain text fails as well: then it is the model.

    Returns
    -------
    list of (ndarray, shape (dimension,), float32) or EmbeddingError
        Vectors are finite, not zero, and read-only.

    Raises
    ------
    EmbeddingError
        The model does not work at all.
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
    """Return the vector of a query, shape (dimension,), float32, finite and not zero.

    Raises
    ------
    EmbeddingError
        There is none to be had.
    """
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
    """Raise what keeps the model from embedding anything."""
    vector = _embed(embedder, [_PLAIN_TEXT])[0]
    if isinstance(vector, EmbeddingError):
        raise vector
