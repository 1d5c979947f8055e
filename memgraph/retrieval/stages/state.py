"""State of one recall in the stages: the query, and the results so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.index.index import Index, scope_name
from memgraph.model.memory import Vector
from memgraph.model.results.retrieval import RetrievalConfig
from memgraph.store.access.scope import Scope
from memgraph.store.query import Mask

Scores = NDArray[np.float64]
Slots = NDArray[Any]
DECIMALS = 6
"""Scores are rounded to this many digits before comparison, so that the last digits do not matter."""
_WORD = re.compile(r"[\w.]*\w")
Counts = Mapping[str, int]
"""Counts of a stage: admitted, matched, reached."""


@dataclass(frozen=True, slots=True)
class Term:
    """A query term: its rarity among the admitted memories, the slots that contain it, and what each gains by it."""

    name: str
    idf: float
    slots: Slots
    weights: Scores


class Gain(NamedTuple):
    """A slot's gain from another one, by the kind of edge."""

    slot: int
    value: float
    origin: int
    relation: str

    @property
    def rank(self) -> tuple[float, int, str]:
        """Where it stands among the gains of its slot: the largest first."""
        return -self.value, self.origin, self.relation


class Beside(NamedTuple):
    """The neighbours of some slots one step further away in a session.

    Attributes
    ----------
    shares : ndarray, shape (slots,), float64
        The share of a neighbour's score that counts for the slot.
    slots : ndarray, shape (slots,), int
        The neighbours; −1 where there is none, or none admitted, which ends the sequence.
    """

    shares: Scores
    slots: Slots


@dataclass(frozen=True, slots=True)
class Added:
    """One stage's additions to the scores of some slots, each once, with origin and edge of gains that were handed on."""

    part: str
    slots: Slots
    values: Scores
    origins: Slots | None = None
    relations: Sequence[str] = ()


@dataclass(slots=True)
class Search:
    """The data that the stages read and write. Arrays have one element per slot unless stated otherwise.

    Attributes
    ----------
    visible : callable
        Returns the slots that whoever asks may have, of those that are asked about.
    has_vector, cosines, relevance : callable
        For given slots: whether there is a comparable vector (by default of all), cosine with a vector (with `only_near`, of many slots
        exact for the most and least similar alone), current relevance.
    phrases : sequence of str
        Texts in the words of past work: if there are any, memories must share their words, and not those of the task.
    wanted : int
        Number of results that may be requested of each type.
    is_covered : bool
        Whether the embedding model covers the query, so that its cosines are evidence.
    is_question : bool
        Whether it asks for facts, rather than being a task.
    mask : ndarray, bool
        Slots that may be scored.
    meaning : ndarray, float64
        Cosine with the query, corrected for length; 0 without a vector.
    terms : list of Term
        The distinct terms of the query.
    coverage : ndarray, float64
        Share of the query's words, weighted by rarity, that a candidate and its neighbours contain.
    slots : ndarray, shape (candidates,), int
        The candidates: the seeds, and the slots reached from them; ascending.
    seeds : ndarray, shape (seeds,), int
        The candidates found by the seed stage.
    beside : list of Beside
        Their neighbours.
    scores : ndarray, float64
        Scores so far. For slots that are not candidates, those of the seed stage.
    dense_weight : float
        Weight of the vectors in the score: 0 if there was nothing to compare.
    dense_range : (float, float)
        Minimum and range of the cosines.
    length_factor : ndarray, float64
        Factor of each cosine, by the length of the text.
    dense, text_score : ndarray, float64
        Contributions of vectors and words to the score.
    added : list of Added
        Further contributions.
    replaced : dict of int to int
        For candidates that were dropped because another one replaces them: the newest one.
    floor : float or None
        Evidence that a recalled memory needs; None: none.
    evidence : ndarray, float64
        Evidence of the candidates, in [0, 1]; 0 without a floor.
    is_near : ndarray, bool
        Memories that have enough of it.
    matching : ndarray, int
        Of them the saved facts that match the query by themselves.
    constraints : ndarray, int
        Memories that hold for the query whatever it says: they come first, and take no other's place.
    items_from : int
        The first slot of the items that hold in tasks (`memgraph.retrieval.task_items`); −1: there are none.
    knows : bool
        Whether any memory is evidence that the store knows of the matter.
    """

    index: Index
    text: str
    vector: Vector | None
    scope: Scope
    config: RetrievalConfig
    now_days: float
    visible: Callable[[], Mask]
    has_vector: Callable[..., Mask]
    cosines: Callable[..., Scores]
    relevance: Callable[[Slots], Scores]
    phrases: Sequence[str] = ()
    wanted: int = 0
    floor: float | None = None
    is_covered: bool = True
    is_question: bool = False
    items_from: int = -1
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
    length_factor: Scores = field(init=False)
    dense: Scores = field(init=False)
    text_score: Scores = field(init=False)
    added: list[Added] = field(default_factory=list)
    replaced: dict[int, int] = field(default_factory=dict)
    evidence: Scores = field(init=False)
    is_near: Mask = field(init=False)
    matching: Slots = field(init=False)
    constraints: Slots = field(init=False)
    knows: bool = False
    query_terms: list[str] = field(init=False)
    searched_terms: list[str] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.index)
        self.meaning, self.dense, self.text_score = np.zeros(count), np.zeros(count), np.zeros(count)
        self.coverage, self.scores, self.length_factor = np.zeros(count), np.zeros(count), np.zeros(count)
        self.evidence = np.zeros(count)
        self.slots = self.seeds = np.empty(0, dtype=np.int64)
        self.is_near = np.ones(count, dtype=np.bool_)
        self.matching = self.constraints = np.empty(0, dtype=np.int64)
        self.query_terms = analyse(self.text)
        self.searched_terms = analyse("\n".join(self.phrases)) or self.query_terms

    def add(
        self, part: str, slots: Slots, values: Scores, origins: Slots | None = None, relations: Sequence[str] = ()
    ) -> None:
        """Add to the scores of these slots, each once; the name is kept for the explanation."""
        if len(slots):
            self.scores[slots] += values
            self.added.append(Added(part, slots, values, origins, relations))

    def hand(self, part: str, gains: Iterable[Gain]) -> int:
        """Add slots' gains from others; a slot gets the largest of its gains, of equal ones the first by origin, then by relation.

        Slots that were no candidates become candidates. Returns how many slots gained.
        """
        best: dict[int, Gain] = {}
        for gain in gains:
            known = best.get(gain.slot)
            if gain.value > 0 and (known is None or gain.rank < known.rank):
                best[gain.slot] = gain
        if best:
            slots = np.fromiter(best, dtype=np.int64, count=len(best))
            values, origins = (np.array([gain[place] for gain in best.values()]) for place in (1, 2))
            self.add(part, slots, values, origins, [gain.relation for gain in best.values()])
            self.look_at(slots)
        return len(best)

    def words_in(self, slots: Slots) -> list[list[str]]:
        """Return the words of the query that each of these slots contains, those first that few memories have; of a word in parts, such as ``cart.py``, the part, if it lacks another."""
        names = [one.name for one in sorted(self.terms, key=lambda one: -one.idf)]
        words = [(word, analyse(word)) for word in _WORD.findall(self.text)]
        vocabulary, found = self.index.vocabulary.names, list[list[str]]()
        for slot in slots.tolist():
            held = {vocabulary[code] for code in self.index.sequences.get(slot).tolist()}.intersection(names)
            said = (
                # of Chinese a part of a run
                next((word for word, parts in words if name in parts and held.issuperset(parts)), name)
                if name.isascii()
                else name
                for name in names
                if name in held
            )
            found.append(list(dict.fromkeys(said)))
        return found

    def is_item(self, slots: Slots) -> Mask:
        """Return which of these slots are items that hold in tasks, not memories."""
        found: Mask = slots >= self.items_from if self.items_from >= 0 else np.zeros(len(slots), dtype=np.bool_)
        return found

    def is_own(self, slots: Slots) -> Mask:
        """Return which of these slots belong to the task that is asked about."""
        code = self.index.scopes.find(scope_name("task", self.scope.task_id)) if self.scope.task_id is not None else -1
        of_task = self.index.column("task")[slots] == code if code >= 0 else np.zeros(len(slots), dtype=np.bool_)
        own: Mask = of_task if self.scope.task_id is None else of_task | self.is_item(slots)
        return own

    def look_at(self, slots: Slots) -> None:
        """Add candidates."""
        if len(slots):
            looked_at = np.zeros(len(self.index), dtype=np.bool_)
            looked_at[self.slots] = looked_at[slots] = True
            self.slots = np.flatnonzero(looked_at)
