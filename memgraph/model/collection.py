"""The event of a collection: what one run did with the memories that have faded."""

from __future__ import annotations

from typing import ClassVar

from memgraph.model.base import Count, Timestamp, Unit
from memgraph.model.payload import SYSTEM, Payload, WriteScope


class CollectionApplied(Payload):
    """Faded memories were collected; the memories' own events say which, this one how many."""

    TYPE = "collection.applied"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM

    applied_at: Timestamp
    threshold: Unit
    archived: Count
    deleted: Count
    summarised: Count
    floors_set: Count
    floors_cleared: Count
    landmarks: Count
    negatives: Count
    negative_landmarks: Count
    last_traces: Count
