"""Sameness: whether one of two similar memories can stand for both without loss.

Near vectors or mostly equal words do not prove it: “the key lies in the vault” and “the key lies in the safe” are near,
too. So beyond the checks of `differ`, two memories are not the same

- if each says something that the other does not: a value may have changed, and the one that goes would be lost;
- if each names a number that the other does not, or if they contradict each other.

What remains are texts of which one includes the other (`stands_for_both`). Failures with one fingerprint are one
failure whatever else they say. Keeping two memories that are the same is a minor flaw; merging two that are not is a
loss.
"""

from __future__ import annotations

import re

from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.dedup.equal_text import differ, is_equal
from memgraph.model.chronology import in_order
from memgraph.model.memory import StoredMemory

LEAST_OVERLAP = 0.7
"""Texts without vectors are similar if they share more than this fraction of their terms (seed 1)."""
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\b")
"""Words for dates and times, which differ between two reports of one event."""
_WITH_DIGIT = re.compile(r"\w*\d\w*(?:[.,:]\d+)*")
_STRUCTURE = (
    "steps", "trigger_pattern", "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
)  # fmt: skip
"""Structured fields that a merge would separate from their text."""


def says_the_same(one: StoredMemory, other: StoredMemory) -> bool:
    """Return whether one of two similar memories can stand for both. Symmetric."""
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


def stands_for_both(one: StoredMemory, other: StoredMemory) -> StoredMemory:
    """Return which of two memories that say the same stands for both.

    It is the one whose text includes the other's and says more. If each says something of its own, or both use the same
    terms, it is the newer one where its wording differs, and the first one where they are equal.
    """
    mine, theirs = (set(analyse(memory.content)) for memory in (one, other))
    if mine != theirs and (mine <= theirs or theirs <= mine):
        return other if mine <= theirs else one
    if is_equal(one.content, other.content):
        return one
    return in_order(one, other)[1]


def _are_built_alike(one: StoredMemory, other: StoredMemory) -> bool:
    return all(getattr(one, name, None) == getattr(other, name, None) for name in _STRUCTURE)
