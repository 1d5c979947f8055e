"""Labels beside each other that must not touch."""

from __future__ import annotations

from collections.abc import Sequence


def apart(heights: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Return ascending heights moved as little as need be for labels of these sizes to stand between 0 and 1, if they can."""
    at: list[float] = []
    for height, size in zip(heights, sizes, strict=True):
        lowest = at[-1] + (sizes[len(at) - 1] + size) / 2 if at else 0.0
        at.append(max(height, lowest))
    limit = 1.0
    for place in range(len(at) - 1, -1, -1):
        at[place] = min(at[place], limit)
        limit = at[place] - (sizes[place] + sizes[max(place - 1, 0)]) / 2
    return at
