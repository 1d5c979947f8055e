"""Sameness: whether one of two memories can stand for both without loss.

Their texts must state the same fact (`same_fact`), about the same subject and task. Trials of two tasks are never the
same, however alike their texts are.
"""

from __future__ import annotations

from memgraph.index.columns import PIN_SOURCE
from memgraph.lifecycle.contradictions.conflict import may_be_about_the_same
from memgraph.lifecycle.dedup.same_fact import (
    adds_to,
    is_equal,
    normal_form,
    repeats,
    states_the_same,
    without_occurrence,
)
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.model.link import in_order
from memgraph.model.memory import AgentMemory, EpisodicMemory, StoredMemory

_STRUCTURE = (
    "steps", "trigger_pattern", "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
)  # fmt: skip
"""Structured fields that a merge would separate from their text."""


def says_the_same(one: AgentMemory, other: AgentMemory) -> bool:
    """Return whether one of two memories can stand for both. Symmetric."""
    if PIN_SOURCE in (one.source, other.source):
        return False
    if task_of(vars(one)) != task_of(vars(other)) or not may_be_about_the_same(one, other):
        return False
    if any((getattr(one, name, None) or None) != (getattr(other, name, None) or None) for name in _STRUCTURE):
        return False
    text, other_text = one.content, other.content
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        text, other_text = without_occurrence(text), without_occurrence(other_text)
    if states_the_same(text, other_text):
        return True
    if one.outcome == other.outcome == "negative" and (repeats(text, other_text) or repeats(other_text, text)):
        return True
    if isinstance(one, EpisodicMemory) or isinstance(other, EpisodicMemory):
        return False  # what another report adds may be another event
    return adds_to(text, other_text) or adds_to(other_text, text)


def stands_for_both(one: StoredMemory, other: StoredMemory) -> StoredMemory:
    """Return which of two memories that say the same stands for both.

    It is the one that says more; if both say as much, the newer one where its wording differs, and the first one where
    the texts are equal.
    """
    words, others = normal_form(one.content), normal_form(other.content)
    if len(words) != len(others):
        return one if len(words) > len(others) else other
    return one if is_equal(one.content, other.content) else in_order(one, other)[1]
