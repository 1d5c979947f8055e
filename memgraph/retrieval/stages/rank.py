"""Rank: bounded terms that decide near ties but never outweigh a match."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import OUTCOMES
from memgraph.index.index import Index
from memgraph.retrieval.stages.state import DECIMALS, Counts, Scores, Search, Slots

_MANY_USES = 20


def terms(search: Search) -> Counts:
    """Add the terms for relevance, use and negative outcome, each within [0, its weight]."""
    slots, index, config = search.slots, search.index, search.config
    uses = np.minimum(1.0, np.log1p(index.column("access_count")[slots]) / np.log1p(_MANY_USES))
    negative = index.column("outcome")[slots] == OUTCOMES.index("negative")
    search.add("relevance", slots, config.relevance_weight * np.minimum(1.0, search.relevance(slots)))
    search.add("use", slots, config.use_weight * uses)
    search.add("negative", slots, config.negative_weight * negative)
    return {"ranked": len(slots)}


def best(index: Index, scores: Scores, slots: Slots, count: int) -> list[int]:
    """Return the best of these slots, best first, with ties in id order for deterministic output.

    Linear in the slots: only the best `count`, and ties with the last of them, are sorted.
    """
    if not len(slots) or count < 1:
        return []
    rounded: NDArray[np.float64] = np.round(scores[slots], DECIMALS)
    if len(slots) > count:
        kept = rounded >= np.partition(rounded, -count)[-count]
        slots, rounded = slots[kept], rounded[kept]
    ids = index.ids.names
    ranked = sorted(zip((-rounded).tolist(), (ids[slot] for slot in slots), slots.tolist(), strict=True))
    return [slot for _, _, slot in ranked[:count]]
