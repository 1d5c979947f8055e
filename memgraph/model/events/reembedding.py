"""Events about the vectors of many memories: new ones of another embedding model, and lost rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Count, Name, Strict, Timestamp
from memgraph.model.events.payload import JOURNAL, SYSTEM, Payload, Policy, Sha256, nothing
from memgraph.model.ids import MemoryId


class PlacedVector(Strict):
    """The location of one memory's vector in the file of the model that is named beside it."""

    id: MemoryId
    row: Count
    sha256: Sha256


class MemoryReembedded(Payload):
    """Memories of any write scope have new vectors, of `model`, for their unchanged texts.

    It follows the event that makes `model` the store's, in the same commit, so that all of them change or none. Since version 2 the list may be
    empty: a retention takes out the vectors of deleted memories.
    """

    TYPE = "memory.reembedded"
    VERSION = 2
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        purge="stays",
        is_reduced=True,
        agents="whole",
        irreversible="it stores vectors of another embedding model; `memgraph reembed` switches back",
        told="embedded again with another model",
        has_links=False,
    )

    model: Name
    embedded_at: Timestamp
    vectors: Annotated[list[PlacedVector], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [vector.id for vector in self.vectors]


class VectorsLost(Payload):
    """Rows of a model's file hold other bytes than the events before this one named, and no memory uses them.

    They are no longer checked, because nothing is left to compute them from, or nothing needs them. A later event that names
    such a row takes precedence.
    """

    TYPE = "vectors.lost"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = replace(JOURNAL, agents="whole")

    model: Name
    rows: Annotated[list[Count], Field(min_length=1, max_length=MAX_ITEMS)]
    recorded_at: Timestamp
