"""Links between memories."""

from __future__ import annotations

from typing import Literal

from memgraph.errors import InvalidInputError
from memgraph.model.base import Finite, Model, Text, Timestamp, checked
from memgraph.model.ids import MemoryId

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
    reason : str or None
        Why it was made.
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
    """Return (source, RELATION, target) for a relation in any case; seed 3's ``superseded_by`` is inverted.

    Raises
    ------
    InvalidInputError
        The relation cannot be set.
    """
    name = checked(str, relation, "relation").upper()
    if name == "SUPERSEDED_BY":
        return target_id, "SUPERSEDES", source_id
    if name not in EXPLICIT_RELATIONS:
        raise InvalidInputError(f"must be one of {', '.join(EXPLICIT_RELATIONS)}", field="relation", value=relation)
    return source_id, name, target_id
