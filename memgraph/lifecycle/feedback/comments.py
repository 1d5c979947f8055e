"""Comments: what users criticised about episodes, grouped by meaning. Pure.

Two comments mean the same if they share most of their words. Where one of them denies or rejects something the words
must be equal and in the same order: "use X, not Y" and "use Y, not X" share all of them. Numbers and names that look
like identifiers must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from memgraph.index.analyser import analyse
from memgraph.lifecycle.dedup.same_fact import normal_form
from memgraph.model.agent_input import feedback_lines
from memgraph.ports import Row

_LEAST_SHARED = 0.66
"""Minimum share of common words: twice their number, divided by the words of both (Dice)."""
_DENIES = re.compile(r"\b(?:not|never|no|without|instead of|rather than|over)\b|n['’]t\b", re.IGNORECASE)
_DENIALS = re.compile(r"\b(?:not|never|no|without)\b|n['’]t\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\w[_./-]\w|\d")
_FILLERS = frozenset(analyse("again still always instead please much really way once more time yet already every"))


class Comment(NamedTuple):
    """A comment on an episode."""

    text: str
    episode: Row


def comments_on(episodes: Sequence[Row]) -> Iterator[Comment]:
    """Yield the criticism of episodes, in the order given: comments with ``meh``, and whatever was said about a failure."""
    for row in episodes:
        is_failure = row.get("outcome") == "negative"
        for word, text in feedback_lines(row.get("user_feedback") or ""):
            if text and (word == "meh" or (word is None and is_failure)):
                yield Comment(text, row)


def grouped(comments: Sequence[Comment]) -> list[list[Comment]]:
    """Group comments by meaning, each with the first group that it fits, one per episode. Groups begin with their first comment."""
    groups: list[list[Comment]] = []
    holders: dict[str, list[int]] = {}
    for comment in comments:
        terms, _ = _read(comment.text)
        if not terms:
            continue
        places = sorted({place for term in terms for place in holders.get(term, ())})
        place = next((one for one in places if mean_the_same(groups[one][0].text, comment.text)), len(groups))
        if place == len(groups):
            groups.append([])
            for term in terms:
                holders.setdefault(term, []).append(place)
        if all(known.episode["id"] != comment.episode["id"] for known in groups[place]):
            groups[place].append(comment)
    return groups


def mean_the_same(one: str, other: str) -> bool:
    """Return whether two comments have the same meaning. Symmetric."""
    (terms, names), (others, other_names) = _read(one), _read(other)
    if not terms or not others:
        return False
    if _DENIES.search(one) or _DENIES.search(other):
        return _in_order(one) == _in_order(other)
    return names == other_names and 2 * len(terms & others) >= _LEAST_SHARED * (len(terms) + len(others))


def _in_order(text: str) -> tuple[str, ...]:
    """Return the words that carry meaning in order, every denial as one word."""
    denied = _DENIALS.sub(" not ", text)
    return tuple(word for word in normal_form(denied) if word == "not" or set(analyse(word)) - _FILLERS)


@lru_cache(maxsize=1 << 12)
def _read(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return a comment's terms, and its numbers and identifiers."""
    names = frozenset(word for word in normal_form(text) if _IDENTIFIER.search(word))
    return frozenset(analyse(text)) - _FILLERS, names
