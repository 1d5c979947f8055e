"""Events about the vectors of many memories: new ones of another embedding model, and rows that are lost."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Count, Name, Strict, Timestamp
from memgraph.model.events.payload import SYSTEM, Payload, Sha256
from memgraph.model.ids import MemoryId


class PlacedVector(Strict):
    """Where one memory's vector lies in the file of a model that is named beside it."""

    id: MemoryId
    row: Count
    sha256: Sha256


class MemoryReembedded(Payload):
    """Memories have new vectors, of `model`, for the texts that they had; of whatever write scope they are.

    It follows the event that makes `model` the store's, in the same commit: all of them change together or none.
    """

    TYPE = "memory.reembedded"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    model: Name
    embedded_at: Timestamp
    vectors: Annotated[list[PlacedVector], Field(min_length=1, max_length=MAX_ITEMS)]

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [vector.id for vector in self.vectors]


class VectorsLost(Payload):
    """Rows of a model's file hold other bytes than the events before this one named, and no memory uses them.

    They are not looked for any more: nothing is left to make them of, or nothing needs them. An event that names such a row
    later counts.
    """

    TYPE = "vectors.lost"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    model: Name
    rows: Annotated[list[Count], Field(min_length=1, max_length=MAX_ITEMS)]
    recorded_at: Timestamp
