"""Results of a sleep and of its phases."""

from __future__ import annotations

from pydantic import Field

from memgraph.model.base import Count, Finite, Model, Timestamp
from memgraph.model.model_usage import ModelUsage

FEEDBACK_SOURCE = "feedback"
"""The `source` of rules made of repeated comments."""
MADE_BY_SLEEP = frozenset({"compression", "error analysis", "procedures", FEEDBACK_SOURCE})
"""The `source` of memories that phases of sleep make from others and keep up to date."""
WORK_ORDER_SOURCE = "work order"
"""The `source` of memories that answers to work orders make."""
MADE_FROM_OTHERS = MADE_BY_SLEEP | {WORK_ORDER_SOURCE}
"""The `source` of memories that repeat what others say: they are withheld while one of these is hidden, and not merged."""


class MergeResult(Model):
    """Result of merging near-duplicates.

    Attributes
    ----------
    looked_at : int
        New or changed memories in force that had others to be compared with.
    merged : int
        Memories merged into another one, which supersedes them.
    by_words : int
        How many of these were found by their words, because one of the two has no vector.
    complete : bool
        False if time ran out; the next run continues.
    """

    looked_at: Count = 0
    merged: Count = 0
    by_words: Count = 0
    complete: bool = True


class CopiesResult(Model):
    """Result of merging copies.

    Attributes
    ----------
    looked_at : int
        New or changed memories in force.
    merged : int
        Memories merged into one with the same text, which supersedes them.
    complete : bool
        False if time ran out; the next run continues.
    """

    looked_at: Count = 0
    merged: Count = 0
    complete: bool = True


class FeedbackResult(Model):
    """Result of learning from feedback.

    Attributes
    ----------
    comments : int
        Comments in the changed projects that repeat each other.
    created, updated : int
        Rules made, and rules changed or retired.
    complete : bool
        False if time ran out; the next run continues.
    """

    comments: Count = 0
    created: Count = 0
    updated: Count = 0
    complete: bool = True


class TemporalResult(Model):
    """Result of temporal validation.

    Attributes
    ----------
    looked_at : int
        Facts in force that state their own end, and open contradictions.
    expired : int
        Facts whose stated end has passed and that are invalid from then.
    replaced : int
        Facts that a newer one supersedes because its validity has begun.
    ended_but_pinned : int
        Facts that stay although their stated end has passed, because they are pinned.
    complete : bool
        False if time ran out; the next run continues.
    """

    looked_at: Count = 0
    expired: Count = 0
    replaced: Count = 0
    ended_but_pinned: Count = 0
    complete: bool = True


class PhaseReport(Model):
    """Result of one phase of a sleep.

    Attributes
    ----------
    counts : dict of str to int
        Counts with phase-specific names.
    changed : int
        Memories that it changed, created or linked.
    memory_ids : list of str
        The first 100 of them, in chronological order.
    complete : bool
        False if it was stopped; the next sleep continues it.
    notice : str or None
        An additional message.
    """

    name: str
    counts: dict[str, int] = Field(default_factory=dict)
    changed: Count = 0
    memory_ids: list[str] = Field(default_factory=list)
    seconds: Finite = 0.0
    complete: bool = True
    notice: str | None = None


class SleepReport(Model):
    """Result of a sleep.

    Attributes
    ----------
    started_at : str
        When the run began; before this call, if it continued an interrupted run.
    resumed : bool
        Whether it continued an interrupted run.
    phases : list of PhaseReport
        Phases run by this call, in order.
    left : list of str
        Phases left for the next sleep.
    changed : int
        Memories changed, created or linked, summed over the phases.
    complete : bool
        Whether no phase is left.
    usage : ModelUsage or None
        Model calls; None if there were none.
    """

    started_at: Timestamp
    resumed: bool = False
    phases: list[PhaseReport] = Field(default_factory=list)
    left: list[str] = Field(default_factory=list)
    changed: Count = 0
    complete: bool = True
    seconds: Finite = 0.0
    usage: ModelUsage | None = None
