"""Filter: which memories may be scored. The others are not considered in later stages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memgraph.index.supersession import newest_of
from memgraph.retrieval.stages.state import Search


def admit(search: Search) -> Mapping[str, int]:
    """Set the mask of slots that may be scored: those in force, and those that ended since one of these replaces them.

    People ask with the words of what they know, which may be outdated: it hands its score on (`walk.succession`).
    """
    search.mask = search.visible()
    ended = np.flatnonzero(search.mask & (search.index.column("invalid_days") <= search.now_days))
    search.mask[ended] = False
    replaced = newest_of(search.index, search.mask, ended).keys() & set(ended.tolist())
    search.mask[list(replaced)] = True
    return {"admitted": int(np.count_nonzero(search.mask))}
