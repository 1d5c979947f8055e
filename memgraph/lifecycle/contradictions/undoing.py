"""Undoing: which change of a history a later change reverts or does again.

A revert quotes the subject of what it reverts, and a revert of a revert quotes the revert. So a change is a subject and
a number: how many times it was turned around. Turning it around once more undoes it. Pure; linear in the texts.
"""

from __future__ import annotations

from functools import lru_cache

from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.claims import bare
from memgraph.model.memory import AgentMemory
from memgraph.text import lazy_re as re

_REVERT = re.compile(
    r"(?:^|\b[^“\"]{0,80}?\b)(revert(?:s|ed|ing)?|reappl(?:y|ied|ies))(?: of)?:? ?[“\"]", re.IGNORECASE
)
_COMMIT = re.compile(r"\bcommit ([0-9a-f]{7,40})\b")
_FEWEST_WORDS = 2
_MOST_QUOTES = 6
_MOST_QUOTED = 300


def undoes(newer: AgentMemory, older: AgentMemory) -> str | None:
    """Return how one change undoes another; None if it does not."""
    commit = getattr(older, "git_commit", None)
    turned, subject = _turned(newer.content)
    if turned % 2 and commit and any(commit.startswith(named) for named in _COMMIT.findall(newer.content)):
        return "the change was reverted"
    its_turned, its_subject = _turned(older.content)
    if turned == its_turned or len(subject) < _FEWEST_WORDS or not _is_subject(subject, its_subject):
        return None
    if turned == its_turned + 1:
        return "the change was reverted" if turned % 2 else "what was reverted was done again"
    return "what was reverted was done again" if its_turned == 1 and turned in (0, 2) else None


def _is_subject(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two subjects are equal. A truncated quotation equals a subject that it is a prefix of."""
    shorter, longer = sorted((one, other), key=len)
    return longer[: len(shorter)] == shorter and (len(shorter) == len(longer) or len(shorter) > 2 * _FEWEST_WORDS)


@lru_cache(maxsize=1 << 12)
def _turned(text: str) -> tuple[int, tuple[str, ...]]:
    """Return how many times a change was turned around, and the terms of its subject."""
    turned = 0
    while turned < _MOST_QUOTES and (found := _REVERT.match(text)):
        turned += 2 if found.group(1).casefold().startswith("reappl") else 1
        quoted = text[found.end() : found.end() + _MOST_QUOTED]
        # quotes of one kind may be nested, and the last one closes; typographic ones show which one it is
        end = quoted.find("”") if found.group().endswith("“") else quoted.rfind('"')
        text = quoted[:end] if end > 0 else quoted
    return turned, tuple(analyse(bare(text)))
