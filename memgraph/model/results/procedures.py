"""What the learning runs answer: procedures, proposals and repeated errors."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Text, Timestamp, Unit

PROPOSED = "proposed"
REJECTED = "rejected"
UNCONVINCING = "little confidence and no use"
LAPSED = "too few of the builds that it worked in are left; it was in force"
LAPSED_PROPOSAL = "too few of the builds that it worked in are left; it waited for approval"
"""Why a procedure is archived: it waits for approval; the user will not have it; it never proved itself; what it was learned
from was forgotten or deleted, and should that come back, it is in force, or waits, as before."""

ErrorKind = Literal["internal", "external", "configuration"]
ProposalState = Literal["proposed", "in force", "rejected"]


class ProcedureResult(Model):
    """What a learning run did with procedures.

    Attributes
    ----------
    episodes : int
        That told of steps, in the projects in which something had changed.
    proposed : int
        New proposals, rejected ones that have as much new evidence as a new one needs, and those in force whose evidence, since
        some was withdrawn, tells of other steps than were approved.
    updated : int
        Procedures and proposals that were brought up to what their evidence says now.
    brought_into_force : int
        Proposals that later successes bore out (setting ``procedure_approval``).
    retired : int
        Put away: little confidence and no use, or too little evidence left.
    complete : bool
        Whether it came to its end; else the next run goes on.
    """

    episodes: Count = 0
    proposed: Count = 0
    updated: Count = 0
    brought_into_force: Count = 0
    retired: Count = 0
    new_memory_ids: list[str] = Field(default_factory=list)
    complete: bool = True


class RepeatedError(Model):
    """An error that was met in several builds.

    Attributes
    ----------
    kind : {"internal", "external", "configuration"}
        A mistake of one's own; network, rate limit or service; a missing file, setting, permission or version.
    remedy : str or None
        What prevented or mended it, as far as is known.
    memory_id : str or None
        The memory that tells of it in general.
    """

    error: Text
    kind: ErrorKind
    builds: Count
    remedy: Text | None = None
    memory_id: str | None = None


class ErrorAnalysis(Model):
    """What an analysis of errors found and did.

    Attributes
    ----------
    failures : int
        Failures that were looked at: those of the projects in which something had changed.
    internal, external, configuration : int
        How many of them are a mistake of one's own; due to network, rate limit or service; due to a missing file, setting or
        version.
    created, updated, superseded : int
        Anti-patterns that were made; generalisations and anti-patterns that were told what to avoid and to do instead; those
        that a generalisation replaced.
    repeated : list of RepeatedError
        Errors of three builds or more, the most frequent first, at most 20.
    """

    failures: Count = 0
    internal: Count = 0
    external: Count = 0
    configuration: Count = 0
    created: Count = 0
    updated: Count = 0
    superseded: Count = 0
    repeated: list[RepeatedError] = Field(default_factory=list)
    new_memory_ids: list[str] = Field(default_factory=list)
    complete: bool = True


class Proposal(Model):
    """A procedure that was learned from episodes, and whether it counts.

    Attributes
    ----------
    state : {"proposed", "in force", "rejected"}
        Only what is in force is recalled.
    builds : int
        Of evidence.
    since : str
        When it came to this state.
    """

    id: str
    state: ProposalState
    trigger: Text
    steps: list[Text]
    success_rate: Unit | None = None
    confidence: Unit
    builds: Count
    since: Timestamp
    project_id: str | None = None
    common_errors: list[Text] = Field(default_factory=list)
