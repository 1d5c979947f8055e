"""Equal texts: the comparison of memories without vectors."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.memory import AgentMemory
from memgraph.text import lazy_re as re

_NEGATIONS = re.compile(
    r"\b(?:not|never|no longer|cannot|without|neither|nor|avoid(?:s|ed)?|stopped|refuse[sd]?)\b|n['’]t\b", re.IGNORECASE
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_TOKEN = re.compile(r"[-+]?\d+(?:[.,:]\d+)*|\w+")
_IDENTIFIER = re.compile(r"[\w./-]{0,200}\w[_./]\w(?:[\w./-]{0,200}\w)?|\b\w{1,60}_\w{1,60}\b")
_VALUE = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october|november|december|"
    r"staging|production|development|\d{1,2}:\d{2}(?::\d{2})?|\d+(?:\.\d+)? ?(?:ms|s|sec|min|h|kb|mb|gb|tb|%))(?!\w)",
    re.IGNORECASE,
)
"""Of these a fact names one of few: vectors take one for the other."""
_KEPT = 4_096
"""Texts of which it is kept what they name: one is compared with many."""
_LOOSE_WORDS = 3
"""Words by which two equal texts may differ when they are counted by white space: dashes and bullets stand alone or not."""
Mask = NDArray[np.bool_]


def differ(one: AgentMemory, other: AgentMemory) -> bool:
    """Whether two memories that are near each other still say different things.

    One denies, each names what the other does not, or they conflict (`conflict_of`): another port is another fact. What a text
    names are its identifiers (paths, files, dotted and compound names), days, times and environments. Nor are texts the same that differ in their numbers alone, or in the order of their words. Vectors hardly see these differences. The same failure
    by its fingerprint is the same whatever it names; but trials of two tasks are never the same.
    """
    if (tasks := (_task(one), _task(other))) != (None, None) and tasks[0] != tasks[1]:
        return True
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        return False
    if _denies(one.content) != _denies(other.content):
        return True
    for named in (_identifiers, _values):
        names, others = named(one.content), named(other.content)
        if names - others and others - names:
            return True
    return _is_reordered(one.content, other.content) or conflict_of(one, other) is not None


def _task(memory: AgentMemory) -> str | None:
    return task_of(vars(memory))


def _is_reordered(one: str, other: str) -> bool:
    """Whether two texts are the same but for their numbers, or are the same words in another order."""
    tokens, others = _tokens(one), _tokens(other)
    if len(tokens) != len(others) or any(tokens == others[at:] + others[:at] for at in range(len(others) or 1)):
        return False  # a clause may come first or last
    words, other_words = ([token for token in part if not token[-1].isdigit()] for part in (tokens, others))
    return words == other_words or sorted(tokens) == sorted(others)


@lru_cache(maxsize=_KEPT)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(_DATE.sub("", text[:MAX_CONTENT_CHARS].casefold())))


@lru_cache(maxsize=_KEPT)
def _denies(text: str) -> bool:
    return len(_NEGATIONS.findall(text[:MAX_CONTENT_CHARS])) % 2 == 1


@lru_cache(maxsize=_KEPT)
def _identifiers(text: str) -> frozenset[str]:
    return frozenset(name.casefold().rsplit("/", 1)[-1] for name in _IDENTIFIER.findall(text[:MAX_CONTENT_CHARS]))


@lru_cache(maxsize=_KEPT)
def _values(text: str) -> frozenset[str]:
    return frozenset(value.casefold().rstrip("s") for value in _VALUE.findall(text[:MAX_CONTENT_CHARS]))
