"""Rules from feedback: what users criticise again and again becomes a rule that says how to prevent it.

Comments of one meaning on at least two episodes of a project and task make one rule. It is derived from the episodes,
grows with later ones, and is retired if fewer than two are left. A hidden one is not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any

from memgraph.lifecycle.evidence.evidence import (
    CONFIDENCE,
    CONFIDENCE_AT_MOST,
    Scope,
    TimeIsUp,
    in_order,
    is_true,
    never,
    read_scope,
    revision,
    shared_context,
    strictness,
    unlinked,
)
from memgraph.lifecycle.evidence.retirement import no_longer_valid, retired, was_retired
from memgraph.lifecycle.feedback.comments import Comment, comments_on, grouped
from memgraph.lifecycle.run.changes import Watch, changes_after, last_run
from memgraph.lifecycle.run.runner import Plan, View, added, carry_out, commits_of
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.events.memories import MemoryDerived, MemoryLinked, MemoryReembedded, MemoryUnlinked
from memgraph.model.events.records import AccessRecorded, phase_key
from memgraph.model.ids import source_id
from memgraph.model.memory import SemanticMemory
from memgraph.model.results.learning import FEEDBACK_SOURCE, FeedbackResult
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut, whole_sentences

PHASE = "feedback"
LEAST_EPISODES = 2
_TYPES = ("episodic", "semantic")
_WATCH = Watch((AccessRecorded, MemoryReembedded, MemoryDerived, MemoryLinked, MemoryUnlinked))
_ADVICE = re.compile(
    r"^\W*(?:please\s+)?(?!(?:this|that|it|the|a|an|too|very|not|no|so|still)\b)[a-z]+\s+(?:the|a|an|your|my|our|this|that|it|only|before|after|"
    r"for|in|with|to|from|at|on)\b|\b(?:should|must|always|never|do not|don['’]t|use|avoid|prefer|keep|instead|make sure|need(?:s|ed)? to|ask|"
    r"please|only)\b",
    re.IGNORECASE,
)
"""A comment that says what to do, not only what was bad."""
_COMMENT_CHARS = 300
_DONE_CHARS = 160
_STOPS = " .!"
_RETIRED_TEXT = "The feedback behind this rule was withdrawn."


def learn_from_feedback(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> FeedbackResult:
    """Make rules of repeated comments on episodes. Deterministic, without a model; idempotent.

    Parameters
    ----------
    is_time_up : callable, optional
        Called between projects: once it returns true, the rest waits for the next run.
    """
    total = FeedbackResult()
    for scope in _changed_scopes(store):
        if is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(_planned, scope=scope), embedder=store.embedder).result)
    return total


def _changed_scopes(store: AgentMemoryStore) -> list[Scope]:
    """Return the scopes of episodes with feedback, and of rules, that changed since this phase last completed."""
    reader = store.reader
    since = last_run(reader, phase_key(PHASE)).get("seq", 0)
    scopes: dict[Scope, None] = {}
    for changes in changes_after(reader, since, _WATCH.touched, most_events=20_000):
        rows = reader.rows(sorted(changes.touched))
        gone = changes.touched.keys() - {row["id"] for row in rows}
        rows += [row for row, _ in reader.deleted(sorted(gone))] if gone else []
        for row in sorted(rows, key=lambda row: row["id"]):
            if row.get("user_feedback") or row.get("source") == FEEDBACK_SOURCE:
                scopes[row.get("project_id"), row.get("task_id")] = None
    return list(scopes)


def _planned(view: View, scope: Scope) -> Plan[FeedbackResult]:
    with view.reader.frozen():
        rows = read_scope(view.reader, scope, _TYPES)
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, view.now)])
    known = {row["id"]: row for row in rows if row.get("source") == FEEDBACK_SOURCE}
    groups = [group for group in grouped(list(comments_on(episodes))) if len(group) >= LEAST_EPISODES]
    left = dict(known)
    by_pattern: dict[str, list[Row]] = {}
    for row in known.values():
        by_pattern.setdefault(row.get("pattern") or "", []).append(row)
    deleted = cache(lambda: {row["id"] for row, _ in view.reader.deleted_of(FEEDBACK_SOURCE)})  # reads the journal
    units: list[list[Write]] = []
    texts: list[str] = []
    created = updated = 0
    for group in groups:
        said = dict.fromkeys(comment.text for comment in group)
        rule = _rule_of(group, [row for text in said for row in by_pattern.get(text, ()) if row["id"] in left])
        memory_id = rule["id"] if rule else _id(scope, group)
        left.pop(memory_id, None)
        if _is_put_away(rule, view.now) if rule else memory_id in known or memory_id in deleted():
            continue
        fields = _fields(group, scope)
        ids = [comment.episode["id"] for comment in group][-MAX_ITEMS:]
        if rule is None:
            units.append([SemanticMemory(id=memory_id, **fields, supporting_memory_ids=ids)])
            created += 1
            texts.append(fields["content"])
        elif unit := _grown(view, rule, fields, ids):
            units.append(unit)
            updated += 1
            texts.append(fields["content"])
    for rule in left.values():
        if is_true(rule, view.now) and "archived_at" not in rule and not rule.get("is_pinned"):
            units.append(_retired(view, rule))
            updated += 1
    result = FeedbackResult(comments=sum(map(len, groups)), created=created, updated=updated)
    return Plan(result, commits_of(scope[1], units), texts)


def _rule_of(group: Sequence[Comment], rules: Iterable[Row]) -> Row | None:
    """Return, of rules with the words of a comment, the one that was made of some of these comments."""
    ids = {comment.episode["id"] for comment in group}
    shared = [row for row in rules if ids & set(row.get("source_event_ids", ()))]
    return max(shared, key=lambda row: (len(ids & set(row["source_event_ids"])), row["id"]), default=None)


def _id(scope: Scope, group: Sequence[Comment]) -> str:
    return source_id(
        "\x1f".join(["feedback", scope[0] or "", scope[1] or "", group[0].episode["id"], group[0].text]), 0
    )


def _is_put_away(row: Row, now: str) -> bool:
    """Return whether a user or agent hid a rule, so that it must not be changed."""
    return (not is_true(row, now) and not was_retired(row)) or "archived_at" in row


def _fields(group: Sequence[Comment], scope: Scope) -> dict[str, Any]:
    rows = [comment.episode for comment in group]
    last = group[-1]
    said = whole_sentences(" ".join(last.text.split()), _COMMENT_CHARS)
    is_advice = _ADVICE.search(said) is not None
    days = [row.get("occurred_at", "")[:10] for row in rows]
    period = f"on {days[0]}" if days[0] == days[-1] else f"between {days[0]} and {days[-1]}"
    what = "asked for the same" if is_advice else "made the same complaint"
    done = " ".join((last.episode.get("action") or last.episode.get("situation") or "").split())
    tags = Counter(tag for row in rows for tag in set(row.get("tags", ())))
    shared = [tag for tag, many in sorted(tags.items(), key=lambda item: (-item[1], item[0])) if many * 2 > len(rows)]
    builds = [build for row in rows for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    return {
        "content": cut(
            f"The user {what} on {len(rows):,} episodes {period}: “{said.rstrip(_STOPS)}”.", MAX_CONTENT_CHARS
        ),
        "pattern": group[0].text,
        "category": "user feedback",
        "incorrect_approach": whole_sentences(done, _DONE_CHARS) if done else f"what was done on {days[-1]}",
        "correct_approach": said if is_advice else f"avoid what the user criticised: “{said}”",
        "confidence": CONFIDENCE.get(len(rows), CONFIDENCE_AT_MOST) if len(rows) > LEAST_EPISODES else 0.6,
        "project_id": scope[0],
        "task_id": scope[1],
        **shared_context(rows),
        "tags": list(dict.fromkeys(["user-feedback", *shared]))[:6],
        "evidence_build_ids": list(dict.fromkeys(builds))[-MAX_ITEMS:],
        "source_event_ids": [row["id"] for row in rows][-MAX_ITEMS:],
        "source": FEEDBACK_SOURCE,
        "occurred_at": rows[-1].get("occurred_at"),
        "reason": "the user said the same about several episodes",
    }


def _grown(view: View, rule: Row, fields: dict[str, Any], ids: Sequence[str]) -> list[Write]:
    """Return the events that bring a rule up to date with its comments; none if it is."""
    before = view.reader.read([rule["id"]])[0]
    changed = {**fields, **strictness([rule, fields]), "pattern": rule.get("pattern")}
    if before.is_pinned:
        changed.pop("content")
    if was_retired(rule):
        changed |= {"invalid_at": None, "invalidation_reason": None}
    event = revision(before, before.model_copy(update={**changed, "updated_at": view.now}))
    linked = set(before.supporting_memory_ids)  # type: ignore[attr-defined]
    unit: list[Write] = [event] if event else []
    if new := [one for one in ids if one not in linked]:
        unit.append(MemoryDerived(id=before.id, source_ids=new, created_at=view.now))
    return [*unit, *unlinked(before.id, sorted(linked - set(ids)))]


def _retired(view: View, rule: Row) -> list[Write]:
    """Return the events that retire a rule, without its words: its comments were withdrawn, or its episodes hidden."""
    before = view.reader.read([rule["id"]])[0]
    gone = retired(before, _RETIRED_TEXT, no_longer_valid(view.now), now=view.now, tags=["user-feedback"])
    event = revision(before, gone)
    return [event] if event else []
