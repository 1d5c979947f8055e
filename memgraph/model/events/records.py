"""Events that record recalls, ingested sources, work orders, and the progress of lifecycle runs, whose changes are recorded by preceding events."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Count, Finite, Name, Prose, Strict, Text, Timestamp, Unit
from memgraph.model.events.payload import (
    ANY,
    RUN,
    STORE,
    SYSTEM,
    UPKEEP,
    OfOneMemory,
    Payload,
    Policy,
    RunPayload,
    Sha256,
    Stored,
    UpkeepPayload,
    Whole,
    its_id,
    nothing,
)
from memgraph.model.ids import MemoryId, natural_id
from memgraph.model.memory import MemoryType, PrivacyTier, TrustClass
from memgraph.model.results.learning import MAX_ORDER_MEMORIES, OrderKind, Verdict


class AccessEffect(Strict):
    """A memory's use and relevance after an access."""

    id: MemoryId
    access_count: Count
    last_accessed_at: Timestamp
    relevance_anchor: Finite
    relevance_at: Timestamp


class AccessRecorded(Payload, type="access.recorded"):
    """Memories were used."""

    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records that memories were used",
        told="accessed",
        is_of_reading=True,
    )

    accesses: Annotated[list[AccessEffect], Field(min_length=1)]

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [effect.id for effect in self.accesses]


class RecalledItem(Strict):
    """One memory of a retrieval."""

    id: MemoryId
    type: MemoryType
    score: Finite
    tokens: Count


class RetrievalRecorded(Payload, type="retrieval.recorded"):
    """An agent received these memories. `query_hmac` is an HMAC: the query itself is not stored."""

    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records which memories a recall returned",
        is_of_reading=True,
    )

    query_id: MemoryId
    query_hmac: Sha256
    retrieved_at: Timestamp
    settings_version: Name
    agent_name: Name | None = None
    project_id: Name | None = None
    session_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    total_tokens: Count
    results: list[RecalledItem] = Field(default_factory=list)


class OutcomeRecorded(Payload, type="outcome.recorded"):
    """The outcome of a retrieval."""

    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records the outcome of a recall; record the right outcome instead",
        is_act=True,
    )

    query_id: MemoryId
    outcome: Name
    used: list[MemoryId] = Field(default_factory=list)
    overridden: list[MemoryId] = Field(default_factory=list)
    recorded_at: Timestamp


class AccessAudited(Payload, type="access.audited"):
    """An agent was refused what it asked for, or got sensitive memories with a justification."""

    SCOPES = SYSTEM
    POLICY = replace(STORE, is_of_reading=True)

    agent: Name
    operation: Name
    """``read``, ``search`` or ``write``."""
    domain: Name | None = None
    tier: PrivacyTier | None = None
    is_refused: bool
    reason: Text | None = None
    justification: Text | None = None
    """As the agent stated it, without secrets."""
    disclosed_ids: Annotated[list[MemoryId], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    """The sensitive memories that it got."""
    audited_at: Timestamp


class FailedTest(Strict):
    """A test that failed in a build, and the task that says so."""

    name: Name
    task: Name


class BuildConsolidated(Payload, type="build.consolidated", version=2):
    """A build log was consolidated, wholly or up to `consumed_keys`; a test that failed and then passed is in both lists."""

    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records that a build was read; `forget`, `archive` or `delete` its memories instead",
        is_act=True,
    )

    project_id: Name
    build_id: Name
    log_sha256: Sha256
    outcome: Literal["success", "failure", "partial"]
    started_at: Timestamp
    completed_at: Timestamp
    task_count: Count
    agents: list[Name] = Field(default_factory=list)
    consumed_keys: list[Name] = Field(default_factory=list)
    complete: bool
    extracted: Count
    merged: Count
    extractor: Name
    consolidated_at: Timestamp
    git_commit: Name | None = None
    passed: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    failed: Annotated[list[FailedTest], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)

    def occurred_at(self) -> str | None:
        """Return when the build ended."""
        return self.completed_at


class SourceRead(Payload, type="source.read"):
    """A source was read up to `cursor`; counts are totals over all reads."""

    POLICY = Policy(carries=nothing, irreversible="it records how far a source was read")

    source_id: Name
    kind: Name
    locator: Text
    project_id: Name
    cursor: Text
    records: Count
    builds: Count
    extracted: Count
    merged: Count
    skipped: Count
    read_at: Timestamp


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


class DecayApplied(RunPayload, type="decay.applied"):
    """The forgetting curve was evaluated for all memories; nothing changed."""

    POLICY = replace(RUN, has_rows=False)

    applied_at: Timestamp
    updated: Count
    below_threshold: Count


class CollectionApplied(RunPayload, type="collection.applied"):
    """Faded memories were collected. The memories' own events state which, this one how many."""

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


class CompressionApplied(RunPayload, type="compression.applied", version=2):
    """The existing generalisations include every change up to an event."""

    applied_at: Timestamp
    up_to_seq: Whole | None = None
    """Sequence number of the last event examined; version 1 had examined all before itself."""
    builds_left: Count = 0
    """Builds consolidated after that event, which wait for the next compression."""
    episodes: Count
    """Episodes examined."""
    communities: Count
    """Communities of two episodes or more that they form."""
    created: Count
    updated: Count
    superseded: Count
    retired: Count


class ContradictionsSought(RunPayload, type="contradictions.sought"):
    """Memories added or changed up to `through_seq` have been compared. Preceding events record the links that were found."""

    sought_at: Timestamp
    through_seq: Whole
    looked_at: Count
    found: Count
    superseded: Count


class ProcedureMeasured(OfOneMemory, type="procedure.measured"):
    """The success of a procedure in use. All counts are totals, so only the last such event counts."""

    SCOPES = ANY
    POLICY = replace(RUN, carries=its_id, agents="of_one", told="its success was measured")

    tried: Count
    """Builds that followed it, by its evidence."""
    succeeded: Count
    uses: Count
    """Recalls after which it was used."""
    uses_judged: Count
    uses_succeeded: Count
    override_count: Count
    success_rate: Unit | None = None
    """Share of successes among builds and uses; None: never tried. A trial that an episode and a recall's outcome record counts in both."""
    confidence: Unit
    measured_at: Timestamp


class ProceduresLearned(RunPayload, type="procedures.learned"):
    """Procedures were learned. The memories' own events state which."""

    applied_at: Timestamp
    up_to_seq: Whole
    """Sequence number of the last event examined."""
    episodes: Count
    """Episodes with steps."""
    created: Count
    updated: Count
    retired: Count


class ErrorsAnalysed(RunPayload, type="errors.analysed"):
    """Failures were analysed. The memories' own events state the results."""

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


class SleepAdvanced(RunPayload, type="sleep.advanced"):
    """A phase of a sleep was completed, or stopped for lack of time. Preceding events record its changes."""

    started_at: Timestamp
    """When the run began that the phase is part of."""
    advanced_at: Timestamp
    phase: Name
    complete: bool
    """Whether the phase has processed every event up to `through_seq`."""
    through_seq: Whole
    changed: Count
    left: list[Name] = Field(default_factory=list)
    """Remaining phases of the run, including one that was stopped."""


class SleepFailed(UpkeepPayload, type="sleep.failed"):
    """A phase of a sleep failed. What it had committed before stays; the phase runs again in the next sleep."""

    started_at: Timestamp
    """When the run began that the phase is part of."""
    failed_at: Timestamp
    phase: Name
    error: Text
    """Without contents of memories."""


_Ids = Annotated[list[MemoryId], Field(max_length=MAX_ORDER_MEMORIES)]
_Sources = Annotated[list[Name], Field(max_length=MAX_ORDER_MEMORIES)]


def its_subjects(content: Stored) -> list[str]:
    """Return the memories that a work order is about."""
    return list(content.get("subject_ids", ()))


class DistilRequested(UpkeepPayload, type="distil.requested"):
    """A work order was made."""

    POLICY = replace(
        UPKEEP,
        carries=its_subjects,  # its excerpt quotes them
        told="a work order asked about it",
        is_told_to_named=True,
    )

    id: MemoryId
    """Derived from what is asked about, so that the same order is not made twice."""
    kind: OrderKind
    question: Prose
    excerpt: Prose
    """The source, without secrets. An answer is verified against it."""
    project_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    subject_ids: _Ids = Field(default_factory=list)
    """The memories that it is about, whose texts the excerpt may quote."""
    source_event_ids: _Sources = Field(default_factory=list)
    """As of the memories that an answer makes, like `build_id`."""
    trust_class: TrustClass
    """The lowest of the sources'."""
    value: Unit
    """The expected use of an answer: orders of a higher value come first."""
    source_at: Timestamp
    """When the latest of what the excerpt tells happened."""
    requested_at: Timestamp


class DistilAnswered(Payload, type="distil.answered"):
    """A work order was answered. Events of the same commit add or merge the memories."""

    POLICY = Policy(
        carries=nothing,
        irreversible="it closes a work order; `forget` or `delete` the memories of the answer instead",
        is_act=True,
        told="a work order about it was answered",
        is_told_to_named=True,
    )

    id: MemoryId
    answered_at: Timestamp
    answered_by: Name
    trust_class: TrustClass
    new_memory_ids: _Ids = Field(default_factory=list)
    merged_memory_ids: _Ids = Field(default_factory=list)
    verdict: Verdict | None = None


class DistilAttempted(Payload, type="distil.attempted"):
    """A work order was answered in part: other statements were refused, and the order stays open for their corrections."""

    POLICY = Policy(
        carries=nothing,
        irreversible="it answers a part of a work order; `forget` or `delete` the memories of the answer instead",
        told="a work order about it was answered in part",
        is_told_to_named=True,
    )

    id: MemoryId
    attempted_at: Timestamp
    answered_by: Name
    trust_class: TrustClass
    refused: Annotated[int, Field(ge=1)]
    new_memory_ids: _Ids = Field(default_factory=list)
    merged_memory_ids: _Ids = Field(default_factory=list)
    verdict: Verdict | None = None


class DistilSkipped(Payload, type="distil.skipped"):
    """A work order was skipped: it is not answered, and not made again."""

    POLICY = UPKEEP

    id: MemoryId
    skipped_at: Timestamp
    reason: Text | None = None
