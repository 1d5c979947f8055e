"""Sentences: where they end, and ending them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Rule = Literal["prose", "told", "claim", "end", "part"]
_ENDS: dict[Rule, re.Pattern[str]] = {
    # prose of builds: before what begins a sentence, and before items of a list
    "prose": re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"“*-])|\n{1,3}\s{0,8}(?=[-*•]\s|\d{1,2}[.)]\s)|\n{2,}"),
    # one line that is told elsewhere: also after an ellipsis and closing marks, which go with the white space
    "told": re.compile(r"(?<=[.!?…])[”\"')]*\s+(?=[A-Z0-9`\"“*_-])"),
    # what is compared word by word: a line and what a semicolon ends are sentences; one may begin with a small letter
    "claim": re.compile(r"(?<=[.!?])\s+(?=[\"“'`(\w])|\n+|;\s+"),
    # what a date may stand in: "Mar. 31" and "5 p.m. today" go on
    "end": re.compile(r"(?<=[!?;])\s+|(?<=\w{3}\.)\s+(?=[A-Z])|(?<=\d\.)\s+(?=[A-Z])|\n+"),
    # what a long text is cut at: any end will do, in Chinese and Japanese too
    "part": re.compile(r"(?<=[.!?。！？])\s+|\n+"),
}
"""Where a sentence ends, by what the sentences are for: one rule for all would change what is remembered."""


def split_sentences(text: str, rule: Rule) -> list[str]:
    """Split a text at the ends of its sentences; parts may be empty. Linear in the text."""
    return _ENDS[rule].split(text)


def ended(text: str, *, ends: str = ".!?…:", closing: str = "”`") -> str:
    """Return a text with a full stop, unless it ends in one of some signs, or in one with closing marks behind it."""
    return text if text.rstrip(closing).endswith(tuple(ends)) else f"{text}."


def enumerated(names: Sequence[str]) -> str:
    """Return names as a list in words."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
