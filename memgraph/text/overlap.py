"""How much two texts have in common."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


def overlap(one: AbstractSet[object], other: AbstractSet[object], *, of_smaller: bool = False) -> float:
    """Return the share of the terms of two texts that is common to both: of all (Jaccard), or of the smaller set; 0 for no terms."""
    common = len(one & other)
    whole = min(len(one), len(other)) if of_smaller else len(one) + len(other) - common
    return common / (whole or 1)
