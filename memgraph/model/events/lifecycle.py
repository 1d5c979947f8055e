"""Events that record the progress of lifecycle runs. Their changes are recorded by preceding events of memories and links."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from memgraph.model.base import Count, Name, Text, Timestamp, Unit
from memgraph.model.events.payload import ANY, RUN, SYSTEM, UPKEEP, Payload, Whole, WriteScope, its_id
from memgraph.model.ids import MemoryId, natural_id

COMPRESSION = natural_id("lifecycle run", "compression")
"""Key of the row that records when compression last ran, and the number of builds since."""

CONTRADICTIONS = natural_id("lifecycle run", "contradictions")
"""Key of the row that records the event up to which memories have been compared."""

LEARNING = natural_id("lifecycle run", "procedures")
"""Key of the row that records when procedures were last learned."""
ERROR_ANALYSIS = natural_id("lifecycle run", "errors")
"""Key of the row that records when errors were last analysed."""
SLEEP = natural_id("lifecycle run", "sleep")
"""Key of the row that records the store's last sleep, and the phases left in that run."""

FADED = "faded"
"""Why a collection archives or deletes a memory."""
UNDONE = "undone"
"""The stated reason of a deletion that undoes an addition."""


def phase_key(name: str) -> str:
    """Return the key of the row that records the event up to which a phase has processed everything."""
    return natural_id("lifecycle run", f"sleep: {name}")


class DecayApplied(Payload):
    """The forgetting curve was evaluated for all memories; nothing changed."""

    TYPE = "decay.applied"
    SCOPES = SYSTEM
    POLICY = replace(RUN, has_rows=False)

    applied_at: Timestamp
    updated: Count
    below_threshold: Count


class CollectionApplied(Payload):
    """Faded memories were collected. The memories' own events state which, this one how many."""

    TYPE = "collection.applied"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM
    POLICY = replace(RUN, has_rows=False)

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
    """The existing generalisations include every change before this event."""

    TYPE = "compression.applied"
    SCOPES = SYSTEM
    POLICY = RUN

    applied_at: Timestamp
    episodes: Count
    """Episodes examined."""
    communities: Count
    """Communities of two episodes or more that they form."""
    created: Count
    updated: Count
    superseded: Count
    retired: Count


class ContradictionsSought(Payload):
    """Memories added or changed up to `through_seq` have been compared. Preceding events record the links that were found."""

    TYPE = "contradictions.sought"
    SCOPES = SYSTEM
    POLICY = RUN

    sought_at: Timestamp
    through_seq: Whole
    looked_at: Count
    found: Count
    superseded: Count


class ProcedureMeasured(Payload):
    """The success of a procedure in use. All counts are totals, so only the last such event counts.

    Attributes
    ----------
    tried, succeeded : int
        Builds that followed it, by its evidence; those of them that succeeded.
    uses, uses_judged, uses_succeeded : int
        Recalls after which it was used; those with a good or bad outcome; those with a good outcome.
    success_rate : float or None
        Share of successes among both, in [0, 1]; None: never tried. A trial recorded by both an episode and the outcome of a recall
        counts in both.
    """

    TYPE = "procedure.measured"
    SCOPES: ClassVar[frozenset[WriteScope]] = ANY
    POLICY = replace(RUN, carries=its_id, agents="of_one", told="its success was measured")

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
    """Procedures were learned. The memories' own events state which."""

    TYPE = "procedures.learned"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM
    POLICY = RUN

    applied_at: Timestamp
    up_to_seq: Whole
    """Sequence number of the last event examined."""
    episodes: Count
    """Episodes with steps."""
    created: Count
    updated: Count
    retired: Count


class ErrorsAnalysed(Payload):
    """Failures were analysed. The memories' own events state the results."""

    TYPE = "errors.analysed"
    SCOPES: ClassVar[frozenset[WriteScope]] = SYSTEM
    POLICY = RUN

    applied_at: Timestamp
    up_to_seq: Whole
    """Sequence number of the last event examined."""
    episodes: Count
    internal: Count
    external: Count
    configuration: Count
    created: Count
    updated: Count
    superseded: Count


class SleepAdvanced(Payload):
    """A phase of a sleep was completed, or stopped for lack of time. Preceding events record its changes.

    Attributes
    ----------
    started_at : str
        When the run began that the phase is part of.
    complete : bool
        Whether the phase was completed; then it has processed every event up to `through_seq`.
    left : list of str
        Remaining phases of the run, including one that was stopped; empty: the run is complete.
    """

    TYPE = "sleep.advanced"
    SCOPES = SYSTEM
    POLICY = RUN

    started_at: Timestamp
    advanced_at: Timestamp
    phase: Name
    complete: bool
    through_seq: Whole
    changed: Count
    left: list[Name] = Field(default_factory=list)


class SleepFailed(Payload):
    """A phase of a sleep failed. What it had committed before stays; the phase runs again in the next sleep.

    Attributes
    ----------
    started_at : str
        When the run began that the phase is part of.
    error : str
        Why, without contents of memories.
    """

    TYPE = "sleep.failed"
    SCOPES = SYSTEM
    POLICY = UPKEEP

    started_at: Timestamp
    failed_at: Timestamp
    phase: Name
    error: Text
