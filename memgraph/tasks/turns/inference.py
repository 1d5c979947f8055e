"""Which task a message belongs to: a pure function of the message and of what is known of the tasks.

A task that the message names, by its id or its title, is near certain. Otherwise the words of a message speak for a task as far as they make
up its title, and less so as far as they occur in its goal and items. A word that many of the tasks have speaks for none of them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from memgraph.index.analyser import analyse
from memgraph.model.results.tasks.turns import TaskMatch

MAX_READ_CHARS = 16_000
"""Of a longer message the beginning is read: that says what it is about, and what follows is pasted."""
LEAST_CONFIDENCE = 0.3
"""Below it no task is inferred."""
AMBIGUOUS_WITHIN = 0.15
"""Candidates whose confidence is nearer to the best one's than this match about equally well."""
_NAMED = 0.95
_NAMED_BY_A_WORD = 0.8
"""A name of one word may also be meant as that word."""
_TITLE_SHARE, _ITEMS_SHARE = 0.7, 0.7
_HALF_SURE_WORDS = 2.0
"""Words of the items that a message must have so that they say half of what they can."""
_TELLS_LITTLE = 0.25
_ANY_TASK = frozenset(
    analyse(
        "fix write add make update implement create remove improve test check use change build review get set run new task work "
        "continue finish start help look need want"
    )
)
"""What is done in any task: such a word alone tells little about which one is meant."""
_QUOTES = "`\"'“”‘’«»#"
_ID_CHAR = re.compile(r"[\w./-]")


class TaskText(NamedTuple):
    """What is known of a task: its id, its title, and the texts of its goal and items."""

    task_id: str
    title: str
    items: Sequence[str] = ()


class Inference(NamedTuple):
    """The task that a message seems to belong to.

    Attributes
    ----------
    best : TaskMatch or None
        None: the message says too little.
    ambiguous : tuple of TaskMatch
        Those that match about equally well, the best first; empty if one stands out.
    """

    best: TaskMatch | None
    ambiguous: tuple[TaskMatch, ...] = ()

    @property
    def confidence(self) -> float:
        """Confidence in the best candidate; 0 without one."""
        return self.best.confidence if self.best else 0.0


def infer_task(message: str, tasks: Sequence[TaskText], *, active: str | None = None) -> Inference:
    """Return the task that a message seems to belong to. Deterministic; linear in the message and in the texts of the tasks.

    Parameters
    ----------
    tasks : sequence of TaskText
        The candidates: closed tasks, and those that whoever asks may not see, must not be among them.
    active : str, optional
        The current task: of equal candidates it is the best.
    """
    beginning = message[:MAX_READ_CHARS]
    terms = analyse(beginning)
    weights = _weights(tasks)
    message_terms, line, lowered = frozenset(terms), _line(terms), beginning.casefold()
    matches = []
    for task in tasks:
        confidence = max(_by_name(task, lowered, line), _by_words(task, message_terms, weights))
        if confidence >= LEAST_CONFIDENCE:
            matches.append(TaskMatch(task_id=task.task_id, title=task.title, confidence=round(confidence, 2)))
    matches.sort(key=lambda one: (-one.confidence, one.task_id != active, one.task_id))
    if not matches:
        return Inference(None)
    near = tuple(one for one in matches if round(matches[0].confidence - one.confidence, 2) < AMBIGUOUS_WITHIN)
    return Inference(matches[0], near if len(near) > 1 else ())


def _weights(tasks: Sequence[TaskText]) -> Mapping[str, float]:
    """Return how much each term tells about which task is meant, from 0 to 1: its inverse document frequency among the tasks."""
    having = Counter(term for task in tasks for term in _terms([task.title, *task.items]))
    highest = _idf(1, len(tasks))
    return {
        term: (_TELLS_LITTLE if term in _ANY_TASK else 1.0) * _idf(count, len(tasks)) / highest
        for term, count in having.items()
    }


def _idf(having: int, total: int) -> float:
    return math.log1p(total / having)


def _by_words(task: TaskText, message_terms: frozenset[str], weights: Mapping[str, float]) -> float:
    title = _terms([task.title])
    whole = math.fsum(weights[term] for term in title)
    of_title = math.fsum(weights[term] for term in title & message_terms) / whole if whole else 0.0
    of_items = math.fsum(weights[term] for term in (_terms(task.items) - title) & message_terms)
    return 1.0 - (1.0 - _TITLE_SHARE * of_title) * (1.0 - _ITEMS_SHARE * of_items / (of_items + _HALF_SURE_WORDS))


def _by_name(task: TaskText, lowered: str, line: str) -> float:
    """Return how sure it is that the message names the task: quoted, after the word “task”, or by several words, more so than by one."""
    title = analyse(task.title)
    if len(title) > 1 and _line(title) in line:
        return _NAMED
    if (found := _by_id(task.task_id.casefold(), lowered)) == _NAMED:
        return found
    return max(found, _NAMED_BY_A_WORD if title and set(title) - _ANY_TASK and _line(title) in line else 0.0)


def _by_id(name: str, lowered: str) -> float:
    is_word = name.isalpha()
    tells = bool(set(analyse(name)) - _ANY_TASK) and (not name.isdecimal())
    best, at = 0.0, lowered.find(name)
    while at >= 0:
        before, after = lowered[max(0, at - 6) : at], lowered[at + len(name) : at + len(name) + 2]
        if not _goes_on(before[-1:], after):
            if (before[-1:] in _QUOTES and before) or before.rstrip().endswith("task") or (tells and not is_word):
                return _NAMED
            best = _NAMED_BY_A_WORD if tells else best
        at = lowered.find(name, at + len(name))
    return best


def _goes_on(before: str, after: str) -> bool:
    """Return whether what was found is a part of a longer name; a full stop at the end of a sentence is none."""
    if before and _ID_CHAR.match(before):
        return True
    return bool(after) and _ID_CHAR.match(after) is not None and (after[0] not in "./-" or after[1:].isalnum())


@lru_cache(maxsize=1 << 13)
def terms_of(text: str) -> frozenset[str]:
    """Return the terms of a title or an item: the same ones are compared with each message."""
    return frozenset(analyse(text))


def _terms(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(terms_of, texts))


def _line(terms: Sequence[str]) -> str:
    """Return terms as one text in which a sequence of them can be found."""
    return f" {' '.join(terms)} "
