"""Sameness: whether one of two memories that are near each other can stand for both, so that nothing is lost.

That their vectors are near, or that they share most of their words, does not tell: “the key lies in the vault” and “the key
lies in the safe” are near, too. So beyond what `differ` finds, two memories are not the same

- if each names a number, a name or a place that the other does not, or if they contradict each other;
- if all that they differ in is one expression in the place of another: that is a value that has changed;
- if each says more than a little that the other does not.

What is left are texts of which one says what the other says (`stands_for_both`). Failures with one fingerprint are one failure
whatever else they say. To leave two that are the same is a blemish, to make one of two that are not is a loss.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from memgraph.index.analyser import analyse
from memgraph.lifecycle.conflict import conflict_of
from memgraph.lifecycle.equal import differ, is_equal
from memgraph.model.memory import AgentMemory
from memgraph.model.order import in_order

LEAST_OVERLAP = 0.7
"""Of two texts without vectors more than this share of their terms is common (seed 1)."""
_OWN_AT_MOST = 0.25
"""Share of its terms that each of two texts may have for itself."""
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\b")
"""When something happened: that differs between two reports of one thing."""
_WITH_DIGIT = re.compile(r"\w*\d\w*(?:[.,:]\d+)*")
_NAME = re.compile(r"(?<=[a-z,;:)] )[A-Z][\w'’-]*")
"""A capitalised word that does not begin a sentence."""
_WORD = re.compile(r"[\w'’-]+")
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
    if _names_other(one.content, other.content) or conflict_of(*in_order(one, other)) is not None:
        return False
    return _differs_little(*(analyse(_DAY.sub(" ", memory.content)) for memory in (one, other)))


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


def _names_other(one: str, other: str) -> bool:
    """Whether each of two texts names a number or somebody that the other does not."""
    mine, theirs = _DAY.sub(" ", one), _DAY.sub(" ", other)
    numbers, others = set(_WITH_DIGIT.findall(mine)), set(_WITH_DIGIT.findall(theirs))
    if numbers - others and others - numbers:
        return True
    words, its_words = ({word.casefold() for word in _WORD.findall(text)} for text in (mine, theirs))
    unknown = {name.casefold() for name in _NAME.findall(mine)} - its_words
    its_unknown = {name.casefold() for name in _NAME.findall(theirs)} - words
    return bool(unknown and its_unknown)


def _differs_little(terms: list[str], others: list[str]) -> bool:
    """Whether, of two lists of terms, each has few for itself, and no expression stands in the place of just another one."""
    mine, theirs = set(terms), set(others)
    if not mine - theirs or not theirs - mine:
        return True
    if max(len(mine - theirs) / len(mine), len(theirs - mine) / len(theirs)) > _OWN_AT_MOST:
        return False
    steps = SequenceMatcher(None, terms, others, autojunk=False).get_opcodes()
    changes = [step[0] for step in steps if step[0] != "equal"]
    return changes != ["replace"]
