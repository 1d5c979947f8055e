"""Events that say how far a run of the lifecycle has come; what it changed are events of memories and links before it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from memgraph.model.base import Count, Name, Timestamp, Unit
from memgraph.model.events.payload import ANY, SYSTEM, Payload, Whole, WriteScope
from memgraph.model.ids import MemoryId, natural_id

COMPRESSION = natural_id("lifecycle run", "compression")
"""Key of the row that says when compression last ran, and how many builds came since."""

CONTRADICTIONS = natural_id("lifecycle run", "contradictions")
"""Key of the row that says up to which event memories have been looked at."""

LEARNING = natural_id("lifecycle run", "procedures")
"""Key of the row that says when procedures were last learned."""
ERROR_ANALYSIS = natural_id("lifecycle run", "errors")
"""Key of the row that says when errors were last analysed."""
SLEEP = natural_id("lifecycle run", "sleep")
"""Key of the row that says when the store last slept, and which phases of that run are left."""

FADED = "faded"
"""Why a collection archives or deletes a memory."""


def phase_key(name: str) -> str:
    """Return the key of the row that says up to which event a phase has looked at everything."""
    return natural_id("lifecycle run", f"sleep: {name}")


class DecayApplied(Payload):
    """The curve was read for all memories; it moved nothing."""

    TYPE = "decay.applied"
    SCOPES = SYSTEM

    applied_at: Timestamp
    updated: Count
    below_threshold: Count


class CollectionApplied(Payload):
    """Faded memories were collected; the memories' own events say which, this one how many."""

    TYPE = "collection.applied"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM

    applied_at: Timestamp
    threshold: Unit
    archived: Count
    deleted: Count
    summarised: Count
    floors_set: Count
    floors_cleared: Count
    landmarks: Count
    negatives: Count
    negative_landmarks: Count
    last_traces: Count


class CompressionApplied(Payload):
    """Every change before this event is in the generalisations that there are."""

    TYPE = "compression.applied"
    SCOPES = SYSTEM

    applied_at: Timestamp
    episodes: Count
    """That were looked at."""
    communities: Count
    """That they form, of two episodes or more."""
    created: Count
    updated: Count
    superseded: Count
    retired: Count


class ContradictionsSought(Payload):
    """What was added or changed up to `through_seq` has been compared; the links that were found are events before this one."""

    TYPE = "contradictions.sought"
    SCOPES = SYSTEM

    sought_at: Timestamp
    through_seq: Whole
    looked_at: Count
    found: Count
    superseded: Count


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


class SleepAdvanced(Payload):
    """A phase of a sleep came to its end, or was stopped for want of time; what it did are events before this one.

    Attributes
    ----------
    started_at : str
        When the run began that this is part of.
    complete : bool
        Whether the phase came to its end; then it has looked at every event up to `through_seq`.
    left : list of str
        Phases that the run still has to do, one that was stopped among them; empty: the run came to its end.
    """

    TYPE = "sleep.advanced"
    SCOPES = SYSTEM

    started_at: Timestamp
    advanced_at: Timestamp
    phase: Name
    complete: bool
    through_seq: Whole
    changed: Count
    left: list[Name] = Field(default_factory=list)
