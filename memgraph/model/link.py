"""Links between memories, and the chronological order of memories by the time to which their content refers."""

from __future__ import annotations

from typing import Literal

from memgraph.errors import InvalidInputError
from memgraph.model.base import Finite, Model, Text, Timestamp, checked
from memgraph.model.ids import MemoryId
from memgraph.model.memory import StoredMemory

Relation = Literal[
    "DERIVED_FROM", "SUPPORTS", "SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF", "NEXT"
]

EXPLICIT_RELATIONS: tuple[str, ...] = (
    "DERIVED_FROM",
    "SUPPORTS",
    "SUPERSEDES",
    "CONTRADICTS",
    "RELATED_TO",
    "ELABORATES",
    "EXAMPLE_OF",
)
"""Relations that have their own events; NEXT is derived from a memory's `previous_id`."""

REPLACED = "a later memory about the same thing replaces it"
"""The `invalidation_reason` of a memory that the search for contradictions found replaced, not contradicted."""


class Link(Model):
    """A directed edge between two memories.

    Attributes
    ----------
    score : float or None
        Strength or confidence of the link.
    created_at : str or None
        When it was recorded; None for NEXT.
    """

    source_id: MemoryId
    relation: Relation
    target_id: MemoryId
    score: Finite | None = None
    reason: Text | None = None
    created_at: Timestamp | None = None


def oriented(source_id: str, relation: str, target_id: str) -> tuple[str, str, str]:
    """Return (source, RELATION, target) for a relation in any case, or raise `InvalidInputError`; seed 3's ``superseded_by`` is inverted."""
    name = checked(str, relation, "relation").upper()
    if name == "SUPERSEDED_BY":
        return target_id, "SUPERSEDES", source_id
    if name not in EXPLICIT_RELATIONS:
        raise InvalidInputError(f"must be one of {', '.join(EXPLICIT_RELATIONS)}", field="relation", value=relation)
    return source_id, name, target_id


def since(memory: StoredMemory) -> str:
    """Return the time from which a memory's content holds, as far as it states one."""
    return memory.valid_at or memory.occurred_at


def in_order(one: StoredMemory, other: StoredMemory) -> tuple[StoredMemory, StoredMemory]:
    """Return two memories in order: by the time from which their content holds, then by when they were recorded, then by id."""
    return (one, other) if moment(one) <= moment(other) else (other, one)


def moment(memory: StoredMemory) -> tuple[str, str, str]:
    """Return what memories are ordered by in time; the id decides between those of one source and one commit."""
    return since(memory), memory.created_at, memory.id
