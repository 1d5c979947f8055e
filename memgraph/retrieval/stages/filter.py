"""Filter: who may be scored at all. What is filtered out is never looked at again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memgraph.retrieval.scope import admitted
from memgraph.retrieval.stages.state import Search


def admit(search: Search) -> Mapping[str, int]:
    """Settle who may be scored."""
    search.mask = admitted(search.index, search.scope, search.now_days)
    if search.withheld is not None:
        search.mask &= ~search.withheld
    return {"admitted": int(np.count_nonzero(search.mask))}
