"""Memories of the pending commit, so that its own memories are deduplicated as well."""

from __future__ import annotations

import numpy as np

from memgraph.lifecycle.dedup.same_fact import is_equal
from memgraph.lifecycle.dedup.sameness import says_the_same
from memgraph.model.memory import AgentMemory, Vector, id_of


class Batch:
    """Memories added or merged in the pending commit."""

    def __init__(self, now: str) -> None:
        self.now = now
        self.touched: dict[str, AgentMemory] = {}
        self._added: set[str] = set()
        self._units: dict[str, Vector] = {}

    def add(self, memory: AgentMemory) -> None:
        """Add a new memory, with the times that its commit will set."""
        filled = {
            name: getattr(memory, name) or self.now
            for name in ("created_at", "updated_at", "relevance_at", "occurred_at")
        }
        self._added.add(id_of(memory))
        self.touch(memory.model_copy(update=filled))

    def touch(self, memory: AgentMemory) -> None:
        """Record the result of a merge into a memory."""
        self.touched[id_of(memory)] = memory
        if memory.id in self._added:
            self._units.pop(memory.id, None)
            if memory.embedding is not None:
                self._units[memory.id] = _unit(memory.embedding)

    def nearest(self, memory: AgentMemory, threshold: float) -> tuple[float, AgentMemory | None]:
        """Return the nearest new memory, and its cosine, among those near enough that state the same fact."""
        if memory.embedding is None or not self._units:
            return -1.0, None
        cosines = np.round(np.stack(list(self._units.values())) @ _unit(memory.embedding), 6)
        near = [(-float(cosine), key) for cosine, key in zip(cosines, self._units, strict=True) if cosine >= threshold]
        for negative, key in sorted(near):
            known = self.touched[key]
            if _may_merge(known, memory) and says_the_same(known, memory):
                return -negative, known
        return -1.0, None

    def equal(self, memory: AgentMemory) -> AgentMemory | None:
        """Return a new memory of equal text and kind, where one of the two has no vector."""
        compared = (one for one in self._kin_of(memory) if one.embedding is None or memory.embedding is None)
        return next((known for known in compared if is_equal(known.content, memory.content)), None)

    def _kin_of(self, memory: AgentMemory) -> list[AgentMemory]:
        return [self.touched[key] for key in sorted(self._added) if _may_merge(self.touched[key], memory)]


def _unit(vector: Vector) -> Vector:
    unit: Vector = vector / (float(np.linalg.norm(vector)) or 1.0)
    return unit


def _may_merge(known: AgentMemory, other: AgentMemory) -> bool:
    """Return for a new memory what `possible_duplicates` returns for stored ones."""
    if known.is_suppressed or known.archived_at or known.invalid_at:
        return False  # the extractor may have set it
    fields = ("type", "project_id", "task_id", "privacy_tier", "trust_class", "outcome")
    return all(getattr(known, name) == getattr(other, name) for name in fields)
