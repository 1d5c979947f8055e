"""Comparing texts by their words: the words that two have in common, runs of words that one repeats, and denials written out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

RUN_WORDS = 8
"""Number of words in a row by which a text is recognised."""
FEWEST_WORDS = 4
"""A shorter text is recognised only where a field holds it alone: two or three words are found everywhere."""
_EDGES = "\"'`“”‘’„«»‹›()[]{}<>.,;:!?…*_#|"

_BOT = re.compile(
    r"\[bot\]|(?<!\ble )\bbot\s*$|^(?:dependabot|renovate|greenkeeper|snyk|github-actions|pre-commit-ci|semantic-release)\b",
    re.IGNORECASE,
)


def is_bot(author: str) -> bool:
    """Return whether an author is a bot, such as one that updates dependencies or formats files, and no person."""
    return _BOT.search(author[:200]) is not None


def words_of(text: str) -> list[str]:
    """Return the words of a text without case and without the punctuation around them."""
    return [word.strip(_EDGES) or word for word in text.casefold().split()]


_EMPTY_WORDS = frozenset(
    str.split(
        "a an the of to in on at by for with and or as is are be it its this that from into some any all more most other "
        "fix fixes fixed fixing bug bugs bugfix issue issues problem problems error errors update updates updated updating change "
        "changes changed add adds added adding remove removes removed make made do does not small minor major multiple several "
        "various few many lots bunch stuff things thing misc code file files work works working again now new old better "
        "improve improved improvement improvements improving refactor refactored cleanup clean up tweak tweaks tweaked "
        "adjust test tests wip first last final hopefully really actually proper properly correctly correct use using "
        "address addressing addressed resolve resolved handle py js ts still also support missing wrong broken after before "
        "left right back get set setting pr prs related show info display script scripts command commands check checking time "
        "functionality"
    )
)
_CONTENT_WORD = re.compile(r"[^\W_][\w.-]*")


def content_words(text: str) -> list[str]:
    """Return the content words of a text, folded and in order."""
    words = (word.casefold().strip(".-") for word in _CONTENT_WORD.findall(text[:2_000]))
    return [word for word in words if len(word) > 1 and word not in _EMPTY_WORDS and not word.isdigit()]


class Runs:
    """The runs of words of some texts: of eight words, or of all words of a shorter text."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._whole: set[str] = set()
        self._runs: dict[int, set[str]] = defaultdict(set)
        self._first: dict[int, set[str]] = defaultdict(set)
        for words in map(words_of, texts):
            length = min(RUN_WORDS, len(words))
            if 0 < length < FEWEST_WORDS:
                self._whole.add(" ".join(words))
            for start in range(len(words) - length + 1) if length >= FEWEST_WORDS else ():
                self._first[length].add(words[start])
                self._runs[length].add(" ".join(words[start : start + length]))

    def are_in(self, text: str) -> bool:
        """Return whether a text contains one of the runs. Takes time in proportion to its length."""
        words = words_of(text)
        if len(words) < FEWEST_WORDS and " ".join(words) in self._whole:
            return True
        return any(
            words[start] in self._first[length] and " ".join(words[start : start + length]) in runs
            for length, runs in self._runs.items()
            for start in range(len(words) - length + 1)
        )


def overlap(one: AbstractSet[object], other: AbstractSet[object], *, of_smaller: bool = False) -> float:
    """Return the share of common terms of two texts: of all terms (Jaccard), or of the smaller set; 0 without terms."""
    common = len(one & other)
    whole = min(len(one), len(other)) if of_smaller else len(one) + len(other) - common
    return common / (whole or 1)


_CONTRACTED = re.compile(
    r"\b(?:(?P<irregular>ca|wo|sha)n['’]?t|(?P<verb>[a-z]{2,8})n['’]t|cannot"
    r"|(?P<bare>do|does|did|is|are|was|were|has|have|had|would|could|should)nt)\b",
    re.IGNORECASE,
)
_IRREGULAR = {"ca": "can", "wo": "will", "sha": "shall"}


def expanded(text: str) -> str:
    """Return a text with its contracted denials written out: “can't”, “cannot” → “can not”, “isn't”, “isnt” → “is not”."""
    return _CONTRACTED.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    irregular = found["irregular"]
    verb = found["verb"] or found["bare"] or _IRREGULAR.get((irregular or "ca").lower(), "can")
    return f"{verb} not"
