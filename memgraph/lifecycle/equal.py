"""Equal texts: what two memories without vectors to compare can still be told to have in common."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.lifecycle.conflict import conflict_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory
from memgraph.store import AgentMemoryStore

_NEGATIONS = re.compile(
    r"\b(?:not|never|no longer|cannot|without|neither|nor|avoid(?:s|ed)?|stopped|refuse[sd]?)\b|n['’]t\b", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"[\w./-]{0,200}\w[_./]\w[\w./-]{0,200}\w|\b\w{1,60}_\w{1,60}\b")
Mask = NDArray[np.bool_]


def is_equal(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, white space and compatibility forms (NFKC)."""
    return canonical_name(one) == canonical_name(other)


def differ(one: AgentMemory, other: AgentMemory) -> bool:
    """Whether two memories that are near each other still say different things.

    One denies, each names what the other does not, or they conflict (`conflict_of`): another port is another fact. What a text
    names are its identifiers: paths, files, dotted and compound names. Vectors hardly see these differences. The same failure
    by its fingerprint is the same whatever it names.
    """
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        return False
    if _denies(one.content) != _denies(other.content):
        return True
    names, others = _identifiers(one.content), _identifiers(other.content)
    return (bool(names - others) and bool(others - names)) or conflict_of(one, other) is not None


def _denies(text: str) -> bool:
    return len(_NEGATIONS.findall(text[:MAX_CONTENT_CHARS])) % 2 == 1


def _identifiers(text: str) -> frozenset[str]:
    return frozenset(name.casefold().rsplit("/", 1)[-1] for name in _IDENTIFIER.findall(text[:MAX_CONTENT_CHARS]))


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
