"""Walk: one additive hop from what was found to what belongs to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.config import RetrievalConfig
from memgraph.index.index import Index
from memgraph.index.succession import newest_of
from memgraph.retrieval.rank import best

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ABOUT = 2


def neighbours(index: Index, scores: Scores, mask: Mask, config: RetrievalConfig) -> Scores:
    """Return what each memory gains from the best of its NEXT neighbours, both ways, within its session."""
    gain = np.zeros(len(index))
    session = index.column("session")
    for column in ("previous", "following"):
        step = np.arange(len(index))
        for distance in range(config.neighbour_span):
            step = np.where(step >= 0, index.column(column)[step], -1)
            reached = (step >= 0) & (session >= 0)
            reached &= (session[step] == session) & mask[step]
            step = np.where(reached, step, -1)
            value = np.where(reached, scores[step], 0.0) * config.neighbour_decay**distance
            gain = np.maximum(gain, value)
    return np.where(mask, config.neighbour_weight * gain, 0.0)


def mentions(index: Index, scores: Scores, mask: Mask, config: RetrievalConfig) -> Scores:
    """Return what memories gain by being *about* an entity that one of the best seeds mentions."""
    gain = np.zeros(len(index))
    for seed in best(index, scores, mask & (scores > 0), config.mention_seeds):
        named = index.named.get(seed)[0].tolist()
        for entity in dict.fromkeys(other for one in named for other in index.aliases.same(one)):
            slots, weights = index.mentions.get(entity)
            about = slots[(weights == _ABOUT) & mask[slots] & (slots != seed)]
            gain[about] = np.maximum(gain[about], scores[seed])
    return config.mention_weight * gain


def hand_on(index: Index, scores: Scores, mask: Mask) -> tuple[Scores, Mask]:
    """Give the score of each superseded memory to the newest admitted one that replaces it, and drop the former.

    Without an admitted one the older memory stays: what replaced it may not be seen here.
    """
    newest = newest_of(index, mask)
    if not newest:
        return scores, mask
    scores, kept = scores.copy(), mask.copy()
    for old, new in newest.items():
        if new != old and mask[old]:
            kept[old] = False
            scores[new] = max(scores[new], scores[old])
    return scores, kept
