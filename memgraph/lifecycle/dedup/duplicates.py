"""Duplicates: the memories that say the same as a given one, by vector or in equal words.

Call these while the store is frozen: under the writer lock, or within ``with store.reader.frozen():``.
"""

from __future__ import annotations

import numpy as np

from memgraph.index.analyser import analyse
from memgraph.index.index import scope_name
from memgraph.lifecycle.dedup.facts import is_equal
from memgraph.lifecycle.dedup.same import same
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, StoredMemory, Vector
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Mask, Reader

_LOOKED_AT = 8
"""Of the memories that are near enough, this many are read and compared."""
_LOOSE_WORDS = 3
"""Words by which two equal texts may differ when they are counted by white space: dashes and bullets stand alone or not."""
_UNKNOWN = -2
"""Code of a scope that no memory has."""


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
        state another fact are skipped (`same`).
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
        if found is not None and (of is None or same(found, of)):
            return -negative, found
    return -1.0, None


def equal_memories(reader: Reader, text: str, mask: Mask) -> list[StoredMemory]:
    """Return the masked memories with an equal text (`is_equal`), in id order.

    Costs the length of the postings of the text's terms. A text without any term, of signs alone, equals none.
    """
    if not mask.any():
        return []
    index = reader.index
    words = len(text.split())
    mask = mask & (np.abs(index.column("words") - words) <= _LOOSE_WORDS + words // 4)
    terms = set(analyse(canonical_name(text)))
    for term in terms:  # a text's terms are among those of every text that equals it, however it is written
        code = index.vocabulary.find(term)
        holds = np.zeros(len(index), dtype=np.bool_)
        if code >= 0:
            holds[index.postings.get(code)[0]] = True
        mask &= holds
    slots = np.flatnonzero(mask) if terms else ()
    memories = reader.read(sorted(index.ids.names[slot] for slot in slots))
    return [memory for memory in memories if is_equal(memory.content, text)]
