"""Events about memories: single ones, the links between them, and the vectors of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model

from memgraph.model.base import MAX_ITEMS, Count, Finite, Name, Strict, Text, Timestamp
from memgraph.model.events.payload import (
    ANY,
    JOURNAL,
    JournalPayload,
    OfOneMemory,
    Payload,
    Policy,
    Sha256,
    Stored,
    its_id,
    nothing,
    sparse,
)
from memgraph.model.ids import MemoryId
from memgraph.model.memory import MemoryRecord


class VectorRef(Strict):
    """The location of a memory's vector: its row in ``vectors/<model>.f32`` and the SHA-256 of its bytes."""

    model: Name
    row: Count
    sha256: Sha256


def its_record(content: Stored) -> list[str]:
    """Return the memory that a payload states."""
    return [content["memory"]["id"]]


class MemoryAdded(Payload, type="memory.added", version=3):
    """A memory was added."""

    POLICY = Policy(carries=its_record, purge="restated", agents="of_one", irreversible=None)

    memory: MemoryRecord
    vector: VectorRef | None = None

    def occurred_at(self) -> str | None:
        """Return when the remembered thing happened."""
        return self.memory.occurred_at

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.memory.id]


FIXED = {"id", "type", "created_at"}
RecordPatch = create_model(
    "RecordPatch",
    __base__=Strict,
    **{
        name: (field.rebuild_annotation() | None, None)
        for name, field in MemoryRecord.model_fields.items()
        if name not in FIXED
    },
)  # type: ignore[call-overload]
"""New values of a memory's fields; absent means unchanged."""


def _clearable(name: str) -> str:
    field = MemoryRecord.model_fields.get(name)
    if field is None or field.is_required():
        raise ValueError("is not a field that can be unset")
    return name


Clearable = Annotated[str, AfterValidator(_clearable)]


class Revision(OfOneMemory):
    """A change of a memory's fields."""

    POLICY = Policy(carries=its_id, purge="restated", agents="of_one", irreversible=None)

    changed: RecordPatch  # type: ignore[valid-type]
    cleared: list[Clearable] = Field(default_factory=list)
    """Fields that are no longer set."""
    vector: VectorRef | None = None

    def row_after(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with these changes."""
        kept = {name: value for name, value in row.items() if name not in self.cleared}
        return {**kept, **sparse(vars(self.changed))}


class MemoryRevised(Revision, type="memory.revised", version=3):
    """Fields of a memory were changed."""


class MemoryMerged(Revision, type="memory.merged", version=4):
    """A duplicate, never stored, was merged into a memory: the id that it would have had, and its text where that is kept nowhere else."""

    candidate_id: MemoryId | None = None
    candidate_content: Text | None = None


class MemoryDeleted(OfOneMemory, type="memory.deleted"):
    """A memory and its links were removed from every view. Its history stays."""

    SCOPES = ANY
    POLICY = Policy(
        carries=its_id,  # it states why
        irreversible=None,
        told="deleted",
        lineage="changed",
    )

    reason: Text | None = None

    def removed_ids(self) -> list[str]:
        """Return the memories that it removes from every view."""
        return [self.id]


class RecallAgain(Strict):
    """One retrieval that had returned a restored memory, and the memory's role in it."""

    query_id: MemoryId
    rank: Count
    score: Finite
    tokens: Count
    used: bool | None = None


class MemoryUndeleted(Payload, type="memory.undeleted", version=3):
    """A deleted memory was restored as it was. Events of the same commit restore its links."""

    BY_STORE_ALONE = True
    POLICY = Policy(carries=its_record, purge="restated", irreversible=None, lineage="changed")

    memory: MemoryRecord
    """`previous_id` names its nearest predecessor that exists now."""
    vector: VectorRef | None = None
    added_seq: Count
    """Sequence number of the event that added it: its old place in the order of memories."""
    follower_ids: list[MemoryId] = Field(default_factory=list)
    """Memories that follow it again."""
    recalls: list[RecallAgain] = Field(default_factory=list)

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.memory.id, *self.follower_ids]


def its_ends(content: Stored) -> list[str]:
    """Return the two memories of a link."""
    return [content["source_id"], content["target_id"]]


class _Between(Payload):
    source_id: MemoryId
    relation: Literal["DERIVED_FROM", "SUPPORTS", "SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF"]
    target_id: MemoryId

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.source_id, self.target_id]


class MemoryLinked(_Between, type="memory.linked"):
    """A link was created, or its properties were set."""

    POLICY = Policy(
        carries=its_ends,  # it states why
        agents="of_all",
        irreversible=None,
        lineage="by_relation",
    )

    score: Finite | None = None
    reason: Text | None = None
    created_at: Timestamp


class MemoryUnlinked(_Between, type="memory.unlinked"):
    """A link was removed."""

    POLICY = Policy(carries=nothing, agents="of_all", irreversible=None, lineage="by_relation")


class MemoryDerived(Payload, type="memory.derived"):
    """A memory was distilled from others: DERIVED_FROM to each, and SUPPORTS from each."""

    POLICY = Policy(carries=nothing, agents="in_part", irreversible=None, lineage="changed")

    id: MemoryId
    source_ids: Annotated[list[MemoryId], Field(min_length=1, max_length=MAX_ITEMS)]
    created_at: Timestamp

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id, *self.source_ids]


class PlacedVector(Strict):
    """The location of one memory's vector in the file of the model that is named beside it."""

    id: MemoryId
    row: Count
    sha256: Sha256


class MemoryReembedded(JournalPayload, type="memory.reembedded"):
    """Memories of any scope have new vectors of `model`, for unchanged texts; of the same commit as the change of the store's model."""

    POLICY = Policy(
        carries=nothing,
        purge="stays",
        agents="whole",
        irreversible="it stores vectors of another embedding model; `memgraph reembed` switches back",
        told="embedded again with another model",
    )

    model: Name
    embedded_at: Timestamp
    vectors: Annotated[list[PlacedVector], Field(min_length=1, max_length=MAX_ITEMS)]

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [vector.id for vector in self.vectors]


class VectorsLost(JournalPayload, type="vectors.lost"):
    """Rows of a model hold other bytes than earlier events named, and no memory uses them: unchecked until a later event names them."""

    POLICY = replace(JOURNAL, agents="whole")

    model: Name
    rows: Annotated[list[Count], Field(min_length=1, max_length=MAX_ITEMS)]
    recorded_at: Timestamp
