"""Filter: which memories may be scored. The others are not considered in later stages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memgraph.retrieval.stages.state import Search


def admit(search: Search) -> Mapping[str, int]:
    """Set the mask of slots that may be scored."""
    search.mask = search.visible()
    return {"admitted": int(np.count_nonzero(search.mask))}
