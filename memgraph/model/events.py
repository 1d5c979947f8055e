"""Event payloads: one strict class per (type, version). Events state effects as absolute values, never commands.

A payload class never changes once it has been released: any change is a new class with a higher version, and a fixture of
the old one stays readable. Replay therefore calls no model and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from memgraph.model.base import MAX_ITEMS, Count, Finite, Name, Strict, Text, Timestamp
from memgraph.model.collection import CollectionApplied
from memgraph.model.compression import CompressionApplied
from memgraph.model.contradictions import ContradictionsSought
from memgraph.model.ids import MemoryId
from memgraph.model.memory import MemoryRecord, MemoryType
from memgraph.model.payload import ANY, SYSTEM, Payload, Sha256, Whole, sparse
from memgraph.model.procedures import ErrorsAnalysed, ProcedureMeasured, ProceduresLearned
from memgraph.model.reembedding import MemoryReembedded, VectorsLost
from memgraph.model.sleep import SleepAdvanced


class VectorRef(Strict):
    """Where a memory's vector lies: row of ``vectors/<model>.f32`` and the SHA-256 of its bytes."""

    model: Name
    row: Count
    sha256: Sha256


class StoreCreated(Payload):
    """The first event of every journal."""

    TYPE = "store.created"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    created_by: Name


class EmbeddingSwitched(Payload):
    """From here on vectors are made by this model."""

    TYPE = "embedding.switched"
    BY_STORE_ALONE = True
    SCOPES = ANY

    model: Name
    dimension: Annotated[int, Field(ge=1, le=65_536)]


class MemoryAdded(Payload):
    """A memory came to be."""

    TYPE = "memory.added"

    memory: MemoryRecord
    vector: VectorRef | None = None

    def occurred_at(self) -> str | None:
        """Return when the remembered thing happened."""
        return self.memory.occurred_at

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.memory.id]


_FIXED = {"id", "type", "created_at"}
RecordPatch = create_model(
    "RecordPatch",
    __base__=Strict,
    **{
        name: (field.rebuild_annotation() | None, None)
        for name, field in MemoryRecord.model_fields.items()
        if name not in _FIXED
    },
)  # type: ignore[call-overload]
"""New values of a memory's fields; absent means unchanged."""


def _clearable(name: str) -> str:
    field = MemoryRecord.model_fields.get(name)
    if field is None or field.is_required():
        raise ValueError("is not a field that can be unset")
    return name


Clearable = Annotated[str, AfterValidator(_clearable)]


class _Revision(Payload):
    id: MemoryId
    changed: RecordPatch  # type: ignore[valid-type]
    cleared: list[Clearable] = Field(default_factory=list)
    """Fields that are set no longer."""
    vector: VectorRef | None = None

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id]

    def row_after(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with these changes."""
        kept = {name: value for name, value in row.items() if name not in self.cleared}
        return {**kept, **sparse(self.changed.model_dump())}  # type: ignore[attr-defined]


class MemoryRevised(_Revision):
    """Somebody changed fields of a memory."""

    TYPE = "memory.revised"


class MemoryMerged(_Revision):
    """A duplicate was merged into a memory; `candidate_id` is the id that the duplicate would have had."""

    TYPE = "memory.merged"

    candidate_id: MemoryId | None = None


class MemoryDeleted(Payload):
    """A memory and its links are gone from every view; its history stays."""

    TYPE = "memory.deleted"
    SCOPES = ANY

    id: MemoryId
    reason: Text | None = None

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id]


class RecallAgain(Strict):
    """One retrieval that had returned a memory which is back, and what became of it there."""

    query_id: MemoryId
    rank: Count
    score: Finite
    tokens: Count
    used: bool | None = None


class MemoryUndeleted(Payload):
    """A deleted memory is back as it was; its links come back by events of their own in the same commit."""

    TYPE = "memory.undeleted"
    BY_STORE_ALONE = True

    memory: MemoryRecord
    """`previous_id` names the nearest of its predecessors that is there now."""
    vector: VectorRef | None = None
    added_seq: Count
    """Of the event that added it: its old place in the order of memories."""
    follower_ids: list[MemoryId] = Field(default_factory=list)
    """Memories that come after it again."""
    recalls: list[RecallAgain] = Field(default_factory=list)

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.memory.id, *self.follower_ids]


class _Between(Payload):
    source_id: MemoryId
    relation: Literal["DERIVED_FROM", "SUPPORTS", "SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF"]
    target_id: MemoryId

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.source_id, self.target_id]


class MemoryLinked(_Between):
    """A link was made, or its properties set."""

    TYPE = "memory.linked"

    score: Finite | None = None
    reason: Text | None = None
    created_at: Timestamp


class MemoryUnlinked(_Between):
    """A link was taken back."""

    TYPE = "memory.unlinked"


class MemoryDerived(Payload):
    """A memory was distilled from others: DERIVED_FROM to each, and SUPPORTS from each."""

    TYPE = "memory.derived"

    id: MemoryId
    source_ids: Annotated[list[MemoryId], Field(min_length=1, max_length=MAX_ITEMS)]
    created_at: Timestamp

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id, *self.source_ids]


class AccessEffect(Strict):
    """Use of a memory and its relevance after an access."""

    id: MemoryId
    access_count: Count
    last_accessed_at: Timestamp
    relevance_anchor: Finite
    relevance_at: Timestamp


class AccessRecorded(Payload):
    """Memories were used."""

    TYPE = "access.recorded"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

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


class RetrievalRecorded(Payload):
    """An agent was given these memories. `query_hmac` is an HMAC: the query itself is not kept."""

    TYPE = "retrieval.recorded"
    SCOPES = SYSTEM

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


class OutcomeRecorded(Payload):
    """What became of a retrieval."""

    TYPE = "outcome.recorded"
    SCOPES = SYSTEM

    query_id: MemoryId
    outcome: Name
    used: list[MemoryId] = Field(default_factory=list)
    overridden: list[MemoryId] = Field(default_factory=list)
    recorded_at: Timestamp


class BuildConsolidated(Payload):
    """A build log was consolidated, wholly or (when time ran out) up to `consumed_keys`."""

    TYPE = "build.consolidated"

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

    def occurred_at(self) -> str | None:
        """Return when the build ended."""
        return self.completed_at


class SourceRead(Payload):
    """A source was read up to `cursor`; counts are totals over all reads."""

    TYPE = "source.read"

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


class DecayApplied(Payload):
    """The curve was read for all memories; it moved nothing."""

    TYPE = "decay.applied"
    SCOPES = SYSTEM

    applied_at: Timestamp
    updated: Count
    below_threshold: Count


class AcceptedWitness(Strict):
    """What said that the journal should be another: the event that it names, where it could be read."""

    kind: Literal["head", "checkpoint"]
    state: Literal["ahead", "missing", "damaged", "other"]
    seq: Whole | None = None
    signature: Sha256 | None = None


class JournalRepaired(Payload):
    """The journal was accepted as it was, up to `seq`, although its head file or checkpoint said otherwise.

    `events_lost` counts those that are known to have been written after it.
    """

    TYPE = "journal.repaired"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    seq: Whole
    signature: Sha256
    witnesses: Annotated[list[AcceptedWitness], Field(min_length=1, max_length=2)]
    events_lost: Whole
    dropped_bytes: Whole
    repaired_at: Timestamp
    repaired_by: Name
    reason: Text | None = None


PAYLOADS: dict[tuple[str, int], type[Payload]] = {
    (kind.TYPE, kind.VERSION): kind
    for kind in (
        StoreCreated,
        EmbeddingSwitched,
        MemoryAdded,
        MemoryRevised,
        MemoryMerged,
        MemoryReembedded,
        MemoryDeleted,
        MemoryUndeleted,
        MemoryLinked,
        MemoryUnlinked,
        MemoryDerived,
        AccessRecorded,
        RetrievalRecorded,
        OutcomeRecorded,
        BuildConsolidated,
        SourceRead,
        DecayApplied,
        CollectionApplied,
        CompressionApplied,
        ContradictionsSought,
        ProcedureMeasured,
        ProceduresLearned,
        ErrorsAnalysed,
        SleepAdvanced,
        JournalRepaired,
        VectorsLost,
    )
}
