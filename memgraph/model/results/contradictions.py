"""Contradictions, and what a search for them did."""

from __future__ import annotations

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Count, Model, Timestamp, Unit
from memgraph.model.memory import StoredMemory


class Contradiction(Model):
    """Two memories that cannot both be so.

    Attributes
    ----------
    newer, older : StoredMemory
        By when what they say became so, as far as they tell.
    score : float or None
        Share of their words that they have in common; None where somebody linked them by hand.
    reason : str or None
        What they differ in, as their texts tell it now; the link between them holds the kind alone, and quotes neither.
    found_at : str or None
    """

    newer: SerializeAsAny[StoredMemory]
    older: SerializeAsAny[StoredMemory]
    score: Unit | None = None
    reason: str | None = None
    found_at: Timestamp | None = None


class ContradictionResult(Model):
    """What a search for contradictions did.

    Attributes
    ----------
    looked_at : int
        Memories, new or changed since the last run.
    found : int
        Pairs that are linked now.
    superseded : int
        Memories that a newer one was sure enough to replace; the other contradictions are open.
    complete : bool
        False where time ran out: the next run goes on from there.
    """

    looked_at: Count = 0
    found: Count = 0
    superseded: Count = 0
    complete: bool = True
    memory_ids: list[str] = Field(default_factory=list)
    """The newer memory of each pair that was found."""
