"""What intake and compression did."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import Count, Finite, Model, Timestamp, Unit
from memgraph.model.model_usage import ModelUsage


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
