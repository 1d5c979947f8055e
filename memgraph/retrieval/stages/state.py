"""One recall on its way through the stages: what was asked, and what is known so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.index.index import Index
from memgraph.model.memory import Vector
from memgraph.model.results.retrieval import RetrievalConfig
from memgraph.retrieval.scope import Mask, Scope

Scores = NDArray[np.float64]
Slots = NDArray[Any]
DECIMALS = 6
"""Scores are compared when rounded: what differs in the last place is equal."""
Counts = Mapping[str, int]
"""What a stage did: how many it admitted, matched, reached."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the query: how rare it is among the admitted, which of them hold it, and what each gains by it."""

    idf: float
    slots: Slots
    weights: Scores


class Gain(NamedTuple):
    """What a slot gains from another one, over what kind of edge."""

    slot: int
    value: float
    origin: int
    relation: str


class Beside(NamedTuple):
    """What stands one step further away from some slots, in a session.

    Attributes
    ----------
    shares : ndarray, shape (slots,), float64
        What the score of a neighbour counts at the slot.
    slots : ndarray, shape (slots,), int
        The neighbours; −1 where there is none, or none that is admitted, and then the way ends.
    """

    shares: Scores
    slots: Slots


@dataclass(frozen=True, slots=True)
class Added:
    """What one stage added to the scores of some slots, each once, and from where it came to each over what edge, if it was handed on."""

    part: str
    slots: Slots
    values: Scores
    origins: Slots | None = None
    relations: Sequence[str] = ()


@dataclass(slots=True)
class Search:
    """What the stages read and write. All arrays have one element a slot, unless said otherwise.

    Attributes
    ----------
    has_vector, cosines, relevance : callable
        Of these slots: whether there is a vector to compare (by default of all), cosine with a vector, and relevance now.
    wanted : int
        How many results of each type may be asked for.
    withheld : ndarray, bool, or None
        What tells of something that must not be told; None: nothing does.
    mask : ndarray, bool
        Who may be scored.
    meaning : ndarray, float64
        Cosine with the query, corrected for length; 0 without a vector.
    terms : list of Term
        Those of the query, each once.
    coverage : ndarray, float64
        Share of the query's words, weighted by their rarity, that a candidate and what stands around it hold.
    slots : ndarray, shape (candidates,), int
        Who is still looked at: the seeds, and what was reached from them; ascending.
    seeds : ndarray, shape (seeds,), int
        The candidates that the seeds gave.
    beside : list of Beside
        What stands around them.
    scores : ndarray, float64
        So far. Of slots that are no candidates it is what the seeds gave them.
    dense_weight : float
        Share of the vectors in the score: 0 if there was nothing to compare.
    dense_range : (float, float)
        The lowest cosine, and how far they spread.
    told : ndarray, float64
        What a cosine counts, by the length of the text.
    dense, text_score : ndarray, float64
        What the vectors and the words give to the score.
    added : list of Added
        What else it is made of.
    """

    index: Index
    text: str
    vector: Vector | None
    scope: Scope
    config: RetrievalConfig
    now_days: float
    has_vector: Callable[..., Mask]
    cosines: Callable[[Vector, Slots | slice], Scores]
    relevance: Callable[[Slots], Scores]
    wanted: int = 0
    withheld: Mask | None = None
    mask: Mask = field(init=False)
    meaning: Scores = field(init=False)
    terms: list[Term] = field(default_factory=list)
    coverage: Scores = field(init=False)
    slots: Slots = field(init=False)
    seeds: Slots = field(init=False)
    beside: list[Beside] = field(default_factory=list)
    scores: Scores = field(init=False)
    dense_weight: float = 0.0
    dense_range: tuple[float, float] = (0.0, 1.0)
    told: Scores = field(init=False)
    dense: Scores = field(init=False)
    text_score: Scores = field(init=False)
    added: list[Added] = field(default_factory=list)
    query_terms: list[str] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.index)
        self.meaning, self.dense, self.text_score = np.zeros(count), np.zeros(count), np.zeros(count)
        self.coverage, self.scores, self.told = np.zeros(count), np.zeros(count), np.zeros(count)
        self.slots = self.seeds = np.empty(0, dtype=np.int64)
        self.query_terms = analyse(self.text)

    def add(
        self, part: str, slots: Slots, values: Scores, origins: Slots | None = None, relations: Sequence[str] = ()
    ) -> None:
        """Add to the scores of these slots, each once; what it is called is kept for the explanation."""
        if len(slots):
            self.scores[slots] += values
            self.added.append(Added(part, slots, values, origins, relations))

    def hand(self, part: str, gains: Iterable[Gain]) -> int:
        """Add what slots gain from others; of several gains a slot has the largest.

        What was not looked at before is from now on. Returns how many slots gained.
        """
        best: dict[int, Gain] = {}
        for gain in gains:
            known = best.get(gain.slot)
            if gain.value > 0 and (known is None or (gain.value, -gain.origin) > (known.value, -known.origin)):
                best[gain.slot] = gain
        if best:
            slots = np.fromiter(best, dtype=np.int64, count=len(best))
            values, origins = (np.array([gain[place] for gain in best.values()]) for place in (1, 2))
            self.add(part, slots, values, origins, [gain.relation for gain in best.values()])
            self.look_at(slots)
        return len(best)

    def look_at(self, slots: Slots) -> None:
        """Make these candidates too."""
        if len(slots):
            looked_at = np.zeros(len(self.index), dtype=np.bool_)
            looked_at[self.slots] = looked_at[slots] = True
            self.slots = np.flatnonzero(looked_at)
