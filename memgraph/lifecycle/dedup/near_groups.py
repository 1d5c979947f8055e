"""Neighbours within a group of memories: by vectors, or by words where one of two has no vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.lifecycle.dedup.thresholds import SLEEP_COSINE, SLEEP_OVERLAP
from memgraph.lifecycle.dedup.word_index import WordIndex
from memgraph.store.query import Reader

_BLOCK = 256
_FEW = 0.25
"""Up to this share of new members, only the new ones are compared with the rest."""
_READ = 2_000

Slots = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Near(NamedTuple):
    """A member by its place in the group, and its similarity: the share of common terms if `is_by_words`, else the cosine."""

    place: int
    score: float
    is_by_words: bool


class Group:
    """Members by their place in the given order.

    Parameters
    ----------
    slots : ndarray of int
        Index slots of the members.
    is_new : ndarray of bool
        Which members are new; the others were compared with each other before.
    """

    def __init__(self, reader: Reader, slots: Slots, is_new: Mask) -> None:
        index = reader.index
        self.ids = [index.ids.names[slot] for slot in slots.tolist()]
        self._has_vector = reader.has_vector(slots)
        few = is_new.sum() <= _FEW * len(slots)
        self._is_new: Mask = is_new if few else np.ones(len(slots), dtype=np.bool_)
        self._units = _units(reader, slots, self._has_vector)
        self._words = None if self._has_vector.all() else WordIndex(_terms(reader, self.ids), least=SLEEP_OVERLAP)

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self) -> Iterator[tuple[int, list[Near]]]:
        """Yield each member with neighbours, in order, with the later members that are near it, nearest first.

        One of the two is new. Each place is evaluated when it is reached, so `take_text` on an earlier member has
        effect.
        """
        everyone = np.arange(len(self))
        new = everyone[self._is_new]
        for start in range(0, len(self), _BLOCK):
            others = everyone[start:] if self._is_new.all() else new[new > start]
            block = slice(start, min(start + _BLOCK, len(self)))
            cosines = self._units[block] @ self._units[others].T
            hits = cosines >= SLEEP_COSINE - 1e-6
            has_any: Mask = np.asarray(hits.any(axis=1))
            for place in range(block.start, block.stop):
                if self._is_new[place] and len(others) < len(self) - start:
                    found = self._by_vector(place)
                elif has_any[place - start]:
                    at = np.flatnonzero(hits[place - start])
                    found = _nears(others[at], cosines[place - start, at])
                else:
                    found = []
                later = [near for near in [*found, *self._by_words(place)] if near.place > place]
                yield place, self._sorted(later)

    def near(self, place: int) -> list[Near]:
        """Return all members that are near one, nearest first, ties in id order."""
        return self._sorted([*self._by_vector(place), *self._by_words(place)])

    def take_text(self, place: int, of: int) -> None:
        """Replace a member's text with that of another one."""
        self._units[place] = self._units[of]
        self._has_vector[place] = self._has_vector[of]
        self._is_new[place] = True
        if self._words is not None:
            self._words.replace(place, of)

    def _by_vector(self, place: int) -> list[Near]:
        if not self._has_vector[place]:
            return []
        cosines = self._units @ self._units[place]
        found = np.flatnonzero(cosines >= SLEEP_COSINE - 1e-6)
        found = found[found != place]
        return _nears(found, cosines[found])

    def _by_words(self, place: int) -> list[Near]:
        if self._words is None:
            return []
        return [
            Near(other, round(share, 6), is_by_words=True)
            for other, share in self._words.like(place)
            if not (self._has_vector[place] and self._has_vector[other])
            and (self._is_new[place] or self._is_new[other])
        ]

    def _sorted(self, found: list[Near]) -> list[Near]:
        return sorted(found, key=lambda near: (-near.score, self.ids[near.place]))


def _nears(places: NDArray[np.int64], cosines: NDArray[np.float32]) -> list[Near]:
    """Return neighbours by vector with rounded cosines: the last digit of equal vectors may differ between products."""
    rounded = np.round(cosines.astype(np.float64), 6)
    near = rounded >= SLEEP_COSINE
    return [
        Near(place, score, is_by_words=False)
        for place, score in zip(places[near].tolist(), rounded[near].tolist(), strict=True)
    ]


def _units(reader: Reader, slots: Slots, has_vector: Mask) -> NDArray[np.float32]:
    """Return the members' vectors, L2-normalised, shape (n, d), float32; zero where a member has none."""
    kept = reader.vectors(slots[has_vector])
    norms = np.linalg.norm(kept, axis=1, keepdims=True)
    units = np.zeros((len(slots), kept.shape[1]), dtype=np.float32)
    units[has_vector] = kept / np.where(norms == 0, 1.0, norms)
    return units


def _terms(reader: Reader, ids: Sequence[str]) -> list[frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for start in range(0, len(ids), _READ):
        rows = reader.rows(ids[start : start + _READ])
        found |= {row["id"]: frozenset(analyse(row["content"])) for row in rows}
    return [found.get(one, frozenset()) for one in ids]
