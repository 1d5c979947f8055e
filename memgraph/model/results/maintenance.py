"""What decay, collection, re-embedding and vector repair did."""

from __future__ import annotations

from pydantic import Field

from memgraph.model.base import Count, Model, Name, Timestamp, Unit
from memgraph.model.memory import MemoryType


class DecayResult(Model):
    """How many live, unpinned memories the curve was read for, and how many of them are now below the threshold."""

    updated: Count
    below_threshold: Count


class CollectionResult(Model):
    """What a collection did, or would do.

    Attributes
    ----------
    archived, deleted : int
        Memories that have faded and were put away.
    summarised : int
        Episodes that were given a summary, because they were not used for 30 days.
    floors_set, floors_cleared : int
        New landmarks; what is no landmark any more.
    landmarks : int
        Landmarks among what is neither archived nor deleted.
    negatives, negative_landmarks : int
        Negative memories among the same, and how many of them are landmarks.
    landmark_share : float
        Of the negatives, in [0, 1].
    last_traces : int
        Faded memories that stay because they are what is left of the memories that they were distilled from.
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
    """A memory that a collection would put away; `content` is cut to 60 characters."""

    id: str
    type: MemoryType
    content: str
    relevance: float
    access_count: Count
    last_accessed_at: Timestamp | None = None


class ChangedRecall(Model):
    """A retrieval that returned memories which a collection would put away, and their scores there."""

    query_id: str
    retrieved_at: Timestamp
    agent_name: str | None = None
    project_id: str | None = None
    scores: dict[str, float]


class CollectionPreview(CollectionResult):
    """What a collection would do now.

    Attributes
    ----------
    memory_ids : list of str
        All memories that would be put away, in the order in which they would go.
    memories : list of FadedMemory
        The first 100 of them.
    recalls : list of ChangedRecall
        Retrievals since `recalls_since` that had returned one of them, the newest first.
    recalls_in_all : int
        Retrievals since then.
    """

    memory_ids: list[str] = Field(default_factory=list)
    memories: list[FadedMemory] = Field(default_factory=list)
    recalls: list[ChangedRecall] = Field(default_factory=list)
    recalls_since: Timestamp
    recalls_in_all: Count = 0


class ReembedResult(Model):
    """What changing a store to another embedding model did.

    Attributes
    ----------
    model : str
        What makes the store's vectors now.
    dimension : int
        Their length.
    embedded : int
        Vectors that were made.
    reused : int
        Memories whose vector an earlier run that was stopped had made.
    awaiting : int
        Memories left without a vector of this model, found by text alone.
    """

    model: Name
    dimension: Count
    embedded: Count
    reused: Count
    awaiting: Count


class VectorRepair(Model):
    """What a repair of the vector files found and did.

    Attributes
    ----------
    checked, damaged : int
        Rows that were compared with their SHA-256, and those that differ or are missing.
    restored : int
        Rows that were written back as they were.
    replaced : int
        Memories that were given a new vector, because the model does not make the old one.
    lost : int
        Rows that no memory uses and that were recorded as lost.
    failed : int
        Memories whose text the model fails on: found by text alone.
    """

    checked: Count
    damaged: Count
    restored: Count
    replaced: Count
    lost: Count
    failed: Count
