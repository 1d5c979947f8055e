"""Results of intake and compression."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import Count, Finite, Model, Timestamp, Unit
from memgraph.model.model_usage import ModelUsage


class CompressionResult(Model):
    """Result of a compression.

    Attributes
    ----------
    compressed : int
        Generalisations created.
    updated, superseded, retired : int
        Generalisations updated to their present episodes; split or joined, and replaced by new ones; withdrawn because too few
        of their builds are left.
    deleted, archived : int
        Faded memories that were collected.
    episodes, communities : int
        Episodes examined; communities of two episodes or more that they form.
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
    """Result of consolidating one build log.

    Attributes
    ----------
    memories_forgotten : int
        Memories left out because they repeat forgotten ones.
    memories_left_out : int
        Findings dropped because a log keeps only its most salient ones (`max_memories_per_extraction`) besides what users stated.
    secrets_redacted : int
        Keys, tokens and passwords removed from the log before processing.
    was_known : bool
        Whether exactly this log had been consolidated before, so that nothing was done.
    extraction_notice : str or None
        A message of the extractor, for example that the rules were used instead of a model; `notice` includes it.
    usage : ModelUsage or None
        Model calls; None if there were none, or if the log is one of several consolidated together.
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
    was_known: bool = False
    notice: str | None = None
    extraction_notice: str | None = None
    usage: ModelUsage | None = None


class SavedObservation(Model):
    """Result of saving an observation.

    Attributes
    ----------
    memory_id : str or None
        The memory that holds it, or the first of several parts; None: it was left out.
    action : {"created", "consolidated", "forgotten", "superseded"}
        Stored as a new memory; merged into one with the same content; left out, because the user had it forgotten, or because the
        user replaced it.
    part_ids : list of str
        All memories that hold it, in order.
    secrets_redacted : int
        Keys, tokens and passwords removed first.
    """

    memory_id: str | None = None
    action: Literal["created", "consolidated", "forgotten", "superseded"]
    part_ids: list[str] = Field(default_factory=list)
    notice: str | None = None
    secrets_redacted: Count = 0


class SavedEpisode(Model):
    """The memory in which an episode was stored, a notice for the caller, and the number of secrets removed from it."""

    episode_id: str
    notice: str | None = None
    secrets_redacted: Count = 0


class IngestReport(Model):
    """Result of reading a source.

    Attributes
    ----------
    left_out : int
        Findings beyond the best of each build.
    known : int
        Builds that were consolidated before and have not changed, such as the last one of a source. They are counted neither in
        ``builds`` nor, with their records, in ``read``.
    read, extracted, merged, forgotten, skipped : int
        Records read; memories added; memories merged into existing ones; memories left out because they repeat forgotten ones;
        records, or parts of them, that could not be read.
    kept_share : float
        Share of the builds read that yielded at least one new or merged memory.
    secrets_redacted : int
        Keys, tokens and passwords removed before the records were processed.
    compressed : int
        Generalisations created at the end.
    reasons : dict of str to int
        Reasons for skipping: the first 100 of a source, with their counts.
    usage : ModelUsage or None
        Model calls; None if there were none.
    """

    source: str
    read: Count = 0
    builds: Count = 0
    known: Count = 0
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
