"""Overlap of two texts."""

from __future__ import annotations

from collections.abc import Set as AbstractSet


def overlap(one: AbstractSet[object], other: AbstractSet[object], *, of_smaller: bool = False) -> float:
    """Return the share of common terms of two texts: of all terms (Jaccard), or of the smaller set; 0 without terms."""
    common = len(one & other)
    whole = min(len(one), len(other)) if of_smaller else len(one) + len(other) - common
    return common / (whole or 1)
