"""Duplicates: which memories in force could be duplicates of a new one, and which of them is nearest.

Call these while the store is frozen: under the writer lock, or within ``with store.reader.frozen():``.
"""

from __future__ import annotations

import numpy as np

from memgraph.index.columns import OUTCOMES, TIERS, TRUST, columns_of_source
from memgraph.index.index import scope_name
from memgraph.lifecycle.dedup.equal_text import Mask, equal_memories
from memgraph.lifecycle.dedup.sameness import says_the_same
from memgraph.model.memory import AgentMemory, StoredMemory, Vector
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_session

_LOOKED_AT = 8
"""Of the memories that are near enough, this many are read and compared."""
_UNKNOWN = -2
"""Code of a scope that no memory has."""


def possible_duplicates(store: AgentMemoryStore, memory: AgentMemory) -> Mask:
    """Return which memories in force have the same type, project, task, privacy tier, trust class and outcome; private ones the same domain."""
    index = store.reader.index
    mask = store.reader.listed(type=memory.type) & ~store.reader.superseded()
    mask &= of_scope(store, "project", memory.project_id) & of_scope(store, "task", memory.task_id)
    mask &= index.column("tier") == TIERS.index(memory.privacy_tier)
    if memory.privacy_tier == "private":
        mask &= of_scope(store, "domain", memory.domain)
    mask &= index.column("trust") == TRUST.index(memory.trust_class)
    mask &= index.column("outcome") == OUTCOMES.index(memory.outcome)
    return mask & told_with(store, memory)


def told_with(store: AgentMemoryStore, memory: AgentMemory) -> Mask:
    """Return which memories can be recalled where this one can: those of its session alone, or those that every session can recall."""
    index = store.reader.index
    bound: Mask = index.column("is_session_bound")
    if columns_of_source({"source": memory.source, "session_id": memory.session_id})["is_session_bound"]:
        return bound & of_session(index, memory.session_id)
    return ~bound


def of_scope(store: AgentMemoryStore, kind: str, name: str | None) -> Mask:
    """Return which memories have exactly this project, task or domain; for None, those without one."""
    index = store.reader.index
    code = -1
    if name is not None:
        found = index.scopes.find(scope_name(kind, name))
        code = found if found >= 0 else _UNKNOWN
    mask: Mask = index.column(kind) == code
    return mask


def nearest(
    store: AgentMemoryStore, vector: Vector, mask: Mask, *, threshold: float, of: AgentMemory | None = None
) -> tuple[float, StoredMemory | None]:
    """Return the greatest cosine among the masked memories, and the memory's id if the cosine reaches the threshold.

    Ties go to the lowest id; without any memory the cosine is −1.

    Parameters
    ----------
    of : AgentMemory, optional
        The memory whose vector it is: those with an equal text come first, however many others are as near; of the nearest few, those that
        state another fact are skipped (`says_the_same`).
    """
    index = store.reader.index
    slots = np.flatnonzero(mask & store.reader.has_vector())
    if not len(slots):
        return -1.0, None
    cosines = np.round(store.reader.cosines(vector, slots), 6)
    greatest = float(cosines.max())
    if greatest < threshold:
        return greatest, None
    is_near = cosines >= threshold
    near = sorted(
        (-float(cosine), index.ids.names[slot]) for cosine, slot in zip(cosines[is_near], slots[is_near], strict=True)
    )
    if of is not None and len(near) > _LOOKED_AT:
        crowd = np.zeros(len(index), dtype=np.bool_)
        crowd[slots[is_near]] = True
        equal = {one.id for one in equal_memories(store.reader, of.content, crowd)}
        near.sort(key=lambda pair: pair[1] not in equal)
    for negative, memory_id in near[:_LOOKED_AT]:
        found = next(iter(store.read_memories([memory_id])), None)
        if found is not None and (of is None or says_the_same(found, of)):
            return -negative, found
    return -1.0, None


def duplicate_of(
    store: AgentMemoryStore, memory: AgentMemory, mask: Mask, *, threshold: float
) -> tuple[float, StoredMemory | None]:
    """Return the masked memory with the same meaning, and its cosine; (−1, None) if there is none.

    Where one of two memories has no vector, they count as the same only if their texts are equal.
    """
    if memory.embedding is not None:
        cosine, found = nearest(store, memory.embedding, mask, threshold=threshold, of=memory)
        if found is not None:
            return cosine, found
        mask = mask & ~store.reader.has_vector()
    found = next(iter(equal_memories(store.reader, memory.content, mask)), None)
    return (1.0, found) if found is not None else (-1.0, None)
