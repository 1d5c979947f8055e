"""Sentence boundaries, and final punctuation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Rule = Literal["prose", "quoted", "claim", "end", "part"]
_GOES_ON = r"(?<![EeIi]\.[EeGg]\.)"
"""After "e.g." and "i.e." a sentence goes on."""
_ENDS: dict[Rule, re.Pattern[str]] = {
    # prose of builds: before the beginning of a sentence, and before list items
    "prose": re.compile(
        rf"(?<=[.!?]){_GOES_ON}\s+(?=[A-Z0-9`\"“*-])|\n{{1,3}}\s{{0,8}}(?=[-*•]\s|\d{{1,2}}[.)]\s)|\n{{2,}}"
    ),
    # single lines that are quoted elsewhere: also after an ellipsis and closing marks, which are dropped with the white space
    "quoted": re.compile(rf"(?<=[.!?…]){_GOES_ON}[”\"')]*\s+(?=[A-Z0-9`\"“*_-])"),
    # texts compared word by word: a line end or semicolon ends a sentence; one may begin with a lower-case letter
    "claim": re.compile(rf"(?<=[.!?]){_GOES_ON}\s+(?=[\"“'`(\w])|\n+|;\s+"),
    # texts that may contain dates: "Mar. 31" and "5 p.m. today" continue
    "end": re.compile(r"(?<=[!?;])\s+|(?<=\w{3}\.)\s+(?=[A-Z])|(?<=\d\.)\s+(?=[A-Z])|\n+"),
    # long texts to be split: any end will do, in Chinese and Japanese too, but for the number of an item
    "part": re.compile(rf"(?<=[.!?。！？]){_GOES_ON}(?<!\s\d\.)(?<!\s\d\d\.)\s+|\n+"),
}
"""Sentence boundaries by purpose: one rule for all would change what is remembered."""

_ASKING = re.compile(
    r"[^\w]*(?:who|whose|whom|what|when(?=\s+(?:is|are|was|were|do|does|did|has|have|had|will))|where|why|which|how|is|are|was|were|do|does|did|has|have|had)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"[^\w]*(?:can|could|would|will|should|shall|may)\s+(?:you|we|i)\b", re.IGNORECASE)
_QUESTION_MARKS = ("?", "？", "؟")


def split_sentences(text: str, rule: Rule) -> list[str]:
    """Split a text at the ends of its sentences; parts may be empty. Linear in the text."""
    return _ENDS[rule].split(text)


def ended(text: str, *, ends: str = ".!?…:", closing: str = "”`") -> str:
    """Return a text with a full stop, unless it ends in certain marks, or in one of them followed by closing marks."""
    return text if text.rstrip(closing).endswith(tuple(ends)) else f"{text}."


def enumerated(names: Sequence[str]) -> str:
    """Return names as a list in words."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def is_question(text: str) -> bool:
    """Tell whether a text is a question for facts: by its first word, its question mark, and that it is one sentence; two of them suffice.

    A polite request is not a question. The first words are recognised in English only; in other languages the question mark decides.
    """
    text = text.strip()
    signs = (
        _ASKING.match(text) is not None,
        text.endswith(_QUESTION_MARKS),
        len(split_sentences(text, "end")) == 1,
    )
    return any(signs[:2]) and sum(signs) > 1 and _REQUEST.match(text) is None
