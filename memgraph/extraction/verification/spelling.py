"""Misspellings: whether a word is another one with one slip of the fingers. Pure."""

from __future__ import annotations

_LEAST_LETTERS = 6


def is_misspelt(word: str, right: str) -> bool:
    """Return whether an ordinary word is another one of at least six letters with one letter more, one less, or two swapped.

    The first letter must agree, and the last one unless two are swapped: “asynchronous”, “unloaded” and “imports” are other words than
    “synchronous”, “loaded” and “import”. So is one with another letter in its place: “parsed” and “passed”.
    """
    if not all(len(one) >= _LEAST_LETTERS and one.isalpha() and one.islower() for one in (word, right)):
        return False
    if word == right or word[0] != right[0] or abs(len(word) - len(right)) > 1:
        return False
    if len(word) == len(right):
        places = [at for at, (one, other) in enumerate(zip(word, right, strict=True)) if one != other]
        return len(places) == 2 and places[1] == places[0] + 1 and word[places[0]] + word[places[1]] == right[places[1]] + right[places[0]]  # fmt: skip
    longer, shorter = sorted((word, right), key=len, reverse=True)
    return longer[-1] == shorter[-1] and any(
        longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(longer) - 1)
    )
