"""Earlier versions of payloads: they validate old events, which `upcasting` then brings up to the present version.

They are only read. A memory's record in version 1 has none of the fields of an attempt.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from memgraph.model.attempts import ATTEMPT_FIELDS
from memgraph.model.base import MAX_ITEMS, Count, Name, Strict, Text, Timestamp
from memgraph.model.events.memories import (
    FIXED,
    Clearable,
    MemoryAdded,
    MemoryUndeleted,
    RecallAgain,
    Revision,
    VectorRef,
)
from memgraph.model.events.payload import SYSTEM, Payload, Sha256, Whole
from memgraph.model.events.reembedding import MemoryReembedded, PlacedVector
from memgraph.model.events.store import JournalRepaired
from memgraph.model.ids import MemoryId
from memgraph.model.memory import MemoryRecord

_NEW_IN_2 = ATTEMPT_FIELDS | {"is_solved"}
_FIELDS: dict[str, Any] = {
    name: (field.rebuild_annotation(), field)
    for name, field in MemoryRecord.model_fields.items()
    if name not in _NEW_IN_2
}
_Record = create_model("MemoryRecord", __base__=Strict, **_FIELDS)
_Patch = create_model(
    "RecordPatch",
    __base__=Strict,
    **{name: (kind | None, None) for name, (kind, _) in _FIELDS.items() if name not in FIXED},
)  # type: ignore[call-overload]


class MemoryAdded1(Payload):
    """``memory.added``, version 1."""

    TYPE = "memory.added"
    BY_STORE_ALONE = True
    POLICY = MemoryAdded.POLICY

    memory: _Record  # type: ignore[valid-type]
    vector: VectorRef | None = None


class _Revision1(Payload):
    BY_STORE_ALONE = True
    POLICY = Revision.POLICY

    id: MemoryId
    changed: _Patch  # type: ignore[valid-type]
    cleared: list[Clearable] = Field(default_factory=list)
    vector: VectorRef | None = None


class MemoryRevised1(_Revision1):
    """``memory.revised``, version 1."""

    TYPE = "memory.revised"


class MemoryMerged1(_Revision1):
    """``memory.merged``, version 1."""

    TYPE = "memory.merged"

    candidate_id: MemoryId | None = None


class MemoryMerged2(Revision):
    """``memory.merged``, version 2."""

    TYPE = "memory.merged"
    VERSION = 2
    BY_STORE_ALONE = True

    candidate_id: MemoryId | None = None


class MemoryUndeleted1(Payload):
    """``memory.undeleted``, version 1."""

    TYPE = "memory.undeleted"
    BY_STORE_ALONE = True
    POLICY = MemoryUndeleted.POLICY

    memory: _Record  # type: ignore[valid-type]
    vector: VectorRef | None = None
    added_seq: Count
    follower_ids: list[MemoryId] = Field(default_factory=list)
    recalls: list[RecallAgain] = Field(default_factory=list)


class AcceptedWitness(Strict):
    """A witness in ``journal.repaired``, version 1."""

    kind: Literal["head", "checkpoint"]
    state: Literal["ahead", "missing", "damaged", "other"]
    seq: Whole | None = None
    signature: Sha256 | None = None


class JournalRepaired1(Payload):
    """``journal.repaired``, version 1."""

    TYPE = "journal.repaired"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = JournalRepaired.POLICY

    seq: Whole
    signature: Sha256
    witnesses: Annotated[list[AcceptedWitness], Field(min_length=1, max_length=2)]
    events_lost: Whole
    dropped_bytes: Whole
    repaired_at: Timestamp
    repaired_by: Name
    reason: Text | None = None


class MemoryReembedded1(Payload):
    """``memory.reembedded``, version 1: it names at least one vector."""

    TYPE = "memory.reembedded"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = MemoryReembedded.POLICY

    model: Name
    embedded_at: Timestamp
    vectors: Annotated[list[PlacedVector], Field(min_length=1, max_length=MAX_ITEMS)]
