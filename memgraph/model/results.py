"""What the store's operations are asked and what they answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Bytes, Count, Finite, Model, Name, Timestamp, Unit
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, MemoryType, Outcome
from memgraph.model.relevance import ConfidenceLabel
from memgraph.model.usage import ModelUsage

EXPORT_VERSION = "1.0.0"


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


class CompressionResult(Model):
    """What a compression did.

    Attributes
    ----------
    compressed : int
        Generalisations that were made.
    updated, superseded, retired : int
        Those that were brought up to what their episodes say now; that were split or joined, and replaced by new ones; that were
        taken back because too few of the builds they were seen in are left.
    deleted, archived : int
        Faded memories that were collected.
    episodes, communities : int
        That were looked at; that they form, of two episodes or more.
    """

    compressed: Count = 0
    updated: Count = 0
    superseded: Count = 0
    retired: Count = 0
    deleted: Count = 0
    archived: Count = 0
    episodes: Count = 0
    communities: Count = 0
    new_memory_ids: list[str] = Field(default_factory=list)
    notice: str | None = None


class ConsolidationResult(Model):
    """What consolidating one build log did.

    Attributes
    ----------
    memories_forgotten : int
        How many were left out because they say again what was forgotten.
    memories_left_out : int
        How many findings were less telling than the best, beyond which none of a log is kept (`max_memories_per_extraction`).
    secrets_redacted : int
        How many keys, tokens and passwords were taken out of the log before anything was made of it.
    extraction_notice : str or None
        What the extractor had to tell, such as that the rules served instead of a model; `notice` says it too.
    usage : ModelUsage or None
        What was asked of models' servers; None if nothing was, or if the log is one of several consolidated together.
    """

    build_id: str
    consolidated_at: Timestamp
    memories_extracted: Count
    memories_deduplicated: Count
    memories_forgotten: Count = 0
    memories_left_out: Count = 0
    secrets_redacted: Count = 0
    memories_compressed: Count = 0
    memories_deleted: Count = 0
    new_memory_ids: list[str] = Field(default_factory=list)
    duration_ms: Annotated[float, Field(ge=0)]
    complete: bool = True
    notice: str | None = None
    extraction_notice: str | None = None
    usage: ModelUsage | None = None


class SavedObservation(Model):
    """What became of an observation.

    Attributes
    ----------
    memory_id : str or None
        The memory that holds it, of several parts the first; None: it was left out.
    action : {"created", "consolidated", "forgotten"}
        Kept as a new memory; merged into one that says the same; left out, because the user made the store forget it.
    part_ids : list of str
        All memories that hold it, in order.
    secrets_redacted : int
        Keys, tokens and passwords taken out before anything else.
    """

    memory_id: str | None = None
    action: Literal["created", "consolidated", "forgotten"]
    part_ids: list[str] = Field(default_factory=list)
    notice: str | None = None
    secrets_redacted: Count = 0


class SavedEpisode(Model):
    """The memory that an episode was kept as, and how many secrets were taken out of it."""

    episode_id: str
    secrets_redacted: Count = 0


class MemoryStats(Model):
    """Counts over all memories that are neither archived nor deleted."""

    total: Count
    by_type: dict[MemoryType, int]
    avg_relevance: float
    pinned_count: Count
    suppressed_count: Count
    db_size_bytes: Bytes


class MemoryListEntry(Model):
    """One line of a listing; `content` is cut to 80 characters."""

    id: str
    type: MemoryType
    content: str
    relevance_score: float
    confidence_label: ConfidenceLabel
    outcome: Outcome
    age: str
    access_count: Count
    is_pinned: bool


class MemoryCommandResult(Model):
    """What a command did, in words and as data."""

    command: str
    success: bool
    message: str
    data: Any = None


class MemoryExport(Model):
    """Every memory that is not deleted, suppressed ones included, with their links; or, for others, only what may be shown.

    `embedding_model` names what made the vectors; a store of another model embeds the texts anew on import.
    """

    version: str
    exported_at: Timestamp
    total_memories: Count
    memories: list[SerializeAsAny[AgentMemory]]
    links: list[Link] = Field(default_factory=list)
    embedding_model: str | None = None


class IngestReport(Model):
    """What reading a source did.

    Attributes
    ----------
    left_out : int
        Findings beyond the best of each build.
    read, extracted, merged, forgotten, skipped : int
        Records read; memories added; memories merged into known ones; left out because they say again what was forgotten;
        records, or parts of them, that could not be read.
    kept_share : float
        Builds that left at least one new or merged memory, over builds read.
    secrets_redacted : int
        Keys, tokens and passwords taken out before anything was made of the records.
    compressed : int
        Generalisations that were made at the end.
    reasons : dict of str to int
        What was skipped and why: the first 100 reasons of a source, with how often.
    usage : ModelUsage or None
        What was asked of models' servers; None if nothing was.
    """

    source: str
    read: Count = 0
    builds: Count = 0
    extracted: Count = 0
    merged: Count = 0
    forgotten: Count = 0
    left_out: Count = 0
    skipped: Count = 0
    secrets_redacted: Count = 0
    kept_share: Unit = 0.0
    compressed: Count = 0
    reasons: dict[str, int] = Field(default_factory=dict)
    seconds: Finite = 0.0
    notice: str | None = None
    usage: ModelUsage | None = None
