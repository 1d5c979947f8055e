"""The order of the stages: filter, seed, walk, hand on, rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memgraph.config import RetrievalConfig
from memgraph.model.memory import Vector
from memgraph.model.results import Explanation
from memgraph.model.timestamps import epoch_days
from memgraph.retrieval import rank, seed, walk
from memgraph.retrieval.filter import Scope, admitted
from memgraph.store import AgentMemoryStore

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Admitted memories, best first, and each term of their scores by slot."""

    slots: list[int]
    scores: Scores
    parts: dict[str, Scores]
    ids: list[str]

    def explanation(self, slot: int) -> Explanation:
        """Return why a slot is where it is."""
        parts = {name: round(float(values[slot]), 6) for name, values in self.parts.items()}
        return Explanation(memory_id=self.ids[slot], score=round(float(self.scores[slot]), 6), **parts)


def ranked(store: AgentMemoryStore, text: str, vector: Vector | None, scope: Scope, config: RetrievalConfig) -> Ranking:
    """Rank all admitted memories for a query. Deterministic; costs one pass over the vectors and the terms' postings.

    Parameters
    ----------
    vector : ndarray, shape (d,), float32, or None
        Of the query; None: text alone decides.
    """
    index = store.reader.index
    mask = admitted(index, scope, epoch_days(store.now()))
    slots = np.flatnonzero(mask)
    dense = np.zeros(len(index))
    share = config.dense_weight if vector is not None else 0.0
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
    return Ranking(rank.order(index, scores, kept), scores, parts, index.ids.names)
