"""Index of texts that share most of their terms, found through their rarest terms instead of pairwise comparison."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil

from memgraph.text.words import overlap

Terms = frozenset[str]


class WordIndex:
    """Texts by their rarest terms.

    Two sets with an overlap above `t` have a term in common among the first ``|x| − ⌈t·|x|⌉ + 1`` terms of each, for
    any order of all terms (prefix filter: Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007). With the rarest
    terms first, few texts must be compared, and no match is missed.

    Parameters
    ----------
    terms : sequence of frozenset of str
        Terms of each text; a text is identified by its place.
    least : float
        In (0, 1): texts match if their overlap is greater.
    """

    def __init__(self, terms: Sequence[Terms], *, least: float) -> None:
        self._least = least
        self._terms = list(terms)
        frequency = Counter(term for one in terms for term in one)
        ordered = sorted(frequency, key=lambda term: (frequency[term], term))
        self._rank = {term: rank for rank, term in enumerate(ordered)}
        self._holders: defaultdict[str, list[int]] = defaultdict(list)
        for place in range(len(self._terms)):
            self._enter(place)

    def replace(self, place: int, by: int) -> None:
        """Replace the terms of a text with those of another one."""
        for term in self._rarest(self._terms[place]):
            self._holders[term].remove(place)
        self._terms[place] = self._terms[by]
        self._enter(place)

    def like(self, place: int) -> list[tuple[int, float]]:
        """Return (place, overlap) of the texts that match one."""
        own = self._terms[place]
        others = {other for term in self._rarest(own) for other in self._holders[term]} - {place}
        low, high = self._least * len(own), len(own) / self._least
        found = []
        for other in sorted(others):
            theirs = self._terms[other]
            if low < len(theirs) < high and (share := overlap(own, theirs)) > self._least:
                found.append((other, share))
        return found

    def _enter(self, place: int) -> None:
        for term in self._rarest(self._terms[place]):
            self._holders[term].append(place)

    def _rarest(self, terms: Terms) -> list[str]:
        number = len(terms) - ceil(self._least * len(terms)) + 1 if terms else 0
        return sorted(terms, key=self._rank.__getitem__)[:number]
