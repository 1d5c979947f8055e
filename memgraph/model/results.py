"""What the store's operations are asked and what they answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Bytes, Count, Finite, Model, Name, Text, Timestamp, Unit
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, Embedding, MemoryType, Outcome, PrivacyTier, TrustClass
from memgraph.model.relevance import ConfidenceLabel
from memgraph.model.usage import ModelUsage

EXPORT_VERSION = "1.0.0"


class RetrievalQuery(Model):
    """What an agent is about to do, and how much memory its prompt can take.

    Attributes
    ----------
    task_description : str
        Free text.
    task_embedding : ndarray, shape (d,), float32, or None
        Used as given; None: the description is embedded.
    agent_name : str
        Who asks. It filters nothing; `agents` does.
    project_id : str or None
        That project's memories and those of no project; None: every project.
    max_episodic, max_semantic, max_procedural, max_tokens : int or None
        Budget; None: the configured one.
    session_id, task_id, build_id : str or None
        Recorded with the retrieval; `task_id` also admits that task's memories.
    agents : list of str or None
        Only memories in which one of these agents was involved.
    privacy_tiers, trust_classes : list or None
        Only these; None: all.
    """

    task_description: Text = ""
    task_embedding: Embedding | None = None
    agent_name: Name = "agent"
    project_id: Name | None = None
    max_episodic: Count | None = None
    max_semantic: Count | None = None
    max_procedural: Count | None = None
    max_tokens: Count | None = None
    session_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    agents: list[Name] | None = None
    privacy_tiers: list[PrivacyTier] | None = None
    trust_classes: list[TrustClass] | None = None


class Explanation(Model):
    """Why a memory was recalled: each term of its score."""

    memory_id: str
    score: float
    dense: float
    text: float
    neighbour: float = 0.0
    mention: float = 0.0
    relevance: float = 0.0
    use: float = 0.0
    negative: float = 0.0


class RetrievalResult(Model):
    """Memories for a task, best first within a type, and the text to put before the prompt."""

    query_id: str
    memories: list[SerializeAsAny[AgentMemory]]
    total_tokens_used: Count
    injected_prompt_prefix: str
    retrieved_at: Timestamp
    explanations: list[Explanation] = Field(default_factory=list)
    notice: str | None = None


class ScoredMemory(Model):
    """A memory and its score in a search."""

    memory: SerializeAsAny[AgentMemory]
    score: float


class DecayResult(Model):
    """How many live, unpinned memories the curve was read for, and how many of them are now below the threshold."""

    updated: Count
    below_threshold: Count


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
    """Every memory that is not deleted, suppressed ones included, with their links.

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
        records that could not be read.
    kept_share : float
        Builds that left at least one new or merged memory, over builds read.
    secrets_redacted : int
        Keys, tokens and passwords taken out before anything was made of the records.
    reasons : dict of str to int
        Why records were skipped.
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
    reasons: dict[str, int] = Field(default_factory=dict)
    seconds: Finite = 0.0
    notice: str | None = None
    usage: ModelUsage | None = None
