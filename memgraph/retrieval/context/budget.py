"""Token budget."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

_CHARS_A_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate tokens by seed 0's rule: one per four characters, rounded up. It undercounts code and other scripts."""
    return ceil(len(text) / _CHARS_A_TOKEN)


def within_tokens(tokens: Sequence[int], most: int) -> int:
    """Return how many of the best-ranked texts fit the budget: the lowest scored are dropped first."""
    count, total = len(tokens), sum(tokens)
    while total > most:
        count -= 1
        total -= tokens[count]
    return count


def shortest_within_tokens(tokens: Sequence[int], most: int) -> list[int]:
    """Return the places of the texts that fit the budget, ascending: as many as can, so the longest are dropped first, of equal ones the last."""
    kept, total = list[int](), 0
    for place in sorted(range(len(tokens)), key=lambda place: (tokens[place], place)):
        total += tokens[place]
        if total > most:
            break
        kept.append(place)
    return sorted(kept)
