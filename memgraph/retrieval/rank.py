"""Rank: bounded terms that decide near ties and never bury a match."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.config import RetrievalConfig
from memgraph.index.index import OUTCOMES, Index

Scores = NDArray[np.float64]
_MANY_USES = 20
_DECIMALS = 6


def terms(index: Index, relevance: Scores, config: RetrievalConfig) -> dict[str, Scores]:
    """Return the terms for relevance, use and a negative outcome, each within [0, its weight]."""
    uses = np.minimum(1.0, np.log1p(index.column("access_count")) / np.log1p(_MANY_USES))
    negative = index.column("outcome") == OUTCOMES.index("negative")
    return {
        "relevance": config.relevance_weight * np.minimum(1.0, relevance),
        "use": config.use_weight * uses,
        "negative": config.negative_weight * negative,
    }


def best(index: Index, scores: Scores, mask: NDArray[np.bool_], count: int) -> list[int]:
    """Return the best masked slots, best first; equal scores in id order, so equal input gives equal output.

    Linear in the slots: only the best `count`, and what ties with the last of them, are sorted.
    """
    slots = np.flatnonzero(mask)
    if not len(slots) or count < 1:
        return []
    rounded = np.round(scores[slots], _DECIMALS)
    if len(slots) > count:
        kept = rounded >= np.partition(rounded, -count)[-count]
        slots, rounded = slots[kept], rounded[kept]
    ids = index.ids.names
    ranked = sorted(zip((-rounded).tolist(), (ids[slot] for slot in slots), slots.tolist(), strict=True))
    return [slot for _, _, slot in ranked[:count]]
