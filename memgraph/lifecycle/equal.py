"""Equal texts: what two memories without vectors to compare can still be told to have in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory
from memgraph.store import AgentMemoryStore

Mask = NDArray[np.bool_]


def is_equal(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, white space and compatibility forms (NFKC)."""
    return canonical_name(one) == canonical_name(other)


def equal_memory(store: AgentMemoryStore, text: str, mask: Mask) -> AgentMemory | None:
    """Return the masked memory with an equal text; of several the one with the lowest id.

    Costs the length of the postings of the text's terms. A text without any term, of signs alone, equals none.
    """
    if not mask.any():
        return None
    index = store.reader.index
    mask = mask & (index.column("words") == len(text.split()))
    terms = set(analyse(canonical_name(text)))
    for term in terms:  # a text's terms are among those of every text that equals it, however it is written
        code = index.vocabulary.find(term)
        holds = np.zeros(len(index), dtype=np.bool_)
        if code >= 0:
            holds[index.postings.get(code)[0]] = True
        mask &= holds
    slots = np.flatnonzero(mask) if terms else ()
    memories = store.read_memories(sorted(index.ids.names[slot] for slot in slots))
    return next((memory for memory in memories if is_equal(memory.content, text)), None)
