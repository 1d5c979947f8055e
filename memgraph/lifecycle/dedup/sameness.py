"""Sameness: whether one of two memories that are near each other can stand for both, so that nothing is lost.

That their vectors are near, or that they share most of their words, does not tell: “the key lies in the vault” and “the key
lies in the safe” are near, too. So beyond what `differ` finds, two memories are not the same

- if each says something that the other does not: that may be a value that has changed, and what went would be lost;
- if each names a number that the other does not, or if they contradict each other.

What is left are texts of which one says all that the other says (`stands_for_both`). Failures with one fingerprint are one failure
whatever else they say. To leave two that are the same is a blemish, to make one of two that are not is a loss.
"""

from __future__ import annotations

import re

from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.dedup.equal_text import differ, is_equal
from memgraph.model.memory import AgentMemory, in_order

LEAST_OVERLAP = 0.7
"""Of two texts without vectors more than this share of their terms is common (seed 1)."""
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\b")
"""When something happened: that differs between two reports of one thing."""
_WITH_DIGIT = re.compile(r"\w*\d\w*(?:[.,:]\d+)*")
_STRUCTURE = (
    "steps", "trigger_pattern", "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
)  # fmt: skip
"""What a memory holds beside its text, and a merge would tear from it."""


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the terms of two texts that is common to both (Jaccard), in [0, 1]; 0 for texts without terms."""
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def says_the_same(one: AgentMemory, other: AgentMemory) -> bool:
    """Tell whether one of two memories that are near each other can stand for both. Symmetrical."""
    if differ(one, other) or not _are_built_alike(one, other):
        return False
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        return True
    if is_equal(one.content, other.content):
        return True
    texts = [_DAY.sub(" ", memory.content) for memory in (one, other)]
    mine, theirs = (set(analyse(text)) for text in texts)
    if not (mine <= theirs or theirs <= mine) or conflict_of(*in_order(one, other)) is not None:
        return False
    numbers, others = (set(_WITH_DIGIT.findall(text)) for text in texts)
    return numbers <= others or others <= numbers


def stands_for_both(one: AgentMemory, other: AgentMemory) -> AgentMemory:
    """Return which of two memories that say the same stands for both.

    The one whose text says all that the other's does, and more; of two that each say something of their own, and of two that use
    the same terms, the newer one where it says it otherwise, and the first one where they are equal.
    """
    mine, theirs = (set(analyse(memory.content)) for memory in (one, other))
    if mine != theirs and (mine <= theirs or theirs <= mine):
        return other if mine <= theirs else one
    if is_equal(one.content, other.content):
        return one
    return in_order(one, other)[1]


def _are_built_alike(one: AgentMemory, other: AgentMemory) -> bool:
    return all(getattr(one, name, None) == getattr(other, name, None) for name in _STRUCTURE)
