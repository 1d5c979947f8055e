"""Results of decay, collection, re-embedding and vector repair."""

from __future__ import annotations

from pydantic import Field

from memgraph.model.base import Count, Model, Name, Timestamp, Unit
from memgraph.model.memory import MemoryType


class DecayResult(Model):
    """Number of live, unpinned memories for which the curve was evaluated, and of those now below the threshold."""

    updated: Count
    below_threshold: Count


class CollectionResult(Model):
    """Result of a collection, or of its preview.

    Attributes
    ----------
    archived, deleted : int
        Faded memories that were archived or deleted.
    summarised : int
        Episodes that were summarised because they were not used for 30 days.
    floors_set, floors_cleared : int
        New landmarks; former landmarks.
    landmarks : int
        Landmarks among the memories that are neither archived nor deleted.
    negatives, negative_landmarks : int
        Negative memories among the same, and how many of them are landmarks.
    landmark_share : float
        Share of landmarks among the negative memories, in [0, 1].
    last_traces : int
        Faded memories that stay because the memories that they were distilled from no longer exist.
    """

    archived: Count = 0
    deleted: Count = 0
    summarised: Count = 0
    floors_set: Count = 0
    floors_cleared: Count = 0
    landmarks: Count = 0
    negatives: Count = 0
    negative_landmarks: Count = 0
    landmark_share: Unit = 0.0
    last_traces: Count = 0


class FadedMemory(Model):
    """A memory that a collection would archive or delete; `content` is cut to 60 characters."""

    id: str
    type: MemoryType
    content: str
    relevance: float
    access_count: Count
    last_accessed_at: Timestamp | None = None


class ChangedRecall(Model):
    """A retrieval that returned memories which a collection would archive or delete, and their scores there."""

    query_id: str
    retrieved_at: Timestamp
    agent_name: str | None = None
    project_id: str | None = None
    scores: dict[str, float]


class CollectionPreview(CollectionResult):
    """Preview of a collection.

    Attributes
    ----------
    memory_ids : list of str
        All memories that would be archived or deleted, in that order.
    memories : list of FadedMemory
        The first 100 of them.
    recalls : list of ChangedRecall
        Retrievals since `recalls_since` that returned one of them, newest first.
    recalls_in_all : int
        Number of retrievals since then.
    """

    memory_ids: list[str] = Field(default_factory=list)
    memories: list[FadedMemory] = Field(default_factory=list)
    recalls: list[ChangedRecall] = Field(default_factory=list)
    recalls_since: Timestamp
    recalls_in_all: Count = 0


class ReembedResult(Model):
    """Result of changing a store to another embedding model.

    Attributes
    ----------
    model : str
        The store's embedding model now.
    dimension : int
        Length of its vectors.
    embedded : int
        Vectors computed.
    reused : int
        Memories whose vector an earlier, interrupted run had computed.
    awaiting : int
        Memories without a vector of this model, found by text alone.
    """

    model: Name
    dimension: Count
    embedded: Count
    reused: Count
    awaiting: Count


class VectorRepair(Model):
    """Result of a repair of the vector files.

    Attributes
    ----------
    checked, damaged : int
        Rows compared with their SHA-256, and those that differ or are missing.
    restored : int
        Rows restored to their recorded bytes.
    replaced : int
        Memories with a new vector, because the model no longer produces the old one.
    lost : int
        Rows recorded as lost, which no memory uses.
    failed : int
        Memories on whose text the model fails; they are found by text alone.
    """

    checked: Count
    damaged: Count
    restored: Count
    replaced: Count
    lost: Count
    failed: Count
