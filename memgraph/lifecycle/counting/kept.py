"""Counted rules of a store: read from the commits of a project, and kept as memories that are made, brought up to date and ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

import numpy as np

from memgraph.lifecycle.counting.counting import Counting, check
from memgraph.lifecycle.counting.records import HOT_SPOT, KNOWS, MENDED, REVERTED, TOGETHER, Change, Counted, FileChange
from memgraph.lifecycle.episodes import LEAST_BUILDS, confidence_of, shared_context
from memgraph.lifecycle.reconcile import NOT_COUNTED, Known, Lesson, invalidated, reconcile
from memgraph.lifecycle.run import Plan, TimeIsUp, View, carry_out, commits_of, last_run, never
from memgraph.model.events.records import phase_key
from memgraph.model.ids import source_id
from memgraph.model.memory import MEMORY_TYPES, Entity
from memgraph.model.results.learning import COUNTING_SOURCE, CountingReport
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_project
from memgraph.store.query import Mask, Reader
from memgraph.text.words import is_bot

PHASE = "counting"
LEAST_CONFIDENCE = {TOGETHER: 0.6, KNOWS: 0.6}
"""Confidence from which a rule that foretells something is kept as a memory; `rules_of` gives the others, too."""
MOST_OF_A_KIND = {TOGETHER: 20, KNOWS: 20, HOT_SPOT: 10, MENDED: 10, REVERTED: 5}
_MOST_LINKED = 10
_FIXES, _HISTORIES = "fix", ("git", "gitlog")


def records_of(reader: Reader, project: str) -> list[Change]:
    """Return the commits of a project in the order in which they were made. Costs a read of all its episodes."""
    return [_change(row) for row in _commits(reader, project)]


def rules_of(reader: Reader, project: str) -> list[Counted]:
    """Return the rules that the commits of a project show, the most confident of each kind first."""
    return _rules(records_of(reader, project))


def _rules(changes: Sequence[Change]) -> list[Counted]:
    counting = Counting()
    for change in changes:
        counting.learn(change)
    return counting.rules(check(changes))


def projects_of(reader: Reader) -> list[str]:
    """Return the projects whose histories were read."""
    return sorted({row["project_id"] for row in reader.every_record("Source") if row["kind"] in _HISTORIES})


def count_records(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> CountingReport:
    """Keep the most confident rules of every project that has new commits as memories: make them, bring them up to date, end them.

    Deterministic and idempotent; each project is one commit. What somebody deleted or forgot is not made again.
    """
    report = CountingReport()
    for project in projects_of(store.reader):
        if is_time_up():
            return report.model_copy(update={"complete": False})
        if _has_new(store.reader, project):
            done = carry_out(store, partial(_planned, project), embedder=store.embedder).result
            counts = {name: getattr(report, name) + getattr(done, name) for name in ("created", "updated", "ended")}
            report = report.model_copy(update=counts)
    return report


def _has_new(reader: Reader, project: str) -> bool:
    with reader.frozen():
        mask = _episodes(reader, project)
        since = last_run(reader, phase_key(PHASE)).get("seq", 0)
        return bool((reader.index.column("seq")[mask] > since).any())


def _planned(project: str, view: View) -> Plan[CountingReport]:
    reader = view.reader
    rows = {row["id"]: row for row in _commits(reader, project)}
    known = {one.id: one for one in (Known(row, frozenset()) for row in kept_rules(reader, project))}
    touchable = {key: one for key, one in known.items() if _is_as_counted(one.row)}
    wanted = []
    for rule in _strongest(_rules([_change(row) for row in rows.values()])):
        lesson = _lesson(project, rule, [rows[one] for one in rule.evidence])
        of = touchable.pop(memory_id := source_id(lesson.key, 0), None)
        is_new = memory_id not in known and memory_id not in reader.rejected()
        if is_new or (of and (of.row["content"] != rule.text or "invalid_at" in of.row)):
            wanted.append(replace(lesson, of=of))
    found = reconcile(view, wanted, touchable.values(), lapse=partial(invalidated, view.now, reason=NOT_COUNTED))
    report = CountingReport(created=len(found.made), updated=len(found.grown), ended=len(found.lapsed))
    return Plan(report, commits_of(None, found.units), found.texts)


def _strongest(rules: Sequence[Counted]) -> list[Counted]:
    number, found = Counter[str](), []
    for rule in rules:
        is_sure = rule.confidence >= LEAST_CONFIDENCE.get(rule.kind, 0.0)
        if is_sure and number[rule.kind] < MOST_OF_A_KIND.get(rule.kind, 0):
            number[rule.kind] += 1
            found.append(rule)
    return found


def _lesson(project: str, rule: Counted, evidence: Sequence[Row]) -> Lesson:
    fields = {
        "content": rule.text,
        "confidence": _certainty(rule),
        "category": rule.kind,
        "pattern": rule.text,
        "entities": _entities(rule),
        "project_id": project,
        "tags": ["counted"],
        "source": COUNTING_SOURCE,
        "reason": f"counted over {rule.occasions:,} commits of the history",
        "occurred_at": _iso(rule.last),
        **shared_context(evidence),
    }
    return Lesson(f"counted\x1f{project}\x1f{rule.key}", fields, rule.evidence[:_MOST_LINKED])


def _is_as_counted(row: Row) -> bool:
    """Return whether a rule still has the text that counting gave it, so that counting may change it."""
    return bool(row["content"] == row.get("pattern")) and not row.get("is_pinned")


def _certainty(rule: Counted) -> float:
    """Return the confidence of a rule's memory: of one that foretells how often it is right, else by the number of hits that it reports."""
    return rule.confidence if rule.kind in LEAST_CONFIDENCE else confidence_of(max(rule.support, LEAST_BUILDS))


def _entities(rule: Counted) -> list[Entity]:
    about = Entity(name=rule.subject[:400], kind="file", about=True)
    if rule.kind == TOGETHER:
        return [about, Entity(name=rule.object[:400], kind="file")]
    return [about, Entity(name=rule.object[:400], kind="person")] if rule.kind == KNOWS else [about]


def kept_rules(reader: Reader, project: str) -> list[Row]:
    """Return the rules that are kept, ended ones included."""
    index = reader.index
    mask = index.column("is_live") & (index.column("type") == MEMORY_TYPES.index("semantic"))
    mask &= of_project(index, project)
    ids = [index.ids.names[slot] for slot in np.flatnonzero(mask).tolist()]
    return [row for row in reader.rows(ids) if row.get("source") == COUNTING_SOURCE]


def _episodes(reader: Reader, project: str) -> Mask:
    index = reader.index
    is_episode = index.column("type") == MEMORY_TYPES.index("episodic")
    mask: Mask = index.column("is_live") & is_episode & of_project(index, project)
    return mask


def _commits(reader: Reader, project: str) -> list[Row]:
    """Return the rows of a project's commits that are evidence, in the order of their times."""
    with reader.frozen():
        ids = [reader.index.ids.names[slot] for slot in np.flatnonzero(_episodes(reader, project)).tolist()]
        rows = [row for row in reader.rows(ids) if "git_commit" in row and row.get("changes")]
    by_commit = {row["git_commit"]: row for row in rows if not row.get("is_suppressed")}
    return sorted(by_commit.values(), key=lambda row: (row["occurred_at"], row["seq"]))


def _change(row: Row) -> Change:
    files = tuple(
        FileChange(one["path"], one["kind"], one.get("added", 0), one.get("removed", 0), one.get("was", ""))
        for one in row["changes"]
    )
    return Change(
        id=row["id"],
        sha=row["git_commit"],
        at=datetime.fromisoformat(row["occurred_at"]),
        person="" if is_bot(author := next(iter(row.get("agents_involved", ())), "")) else author,
        files=files,
        is_fix=row.get("change_kind") == _FIXES or bool(row.get("closes")),
        mends=row.get("mends"),
        reverts=next(iter(row.get("undoes", ())), None),
    )


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
