"""Filter: which memories may be scored. The others are not considered in later stages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memgraph.retrieval.stages.state import Search
from memgraph.store.access.scope import admitted


def admit(search: Search) -> Mapping[str, int]:
    """Set the mask of slots that may be scored."""
    search.mask = admitted(search.index, search.scope, search.now_days)
    if search.withheld is not None:
        search.mask &= ~search.withheld
    if search.permitted is not None:
        search.mask &= search.permitted
    return {"admitted": int(np.count_nonzero(search.mask))}
