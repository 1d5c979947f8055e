"""Which texts the packaged model covers: it was trained on English, and puts all text in another language near each other."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from memgraph.embedding.onnx import VOCABULARY

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DIGIT, _FEW_WORDS = re.compile(r"\d"), 3
_LETTERS = re.compile(r"[^\W\d_]+")
_LONG = 4
_SHORT = frozenset(
    "and are but can did does for from had has have how its not our she the they this why with you your".split()
)
"""Shorter words belong to many languages ("die", "was"). Of them only those count that are English alone."""
_LEAST = 0.4
"""Share of words that the vocabulary has whole. Of 1,214 English questions and tasks one has less, of 25 texts in other languages all but
two (`tests/benchmarks/README.md`)."""
_MAX_CHARS = 2_000


def is_covered(text: str) -> bool:
    """Tell whether the packaged model has words for a text, so that its cosines say something.

    Ids with hardly a word beside them are not covered; an empty text is covered.
    """
    pieces = text[:_MAX_CHARS].split()
    words = [one for one in pieces if not _DIGIT.search(one)]
    if len(words) < len(pieces) and len(words) <= min(_FEW_WORDS, len(pieces) - len(words)):
        return False
    folded = unicodedata.normalize("NFD", _HUMP.sub(" ", " ".join(words)).lower())
    words = _LETTERS.findall("".join(char for char in folded if not unicodedata.combining(char)))
    counted = [word for word in words if len(word) >= _LONG or word in _SHORT] or words
    known = _vocabulary()
    return sum(word in known for word in counted) >= _LEAST * len(counted)


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(VOCABULARY.read_text("utf-8").split("\n"))
