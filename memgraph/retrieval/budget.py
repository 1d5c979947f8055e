"""Budget: so many of each type, so many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

_CHARS_A_TOKEN = 4


def count_tokens(text: str) -> int:
    """Seed 0's rule: a token for every four characters, rounded up. It undercounts code and other scripts."""
    return ceil(len(text) / _CHARS_A_TOKEN)


def within_types(ranked: Sequence[int], types: NDArray[np.int8], most: Mapping[int, int]) -> list[int]:
    """Keep the best so many of each type, in their order."""
    left = dict(most)
    kept = []
    for slot in ranked:
        kind = int(types[slot])
        if left.get(kind, 0) > 0:
            left[kind] -= 1
            kept.append(slot)
    return kept


def within_tokens(tokens: Sequence[int], most: int) -> int:
    """Return how many of the best-ranked texts to keep: the lowest scored leave first."""
    count, total = len(tokens), sum(tokens)
    while total > most:
        count -= 1
        total -= tokens[count]
    return count
