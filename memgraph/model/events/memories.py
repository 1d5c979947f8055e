"""Events about single memories: added, revised, merged, deleted and undeleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, create_model

from memgraph.model.base import Count, Finite, Name, Strict, Text
from memgraph.model.events.payload import ANY, Payload, Policy, Sha256, Stored, its_id, sparse
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


class MemoryAdded(Payload):
    """A memory was added."""

    TYPE = "memory.added"
    VERSION = 2
    POLICY = Policy(
        carries=its_record, purge="restated", is_reduced=True, agents="of_one", irreversible=None, has_links=False
    )

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


class Revision(Payload):
    """A change of a memory's fields."""

    POLICY = Policy(
        carries=its_id, purge="restated", is_reduced=True, agents="of_one", irreversible=None, has_links=False
    )

    id: MemoryId
    changed: RecordPatch  # type: ignore[valid-type]
    cleared: list[Clearable] = Field(default_factory=list)
    """Fields that are no longer set."""
    vector: VectorRef | None = None

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id]

    def row_after(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the row with these changes."""
        kept = {name: value for name, value in row.items() if name not in self.cleared}
        return {**kept, **sparse(self.changed.model_dump())}  # type: ignore[attr-defined]


class MemoryRevised(Revision):
    """Fields of a memory were changed."""

    TYPE = "memory.revised"
    VERSION = 2


class MemoryMerged(Revision):
    """A duplicate was merged into a memory; `candidate_id` is the id that the duplicate would have had.

    `candidate_content` is its text, where it is kept nowhere else: the duplicate was never stored.
    """

    TYPE = "memory.merged"
    VERSION = 3

    candidate_id: MemoryId | None = None
    candidate_content: Text | None = None


class MemoryDeleted(Payload):
    """A memory and its links were removed from every view. Its history stays."""

    TYPE = "memory.deleted"
    SCOPES = ANY
    POLICY = Policy(
        carries=its_id,  # it states why
        is_reduced=True,
        irreversible=None,
        told="deleted",
        lineage="changed",
    )

    id: MemoryId
    reason: Text | None = None

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id]

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


class MemoryUndeleted(Payload):
    """A deleted memory was restored as it was. Events of the same commit restore its links."""

    TYPE = "memory.undeleted"
    VERSION = 2
    BY_STORE_ALONE = True
    POLICY = Policy(carries=its_record, purge="restated", is_reduced=True, irreversible=None, lineage="changed")

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
