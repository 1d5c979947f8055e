"""Near: which memories are near which others by their vectors or, where one of two has none, by the words that they share.

Call this while the store is frozen. For n memories and m others of dimension d it costs O(n · m · d), and by words the length of the
postings of a text's rarest terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import Index
from memgraph.store.query import Reader
from memgraph.text.words import overlap

Slots = NDArray[np.int64]
_BLOCK, _FEW = 8_192, 8
_RAREST = 6
_MOST_HOLDERS = 2_000
"""Of the memories with a term, this many are looked at, the last ones."""


def near(
    reader: Reader, slots: Sequence[int], others: Slots, *, cosine: float, share: float, of_smaller: bool, most: int
) -> dict[int, dict[int, float]]:
    """Return for each memory the nearest of some others, and how near: their cosine, or the share of common terms.

    Parameters
    ----------
    cosine, share : float
        The least cosine, and the least share of common terms: of the smaller text, or of both.
    """
    found: dict[int, dict[int, float]] = {slot: {} for slot in slots}
    if not slots:
        return found
    places = np.array(list(slots), dtype=np.int64)
    own, has_vector = places[reader.has_vector(places)].tolist(), reader.has_vector(others)
    for block, cosines in _cosines(reader, own, others[has_vector]):
        for row, at in zip(*(there.tolist() for there in np.nonzero(cosines >= cosine)), strict=True):
            found[own[row]][int(block[at])] = float(cosines[row, at])
    lacking, with_vector = others[~has_vector], set(own)
    for slot in slots:
        unseen = lacking if slot in with_vector else others
        by_words = sharing(reader.index, slot, unseen, share=share, of_smaller=of_smaller, most=most)
        ordered = sorted((found[slot] | by_words).items(), key=lambda item: (-item[1], item[0]))
        found[slot] = dict([item for item in ordered if item[0] != slot][:most])
    return found


def _cosines(reader: Reader, slots: Sequence[int], others: Slots) -> Iterator[tuple[Slots, NDArray[Any]]]:
    """Yield blocks of others with their cosines to some memories, shape (slots, others): of a few by a search, of many by products."""
    if not slots or not len(others):
        return
    vectors = reader.vectors(np.array(slots))
    if len(slots) <= _FEW:
        yield others, np.round(np.array([reader.cosines(one, others, only_near=True) for one in vectors]), 6)
        return
    for start in range(0, len(others), _BLOCK):
        block = others[start : start + _BLOCK]
        yield block, np.round((_units(vectors) @ _units(reader.vectors(block)).T).astype(np.float64), 6)


def _units(vectors: NDArray[np.float32]) -> NDArray[Any]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, np.float32(1), norms)


def sharing(index: Index, slot: int, others: Slots, *, share: float, of_smaller: bool, most: int) -> dict[int, float]:
    """Return those that have one of a memory's rarest terms and share enough of their terms with it, and how much.

    Texts of which two thirds of all terms are common have one of the rarest third in common (prefix filter: Chaudhuri, Ganti, Kaushik 2006;
    Bayardo, Ma, Srikant 2007).
    """
    own = set(index.sequences.get(slot).tolist())
    if not len(others) or not own:
        return {}
    shared_terms = (held for code in own if len(held := index.postings.get(code)[0]) > 1)
    rarest = sorted(shared_terms, key=len)[: max(_RAREST, len(own) // 3 + 1)]
    holders, shared = np.unique(
        np.concatenate([np.empty(0, np.int64), *(held[-_MOST_HOLDERS:] for held in rarest)]), return_counts=True
    )
    fit = np.isin(holders, others) & (holders != slot)
    first = holders[fit][np.argsort(-shared[fit], kind="stable")][: 4 * most].tolist()
    alike = {other: overlap(own, set(index.sequences.get(other).tolist()), of_smaller=of_smaller) for other in first}
    return {other: round(found, 6) for other, found in alike.items() if found >= share}
