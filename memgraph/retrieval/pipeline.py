"""The order of the stages: filter, seed, walk, hand on, rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memgraph.config import RetrievalConfig
from memgraph.index.index import Index
from memgraph.model.memory import Vector
from memgraph.model.results import Explanation
from memgraph.model.timestamps import epoch_days
from memgraph.retrieval import rank, seed, walk
from memgraph.retrieval.filter import Mask, Scope, admitted
from memgraph.store import AgentMemoryStore

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Which slots are ranked, their scores, and each term of these. Valid while the reader is frozen."""

    index: Index
    mask: Mask
    scores: Scores
    parts: dict[str, Scores]

    def id_of(self, slot: int) -> str:
        """Return a slot's memory id."""
        return self.index.ids.names[slot]

    def best(self, count: int) -> list[int]:
        """Return the best slots, best first."""
        return rank.best(self.index, self.scores, self.mask, count)

    def best_of_types(self, most: Mapping[int, int]) -> list[int]:
        """Return the best slots with at most so many of each type, best first."""
        types = self.index.column("type")
        kept = np.zeros(len(self.mask), dtype=np.bool_)
        for code, count in most.items():
            kept[rank.best(self.index, self.scores, self.mask & (types == code), count)] = True
        return rank.best(self.index, self.scores, kept, int(kept.sum()))

    def explanation(self, slot: int) -> Explanation:
        """Return why a slot is where it is."""
        parts = {name: round(float(values[slot]), 6) for name, values in self.parts.items()}
        return Explanation(memory_id=self.id_of(slot), score=round(float(self.scores[slot]), 6), **parts)


def ranked(store: AgentMemoryStore, text: str, vector: Vector | None, scope: Scope, config: RetrievalConfig) -> Ranking:
    """Rank all admitted memories for a query. Deterministic; costs one pass over the vectors and the terms' postings.

    Call it, and use its ranking, within one ``with store.reader.frozen():``.

    Parameters
    ----------
    vector : ndarray, shape (d,), float32, or None
        Of the query; None: text alone decides.
    """
    index = store.reader.index
    mask = admitted(index, scope, epoch_days(store.now()))
    slots = np.flatnonzero(mask & (index.column("vector_row") >= 0))  # what awaits its vector is found by its text
    dense = np.zeros(len(index))
    share = config.dense_weight if vector is not None and len(slots) else 0.0
    if vector is not None:
        dense[slots] = seed.dense(store.reader.cosines(vector, slots), index.column("words")[slots], config)
    lexical = seed.text(index, text, mask, config)
    parts = {"dense": share * dense, "text": (1.0 - share) * lexical}
    fused = parts["dense"] + parts["text"]

    parts["neighbour"] = walk.neighbours(index, fused, mask, config)
    near = fused + parts["neighbour"]
    parts["mention"] = walk.mentions(index, near, mask, config)
    scores, kept = walk.hand_on(index, near + parts["mention"], mask)

    for name, term in rank.terms(index, store.reader.relevance(), config).items():
        parts[name] = term
        scores = scores + term
    return Ranking(index, kept, scores, parts)
