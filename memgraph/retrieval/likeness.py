"""Similarity of memories to a text: by vectors where both have one, otherwise by shared words."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import numpy as np

from memgraph.index.analyser import analyse
from memgraph.index.index import Index
from memgraph.model.memory import Vector
from memgraph.retrieval.stages.rank import best
from memgraph.retrieval.stages.state import Scores
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Mask

_READ = 50
"""Maximum number of memories without vectors that are compared word by word: those sharing the rarest words."""
_MOST_HOLDING = 500
_DECIMALS = 6


def likeness(store: AgentMemoryStore, text: str, vector: Vector | None, mask: Mask) -> tuple[Scores, Mask]:
    """Return the similarity of each masked memory to a text, and which memories were comparable.

    Call it within ``with store.reader.frozen():``.

    Parameters
    ----------
    vector : ndarray, shape (d,), float32, or None
        The text's vector; None: compare by words alone.
    mask : ndarray, shape (slots,), bool

    Returns
    -------
    scores : ndarray, shape (slots,), float64
        The cosine of the vectors; for a memory without one, that of the words: 1 for equal texts. 0 where nothing could
        be compared.
    compared : ndarray, shape (slots,), bool
        Those with a vector, and those that share a word with the text.
    """
    index = store.reader.index
    by_meaning = mask & store.reader.has_vector() if vector is not None else np.zeros(len(index), dtype=np.bool_)
    scores = np.zeros(len(index))
    if vector is not None:
        scores[by_meaning] = np.round(store.reader.cosines(vector, np.flatnonzero(by_meaning)), _DECIMALS)
    shared = _shared_words(store, index, text, mask & ~by_meaning)
    for slot, score in shared.items():
        scores[slot] = score
    compared = by_meaning.copy()
    compared[list(shared)] = True
    return scores, compared


def holding(store: AgentMemoryStore, text: str, mask: Mask) -> Mask:
    """Return which masked memories contain a text, ignoring case and white space.

    Exact matches are preferred to prefixes, and prefixes to other matches; a single word must match exactly. None if
    hundreds of memories contain all of its words. Call it within ``with store.reader.frozen():``.
    """
    index, found = store.reader.index, mask.copy()
    terms = set(analyse(text))
    for term in terms:
        code = index.vocabulary.find(term)
        has_term = np.zeros(len(index), dtype=np.bool_)
        if code >= 0:
            has_term[index.postings.get(code)[0]] = True
        found &= has_term
    ways = np.zeros(len(index), dtype=np.int8)
    if terms and found.sum() <= _MOST_HOLDING:
        wanted = _plain(text)
        for memory in store.read_memories([index.ids.names[slot] for slot in np.flatnonzero(found)]):
            content = _plain(memory.content)
            way = 3 if content == wanted else 2 if content.startswith(wanted) else int(wanted in content)
            ways[index.slot(memory.id)] = way if way == 3 or len(terms) > 1 else 0
    literal: Mask = (ways > 0) & (ways == ways.max(initial=0))
    return literal


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _shared_words(store: AgentMemoryStore, index: Index, text: str, mask: Mask) -> dict[int, float]:
    """Return the word similarity of the best masked slots that share a word with a text."""
    weights = np.zeros(len(index))
    for term in sorted(set(analyse(text))) if mask.any() else ():
        code = index.vocabulary.find(term)
        slots = index.postings.get(code)[0] if code >= 0 else np.empty(0, np.int32)
        slots = slots[mask[slots]]
        weights[slots] += np.log1p(mask.sum() / max(1, len(slots)))  # rarer words weigh more
    chosen = best(index, weights, np.flatnonzero(weights > 0), _READ)
    memories = store.read_memories([index.ids.names[slot] for slot in chosen])
    return {index.slot(memory.id): _cosine_of_words(text, memory.content) for memory in memories}


def _cosine_of_words(one: str, other: str) -> float:
    """Return the cosine of the term counts of two texts, in [0, 1]."""
    left, right = Counter(analyse(one)), Counter(analyse(other))
    product = sum(count * right[term] for term, count in left.items())
    lengths = sqrt(sum(count**2 for count in left.values()) * sum(count**2 for count in right.values()))
    return round(product / lengths, _DECIMALS) if lengths else 0.0
