"""Rules from feedback: what users criticise again and again becomes a rule that says how to prevent it.

Comments of one meaning on at least two episodes of a project and task make one rule.

Two comments have the same meaning if they state the same (`same_statements`): the same words in the same order, so that
numbers, negations, names and directions agree. Others are kept apart: a missing rule costs less than a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from memgraph.lifecycle.dedup.same import Words, fact_form, same_statements
from memgraph.lifecycle.episodes import (
    LESSON_TYPES,
    Deletions,
    IncrementalRun,
    Scope,
    confidence_of,
    evidence_in,
    in_order,
    is_true,
    read_scope,
)
from memgraph.lifecycle.reconcile import Known, Lesson, deleted_of, fields_of, known_of, reconcile, shared_tags
from memgraph.lifecycle.run import Plan, TimeIsUp, View, commits_of, never
from memgraph.model.agent_input import feedback_lines
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.records import phase_key
from memgraph.model.results.learning import FEEDBACK_SOURCE, FeedbackResult
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import cut, whole_sentences

PHASE = "feedback"
LEAST_EPISODES = 2
_COMMENT_CHARS = 300
_DONE_CHARS = 160
_STOPS = " .!"
_RETIRED_TEXT = "The feedback behind this rule was withdrawn."


def learn_from_feedback(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> FeedbackResult:
    """Make rules of repeated comments on episodes. Deterministic, without a model; idempotent."""
    return _RUN.run(store, is_time_up)


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[FeedbackResult]:
    rows = read_scope(view.reader, scope, LESSON_TYPES)
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, view.now)])
    groups = [group for group in grouped(list(comments_on(episodes))) if len(group) >= LEAST_EPISODES]
    own = [row for row in rows if row.get("source") == FEEDBACK_SOURCE]
    if not (groups or own):
        return Plan(FeedbackResult())
    known = known_of(own, {row["id"] for row in episodes})
    wanted, left = list[Lesson](), list(known)
    for group in groups:
        of = _rule_of(group, left) or _rule_of(group, deleted_of(deletions, scope, FEEDBACK_SOURCE))
        left = [one for one in left if one is not of]
        wanted.append(_lesson(group, scope, of))
    found = reconcile(view, wanted, known, lapsed_text=_RETIRED_TEXT, tags=["user-feedback"])
    counts = {"created": len(found.made), "updated": len(found.grown) + len(found.lapsed)}
    result = FeedbackResult(comments=sum(map(len, groups)), **counts)
    return Plan(result, commits_of(scope[1], found.units), found.texts)


def _rule_of(group: Sequence[Comment], rules: Iterable[Known]) -> Known | None:
    """Return, of rules with the words of a comment, or without words, the one that was made of most of these comments."""
    said, ids = {None, *(comment.text for comment in group)}, {comment.episode["id"] for comment in group}
    shared = [one for one in rules if one.row.get("pattern") in said and ids & one.members]
    return max(shared, key=lambda one: (len(ids & one.members), one.id), default=None)


def _lesson(group: Sequence[Comment], scope: Scope, of: Known | None) -> Lesson:
    rows = [comment.episode for comment in group]
    last = group[-1]
    said = whole_sentences(" ".join(last.text.split()), _COMMENT_CHARS)
    days = [row.get("occurred_at", "")[:10] for row in rows]
    period = f"on {days[0]}" if days[0] == days[-1] else f"between {days[0]} and {days[-1]}"
    done = " ".join((last.episode.get("action") or last.episode.get("situation") or "").split())
    content = f"The user said the same of {len(rows):,} episodes {period}: “{said.rstrip(_STOPS)}”."
    fields: dict[str, Any] = {
        **fields_of(rows, scope, FEEDBACK_SOURCE),
        "content": cut(content, MAX_CONTENT_CHARS),
        "pattern": of.row.get("pattern") if of and of.row.get("pattern") else group[0].text,
        "category": "user feedback",
        "incorrect_approach": whole_sentences(done, _DONE_CHARS) if done else f"what was done on {days[-1]}",
        "correct_approach": f"what the user said: “{said}”",
        "confidence": confidence_of(len(rows)) if len(rows) > LEAST_EPISODES else 0.6,
        "tags": shared_tags(rows, "user-feedback"),
        "reason": "the user said the same about several episodes",
    }
    key = "\x1f".join(["feedback", scope[0] or "", scope[1] or "", rows[0]["id"], group[0].text])
    return Lesson(key, fields, [row["id"] for row in reversed(rows)], evidence_in(rows), of)


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
        words = fact_form(comment.text)
        if words:
            known = next((form for form in same_statements(words) if form in groups), words)
            groups.setdefault(known, {}).setdefault(comment.episode["id"], comment)
    return [list(group.values()) for group in groups.values()]


_RUN = IncrementalRun(phase_key(PHASE), LESSON_TYPES, _planned, FeedbackResult())
