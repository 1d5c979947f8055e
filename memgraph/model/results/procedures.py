"""Results of learning: procedures, proposals and repeated errors."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Text, Timestamp, Unit

PROPOSED = "proposed"
REJECTED = "rejected"
UNCONVINCING = "little confidence and no use"
LAPSED = "too few of the builds that it worked in are left; it was in force"
LAPSED_PROPOSAL = "too few of the builds that it worked in are left; it waited for approval"
"""Why a procedure is archived: it waits for approval; the user rejected it; it was never successful; or its evidence was forgotten
or deleted. If that evidence is restored, the procedure is in force, or waits, as before."""

ErrorKind = Literal["internal", "external", "configuration"]
ProposalState = Literal["proposed", "in force", "rejected"]


class ProcedureResult(Model):
    """Result of a learning run for procedures.

    Attributes
    ----------
    episodes : int
        Episodes with steps, in projects that have changed.
    proposed : int
        New proposals, rejected ones with as much new evidence as a new one needs, and procedures in force whose steps differ from
        the approved ones after some evidence was withdrawn.
    updated : int
        Procedures and proposals updated to their present evidence.
    brought_into_force : int
        Proposals confirmed by later successes (setting ``procedure_approval``).
    retired : int
        Procedures archived for low confidence and no use, or for too little remaining evidence.
    complete : bool
        False if time ran out; the next run continues.
    """

    episodes: Count = 0
    proposed: Count = 0
    updated: Count = 0
    brought_into_force: Count = 0
    retired: Count = 0
    new_memory_ids: list[str] = Field(default_factory=list)
    complete: bool = True


class RepeatedError(Model):
    """An error that occurred in several builds.

    Attributes
    ----------
    kind : {"internal", "external", "configuration"}
        A mistake of the agent; network, rate limit or service; a missing file, setting, permission or version.
    remedy : str or None
        What prevented or fixed it, if known.
    memory_id : str or None
        The memory that generalises it.
    """

    error: Text
    kind: ErrorKind
    builds: Count
    remedy: Text | None = None
    memory_id: str | None = None


class ErrorAnalysis(Model):
    """Result of an analysis of errors.

    Attributes
    ----------
    failures : int
        Failures analysed, in projects that have changed.
    internal, external, configuration : int
        Failures due to a mistake of the agent; to network, rate limit or service; to a missing file, setting or
        version.
    created, updated, superseded : int
        Anti-patterns created; generalisations and anti-patterns updated with what to avoid and to do instead; anti-patterns
        replaced by a generalisation.
    repeated : list of RepeatedError
        Errors of three builds or more, most frequent first, at most 20.
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
    """A procedure learned from episodes, and its state.

    Attributes
    ----------
    state : {"proposed", "in force", "rejected"}
        Only procedures in force are recalled.
    builds : int
        Number of builds of evidence.
    since : str
        When it reached this state.
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
