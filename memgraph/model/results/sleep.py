"""What a run of sleep, and each of its phases, did."""

from __future__ import annotations

from pydantic import Field

from memgraph.model.base import Count, Finite, Model, Timestamp
from memgraph.model.model_usage import ModelUsage

MADE_BY_SLEEP = frozenset({"compression", "error analysis", "procedures"})
"""The `source` of memories that phases of sleep make of others, and bring up themselves."""


class MergeResult(Model):
    """What merging near-duplicates did.

    Attributes
    ----------
    looked_at : int
        Memories in force that were new or had changed, and had others to be compared with.
    merged : int
        Memories that became part of another one, which supersedes them.
    by_words : int
        How many of these were found by their words, because one of the two has no vector.
    complete : bool
        False where time ran out: the next run goes on.
    """

    looked_at: Count = 0
    merged: Count = 0
    by_words: Count = 0
    complete: bool = True


class TemporalResult(Model):
    """What temporal validation did.

    Attributes
    ----------
    looked_at : int
        Facts in force that say of themselves until when they hold, and contradictions that were open.
    expired : int
        Facts whose own end has passed: they are invalid since then.
    replaced : int
        Facts that a newer one supersedes since its own time has come.
    ended_but_pinned : int
        Facts that stay though their own end has passed: who pinned them decides.
    complete : bool
        False where time ran out: the next run goes on.
    """

    looked_at: Count = 0
    expired: Count = 0
    replaced: Count = 0
    ended_but_pinned: Count = 0
    complete: bool = True


class PhaseReport(Model):
    """What one phase of a sleep did.

    Attributes
    ----------
    counts : dict of str to int
        In the phase's own words.
    changed : int
        Memories that it changed, made or linked.
    memory_ids : list of str
        The first 100 of them, in the order in which that happened.
    complete : bool
        False: it was stopped, and the next sleep goes on with it.
    notice : str or None
        What it has to tell besides.
    """

    name: str
    counts: dict[str, int] = Field(default_factory=dict)
    changed: Count = 0
    memory_ids: list[str] = Field(default_factory=list)
    seconds: Finite = 0.0
    complete: bool = True
    notice: str | None = None


class SleepReport(Model):
    """What a sleep did.

    Attributes
    ----------
    started_at : str
        When the run began: before this call, if it went on with one that had been stopped.
    resumed : bool
        Whether it did.
    phases : list of PhaseReport
        What was done by this call, in order.
    left : list of str
        Phases that the next sleep will go on with.
    changed : int
        Memories that were changed, made or linked, summed over the phases.
    complete : bool
        Whether nothing is left.
    usage : ModelUsage or None
        What was asked of models' servers; None if nothing was.
    """

    started_at: Timestamp
    resumed: bool = False
    phases: list[PhaseReport] = Field(default_factory=list)
    left: list[str] = Field(default_factory=list)
    changed: Count = 0
    complete: bool = True
    seconds: Finite = 0.0
    usage: ModelUsage | None = None
