"""Contradictions, and the result of a search for them."""

from __future__ import annotations

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Count, Model, Timestamp, Unit
from memgraph.model.memory import StoredMemory


class Contradiction(Model):
    """Two memories that cannot both hold.

    Attributes
    ----------
    newer, older : StoredMemory
        Ordered by the time from which their contents hold, as far as they state it.
    score : float or None
        Share of their words that they have in common; None if they were linked by hand.
    reason : str or None
        How they differ, by their present texts; the link between them stores only the kind, and quotes neither.
    found_at : str or None
    """

    newer: SerializeAsAny[StoredMemory]
    older: SerializeAsAny[StoredMemory]
    score: Unit | None = None
    reason: str | None = None
    found_at: Timestamp | None = None


class ContradictionResult(Model):
    """Result of a search for contradictions.

    Attributes
    ----------
    looked_at : int
        Memories that are new or changed since the last run.
    found : int
        Pairs that are now linked.
    superseded : int
        Memories that a sufficiently certain newer one replaced; the other contradictions are open.
    replaced : int
        Memories that a later statement about the same thing replaced without contradicting them.
    complete : bool
        False if time ran out; the next run continues.
    """

    looked_at: Count = 0
    found: Count = 0
    superseded: Count = 0
    replaced: Count = 0
    complete: bool = True
    memory_ids: list[str] = Field(default_factory=list)
    """The newer memory of each pair found."""
