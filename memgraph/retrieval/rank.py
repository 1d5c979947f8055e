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


def order(index: Index, scores: Scores, mask: NDArray[np.bool_]) -> list[int]:
    """Return the masked slots, best first; equal scores in id order, so equal input gives equal output."""
    rounded = np.round(scores, _DECIMALS)
    slots = np.flatnonzero(mask)
    return sorted(slots.tolist(), key=lambda slot: (-rounded[slot], index.ids.names[slot]))
