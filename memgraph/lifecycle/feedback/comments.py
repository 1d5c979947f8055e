"""Comments: what users criticised about episodes, grouped by meaning. Pure.

Two comments have the same meaning if they state the same (`same_statements`): the same words in the same order, so that
numbers, negations, names and directions agree. Of a complaint, its lead-in ("it was …") and words that only stress it
("again", "still") are ignored. Comments that differ otherwise are kept apart: a missing rule costs less than a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from memgraph.lifecycle.dedup.same import Words, normal_form, same_statements
from memgraph.model.agent_input import feedback_lines
from memgraph.ports import Row

_SUBJECTS = frozenset(("it", "this", "that"))
_IS = frozenset(("is", "was"))
_TOO, _AGAIN, _INSTEAD = "too", "again", "instead"
_STRESS = frozenset(normal_form("again still always really much way far"))
"""Words that only stress a complaint that something is too much. Elsewhere they have a meaning: “run the tests again”."""


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
    """Group comments by meaning, one per episode. Groups begin with their first comment. Linear in the comments."""
    groups: dict[Words, dict[str, Comment]] = {}
    for comment in comments:
        words = _meaning(comment.text)
        if words:
            known = next((form for form in same_statements(words) if form in groups), words)
            groups.setdefault(known, {}).setdefault(comment.episode["id"], comment)
    return [list(group.values()) for group in groups.values()]


@lru_cache(maxsize=1 << 12)
def _meaning(text: str) -> Words:
    """Return the words of a comment that carry its meaning."""
    words = normal_form(text)
    if len(words) > 2 and words[0] in _SUBJECTS and words[1] in _IS:
        words = words[2:]
    if words[-1:] == (_INSTEAD,):
        words = words[:-1]
    begins = next((at for at, word in enumerate(words) if word not in _STRESS), 0)
    if words[begins : begins + 1] == (_TOO,):
        words = words[begins:-1] if words[-1] == _AGAIN else words[begins:]
    return words
