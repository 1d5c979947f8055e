"""Places labels without overlaps."""

from __future__ import annotations

from collections.abc import Sequence


def apart(heights: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Move ascending heights as little as necessary so that labels of these sizes fit between 0 and 1, if possible."""
    at: list[float] = []
    for height, size in zip(heights, sizes, strict=True):
        lowest = at[-1] + (sizes[len(at) - 1] + size) / 2 if at else 0.0
        at.append(max(height, lowest))
    limit = 1.0
    for place in range(len(at) - 1, -1, -1):
        at[place] = min(at[place], limit)
        limit = at[place] - (sizes[place] + sizes[max(place - 1, 0)]) / 2
    return at
