"""Counted rules of a store: read from the commits of a project and its runs of tests, and kept as memories that are made, brought up to date and ended."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NamedTuple

import numpy as np

from memgraph.lifecycle.counting.counting import Counting, check
from memgraph.lifecycle.counting.records import (
    FLAKY,
    HOT_SPOT,
    KNOWS,
    MENDED,
    OF_TESTS,
    RETURNS,
    REVERTED,
    TOGETHER,
    Change,
    Counted,
    FileChange,
    Outcome,
    Record,
)
from memgraph.lifecycle.episodes import LEAST_BUILDS, confidence_of, shared_context
from memgraph.lifecycle.reconcile import NOT_COUNTED, Known, Lesson, invalidated, reconcile
from memgraph.lifecycle.run import Plan, TimeIsUp, View, carry_out, commits_of, last_run, never
from memgraph.model.build import event_id
from memgraph.model.events.records import phase_key
from memgraph.model.ids import source_id
from memgraph.model.memory import MEMORY_TYPES, Entity
from memgraph.model.results.learning import COUNTING_SOURCE, CountingReport
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_project
from memgraph.store.query import Mask, Reader
from memgraph.text.cutting import cut
from memgraph.text.words import is_bot

PHASE = "counting"
LEAST_CONFIDENCE = {TOGETHER: 0.6, KNOWS: 0.6}
"""Confidence from which a rule that foretells something is kept as a memory; `rules_of` gives the others, too."""
MOST_OF_A_KIND = {TOGETHER: 20, KNOWS: 20, HOT_SPOT: 10, MENDED: 10, REVERTED: 5, RETURNS: 10, FLAKY: 10}
_MOST_LINKED = 10
_FIXES, _HISTORIES = "fix", ("git", "gitlog")
_DOCUMENTS = (".md", ".rst", ".adoc")
"""Endings of files with which no code changes."""
_SHA_CHARS, _SHOWN_SHA_CHARS = 7, 10
"""Characters by which commits are compared, as some records shorten them, and by which one is named."""
_MOST_BETWEEN = 20
"""With more commits between a failure and a pass, none of them is named."""
_MOST_TITLE_CHARS = 120


class _History(NamedTuple):
    """What is counted of a project, and the rows of the memories that tell of it."""

    records: list[Record]
    rows: dict[str, Row]


def records_of(reader: Reader, project: str) -> list[Record]:
    """Return the commits of a project in the order in which they were made, then the results of its tests. Costs a read of all its episodes."""
    return _history(reader, project).records


def rules_of(reader: Reader, project: str) -> list[Counted]:
    """Return the rules that the commits and tests of a project show, the most confident of each kind first."""
    return _rules(records_of(reader, project))


def _rules(records: Sequence[Record]) -> list[Counted]:
    counting = Counting()
    for record in records:
        counting.learn(record)
    return counting.rules(check(records))


def projects_of(reader: Reader) -> list[str]:
    """Return the projects whose histories were read."""
    return sorted({row["project_id"] for row in reader.every_record("Source") if row["kind"] in _HISTORIES})


def counted_projects_of(reader: Reader) -> list[str]:
    """Return the projects whose histories were read, or whose tests were run."""
    return sorted({*projects_of(reader), *(run["project_id"] for run in reader.every_record("Run"))})


def count_records(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> CountingReport:
    """Keep the most confident rules of every project that has new commits or runs as memories: make them, bring them up to date, end them.

    Deterministic and idempotent; each project is one commit. What somebody deleted or forgot is not made again.
    """
    report = CountingReport()
    for project in counted_projects_of(store.reader):
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
        is_new = bool((reader.index.column("seq")[mask] > since).any())
        return is_new or any(run["seq"] > since for run in _runs(reader, project))


def _planned(project: str, view: View) -> Plan[CountingReport]:
    reader = view.reader
    records, rows = _history(reader, project)
    known = {one.id: one for one in (Known(row, frozenset()) for row in kept_rules(reader, project))}
    touchable = {key: one for key, one in known.items() if _is_as_counted(one.row)}
    wanted = []
    for rule in _strongest(_rules(records)):
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
        "reason": f"counted over {rule.occasions:,} {'runs' if rule.kind in OF_TESTS else 'commits of the history'}",
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
    about = Entity(name=rule.subject[:400], kind="symbol" if rule.kind in OF_TESTS else "file", about=True)
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


def _history(reader: Reader, project: str) -> _History:
    """Return the commits of a project in the order of their times, and the results of its tests in the order of theirs."""
    with reader.frozen():
        ids = [reader.index.ids.names[slot] for slot in np.flatnonzero(_episodes(reader, project)).tolist()]
        rows = [row for row in reader.rows(ids) if not row.get("is_suppressed")]
        runs = _runs(reader, project)
    by_commit = {row["git_commit"]: row for row in rows if "git_commit" in row and row.get("changes")}
    commits = sorted(by_commit.values(), key=lambda row: (row["occurred_at"], row["seq"]))
    changes = [_change(row) for row in commits]
    told = {
        event: row["id"]
        for row in rows
        if row.get("outcome") == "negative"
        for event in row.get("source_event_ids", ())
    }
    by_id = {row["id"]: row for row in rows}
    return _History([*changes, *_outcomes(runs, told, changes, by_id)], by_id)


def _runs(reader: Reader, project: str) -> list[Row]:
    runs = (run for run in reader.every_record("Run") if run["project_id"] == project)
    return sorted(runs, key=lambda run: (run["completed_at"], run["name"]))


def _outcomes(
    runs: Sequence[Row], told: Mapping[str, str], changes: Sequence[Change], rows: Mapping[str, Row]
) -> Iterator[Outcome]:
    """Yield the results of the tests that ever failed. A failure counts while a memory tells of it (`told`, by its event)."""
    ever = {one["name"] for run in runs for one in run.get("failed", ())}
    codes, times = _codes(changes), [change.at for change in changes]
    place_of = {change.sha[:_SHA_CHARS]: place for place, change in enumerate(changes)}
    last_failed: dict[str, tuple[int, str]] = {}
    for run in runs:
        sha, passed = run.get("git_commit", "")[:_SHA_CHARS], ever.intersection(run.get("passed", ()))
        code = codes.get(sha, sha) or run["id"]
        place = place_of.get(sha, bisect_right(times, datetime.fromisoformat(run["started_at"])) - 1)
        events = {one["name"]: event_id(run["name"], one["task"]) for one in run.get("failed", ())}
        failed = {test: told[event] for test, event in events.items() if event in told}
        for test in sorted(passed | failed.keys()):
            one = Outcome(run["name"], datetime.fromisoformat(run["completed_at"]), test, test in passed, code)
            if test in failed:
                one = replace(one, failure=failed[test], was_retried=one.ok)
            if not one.ok:
                last_failed[test] = place, code
            elif (before := last_failed.pop(test, None)) and before[1] != code:
                one = _mended(one, changes[before[0] + 1 : place + 1], rows)
            yield one


def _codes(changes: Iterable[Change]) -> dict[str, str]:
    """Return for each commit, in order, the one whose code it has: what changes documentation alone has that of the one before."""
    codes, code = dict[str, str](), ""
    for change in changes:
        sha = change.sha[:_SHA_CHARS]
        if not (code and all(file.path.endswith(_DOCUMENTS) for file in change.files)):
            code = sha
        codes[sha] = code
    return codes


def _mended(outcome: Outcome, between: Sequence[Change], rows: Mapping[str, Row]) -> Outcome:
    """Return a pass with what came between it and the failure before: the last fix of the commits, or the last of them."""
    if not 0 < len(between) <= _MOST_BETWEEN:
        return outcome
    by = [change for change in between if change.is_fix][-1:] or between[-1:]
    title = cut(rows[by[0].id]["content"], _MOST_TITLE_CHARS)
    said = f"commit {by[0].sha[:_SHOWN_SHA_CHARS]}, “{title}”"
    others = f", one of {len(between)} commits" if len(between) > 1 else ""
    return replace(outcome, mended_by=f"{said}{others}", mending=by[0].id)


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
