"""What is learned of how to do things: the events of that, and what the learning runs answer."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Text, Timestamp, Unit
from memgraph.model.ids import MemoryId, natural_id
from memgraph.model.payload import ANY, SYSTEM, Payload, Whole, WriteScope

LEARNING = natural_id("lifecycle run", "procedures")
"""Key of the row that says when procedures were last learned."""
ERROR_ANALYSIS = natural_id("lifecycle run", "errors")
"""Key of the row that says when errors were last analysed."""

PROPOSED = "proposed"
REJECTED = "rejected"
UNCONVINCING = "little confidence and no use"
LAPSED = "too few of the builds that it worked in are left; it was in force"
LAPSED_PROPOSAL = "too few of the builds that it worked in are left; it waited for approval"
"""Why a procedure is archived: it waits for approval; the user will not have it; it never proved itself; what it was learned
from was forgotten or deleted, and should that come back, it is in force, or waits, as before."""

ErrorKind = Literal["internal", "external", "configuration"]
ProposalState = Literal["proposed", "in force", "rejected"]


class ProcedureMeasured(Payload):
    """How a procedure does in practice: all counts are totals, so the last such event says it all.

    Attributes
    ----------
    tried, succeeded : int
        Builds that did as it says, by its evidence; those of them that went well.
    uses, uses_judged, uses_succeeded : int
        Recalls after which it was used; those whose outcome was good or bad; those whose was good.
    success_rate : float or None
        Share of both that went well, in [0, 1]; None: never tried. A trial of which both an episode and the outcome of a recall
        tell counts by both.
    """

    TYPE = "procedure.measured"
    SCOPES: ClassVar[frozenset[WriteScope]] = ANY

    id: MemoryId
    tried: Count
    succeeded: Count
    uses: Count
    uses_judged: Count
    uses_succeeded: Count
    override_count: Count
    success_rate: Unit | None = None
    confidence: Unit
    measured_at: Timestamp

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id]


class ProceduresLearned(Payload):
    """Procedures were learned; the memories' own events say which."""

    TYPE = "procedures.learned"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM

    applied_at: Timestamp
    up_to_seq: Whole
    """Of the last event that was looked at."""
    episodes: Count
    """That told of steps."""
    created: Count
    updated: Count
    retired: Count


class ErrorsAnalysed(Payload):
    """Failures were looked at; the memories' own events say what came of it."""

    TYPE = "errors.analysed"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM

    applied_at: Timestamp
    up_to_seq: Whole
    """Of the last event that was looked at."""
    episodes: Count
    internal: Count
    external: Count
    configuration: Count
    created: Count
    updated: Count
    superseded: Count


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
