"""Budget: so many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

_CHARS_A_TOKEN = 4


def count_tokens(text: str) -> int:
    """Seed 0's rule: a token for every four characters, rounded up. It undercounts code and other scripts."""
    return ceil(len(text) / _CHARS_A_TOKEN)


def within_tokens(tokens: Sequence[int], most: int) -> int:
    """Return how many of the best-ranked texts to keep: the lowest scored leave first."""
    count, total = len(tokens), sum(tokens)
    while total > most:
        count -= 1
        total -= tokens[count]
    return count
