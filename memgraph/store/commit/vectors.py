"""The store's vectors: all from one model, stored bit for bit as they were given or made."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from memgraph.embedding import setting_of
from memgraph.errors import InvalidInputError, ModelMismatchError
from memgraph.index.index import Index
from memgraph.journal.vectors import NamedVectors
from memgraph.model.memory import Vector
from memgraph.model.similarity import to_vector
from memgraph.ports import Embedder, Row


class VectorModel(NamedTuple):
    """The model of a store's vectors; `dimension` 0 means that there is none, and no vectors are stored."""

    name: str
    dimension: int


def vector_model(named: NamedVectors, embedder: Embedder) -> VectorModel:
    """Return the model of the store's vectors: that of the first vector, or the embedder's until there is one."""
    if named.model is not None:
        return VectorModel(named.model, named.dimension)
    return VectorModel(embedder.name, embedder.dimension)


def check_is_embedder(embedder: object) -> None:
    """Reject an object that is not an embedder."""
    if not (isinstance(getattr(embedder, "name", None), str) and callable(getattr(embedder, "embed", None))):
        raise InvalidInputError("must be an embedder", field="embedder", value=embedder)


def check_model(named: NamedVectors, embedder: Embedder, *, in_use: Embedder | None = None) -> None:
    """Reject an embedder whose vectors are not comparable with the store's; one that makes none fits any store."""
    check_is_embedder(embedder)
    stored, given = vector_model(named, in_use or embedder), VectorModel(embedder.name, embedder.dimension)
    if given.dimension and stored != given:
        raise ModelMismatchError(stored=stored, given=given, setting=setting_of(stored.name))


def has_vector(row: Row, model: str | None) -> bool:
    """Return whether a memory's row has a vector of this model; vectors of other models do not count."""
    return "vector_row" in row and row.get("embedding_model") == model


def rows_in_use(index: Index) -> dict[int, str]:
    """Return the vector rows of live memories under the store's model, each with its memory's id."""
    rows = index.column("vector_row")
    slots = np.flatnonzero(index.column("is_live") & (rows >= 0))
    return {int(rows[slot]): index.ids.names[slot] for slot in slots.tolist()}


def checked_vector(vector: object, model: VectorModel) -> Vector:
    """Return a vector after validation: it has the model's dimension, and is finite and not zero."""
    try:
        kept = to_vector(vector)
    except ValueError as error:
        raise InvalidInputError(str(error), field="embedding", value=vector) from None
    shown = f"{kept.size} dimensions"
    if not model.dimension:
        problem = "cannot be stored without an embedding model; omit it, or set embedding_model to minilm"
        raise InvalidInputError(problem, field="embedding", value=shown)
    if kept.size != model.dimension:
        problem = f"must have {model.dimension} dimensions, as {model.name} has"
        raise InvalidInputError(problem, field="embedding", value=shown)
    return kept
