"""An index with further texts behind its own, for one search: the same statistics, and nothing is changed or kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.index.arrays import Ints, Multimap, Names, Sequences
from memgraph.index.index import Index


class JoinedIndex(Index):
    """A read-only view of two indexes as one: the slots of `more` follow those of `base`.

    The names, links, tags and agents are those of `base` alone: what is in `more` is found by its text, its columns and its vectors, and
    belongs to no project, session or task by its columns.

    Parameters
    ----------
    base, more : Index
        Neither may change while the view is used. Making it costs one pass over the ids; a column costs a copy when it is first read.
    """

    def __init__(self, base: Index, more: Index) -> None:
        self.__dict__.update(base.__dict__)
        self._base, self._more = base, more
        self._joined: dict[str, NDArray[Any]] = {}
        self.ids = _JoinedNames(base.ids, more.ids)
        self.vocabulary = _JoinedNames(base.vocabulary, more.vocabulary)
        self.postings = _JoinedPostings(base, more)
        self.sequences = _JoinedSequences(base, more, self.vocabulary)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column over all slots."""
        if name not in self._joined:
            self._joined[name] = np.concatenate([self._base.column(name), self._more.column(name)])
        return self._joined[name]


class _JoinedNames(Names):
    """Names of both; one that both have keeps the first code."""

    def __init__(self, base: Names, more: Names) -> None:
        self._first, self._second = base, more
        self.names = [*base.names, *more.names]

    def find(self, name: str | None) -> int:
        code = self._first.find(name)
        if code < 0 and (other := self._second.find(name)) >= 0:
            code = len(self._first) + other
        return code


class _JoinedPostings(Multimap):
    def __init__(self, base: Index, more: Index) -> None:
        self._first, self._second = base, more

    def get(self, key: int) -> tuple[Ints, NDArray[np.int16]]:
        known, terms = self._first.vocabulary, self._second.vocabulary
        own = key if key < len(known) else -1
        other = terms.find(known.names[key]) if own >= 0 else key - len(known)
        found = [self._first.postings.get(own)] if own >= 0 else []
        if other >= 0:
            slots, counts = self._second.postings.get(other)
            found.append((slots + np.int32(len(self._first)), counts))
        slots, counts = (np.concatenate(part) for part in zip(*found, strict=True))
        return slots, counts


class _JoinedSequences(Sequences):
    def __init__(self, base: Index, more: Index, names: Names) -> None:
        self._first, self._second, self._names = base, more, names

    def get(self, slot: int) -> Ints:
        behind = slot - len(self._first)
        if behind < 0:
            return self._first.sequences.get(slot)
        terms = (self._second.vocabulary.names[code] for code in self._second.sequences.get(behind).tolist())
        return np.array([self._names.find(term) for term in terms], dtype=np.int32)
