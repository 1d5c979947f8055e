"""Counted rules of a store: read from the commits of a project and its runs of tests, and kept as memories that are made, brought up to date and ended."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from memgraph.extraction.components import abbreviated
from memgraph.extraction.readers.commits import issues_in
from memgraph.lifecycle.counting.changes import Files
from memgraph.lifecycle.counting.counting import Counting, check, is_in, named
from memgraph.lifecycle.counting.records import (
    FLAKY,
    HOT_SPOT,
    KNOWS,
    LATELY,
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
from memgraph.lifecycle.episodes import shared_context
from memgraph.lifecycle.reconcile import NOT_COUNTED, Known, Lesson, invalidated, reconcile
from memgraph.lifecycle.run import Plan, TimeIsUp, View, carry_out, commits_of, last_run, never
from memgraph.model.build import event_id
from memgraph.model.events.records import phase_key
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import MEMORY_TYPES, Entity
from memgraph.model.results.learning import COUNTING_SOURCE, CountingReport
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_project
from memgraph.store.query import Mask, Reader
from memgraph.text import lazy_re as re
from memgraph.text.calendar import in_words
from memgraph.text.cutting import cut
from memgraph.text.words import is_bot

PHASE = "counting"
LEAST_CONFIDENCE = {TOGETHER: 0.6, KNOWS: 0.6}
"""Confidence from which a rule that foretells something is kept as a memory; `rules_of` gives the others, too."""
MOST_OF_A_KIND = {TOGETHER: 50, KNOWS: 20, HOT_SPOT: 10, MENDED: 10, REVERTED: 5, RETURNS: 10, FLAKY: 10}
_MOST_LINKED = 10
_DIGITS = 2
"""Of a confidence that is kept, as many as `learning` prints, so that not every new commit changes all rules."""
_FIXES, _MERGE, _HISTORIES = "fix", "merge", ("git", "gitlog")
_DOCUMENTS = (".md", ".rst", ".adoc")
"""Endings of files with which no code changes."""
_SHA_CHARS = 7
"""The fewest characters of a hash that some record shortens."""
MOST_RESULTS = 2_000
"""Maximum number of results of a test that are counted, the last ones."""
_BUILD = re.compile(
    r"(?P<job>.*?)(?P<number>(?:^|[-_#/ ])\d+)?(?:-(?:[0-9a-f]{12,16}|\d{4}-\d\d-\d\dT[\d:.+Z]+))?", re.DOTALL
)
"""A build's name: its job, often a number, and what the readers of logs and reports put behind them."""
_MOST_BETWEEN = 20
"""With more commits between a failure and a pass, none of them is named."""
_MOST_TITLE_CHARS = 120


_OF_FACTS = {
    "file": "a file: without merges, it was changed by {}",
    "folder": "a folder: without merges, its files were changed by {}",
    "person": "a person: without merges, {}",
    "bot": "a bot: without merges, {}",
    "release": "a release: without merges and what an earlier one has, {}",
    "issue": "an issue or pull request: without merges, its number is in the kept text, or the merge, of {}",
    "merge": "an issue or pull request: its number is only in the kept text of {}",
    "commit": "the hash of {}",
}
_MOST_SHOWN = 5
_NUMBERED = re.compile(r"(?:#|GH-)?([1-9]\d{0,8})", re.IGNORECASE)


class Fact(NamedTuple):
    """Of what `kind` a name is (one of `_OF_FACTS`), and the rows of its commits, in order; of a file, its former names, the last one first."""

    kind: str
    name: str
    commits: Sequence[Row]
    former: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        """Return what the commits show: counts, times by their authors' dates, names with the most commits first; `files` of the last `LATELY`."""
        first, last = (choose(row["occurred_at"] for row in self.commits) for choose in (min, max))
        fixes = sum(map(_is_fix, self.commits))
        authors = [] if self.kind in {"person", "bot"} else _most(map(_author, self.commits))
        names = {
            "persons": [one for one in authors if not is_bot(one)],
            "bots": [one for one in authors if is_bot(one)],
            "releases": _most(row.get("release", "") for row in self.commits) if self.kind != "release" else [],
            "files": [] if self.kind in {"file", "folder"} else _most(_paths(self.commits[-LATELY:])),
            "former": self.former,
        }
        many, begun, ended = len(self.commits), in_words(first[:10]), in_words(last[:10])
        of_fixes = ", " + ("which" if many == 1 else f"of which {fixes:,}") + " "
        of_fixes += "is a fix or closes an issue" if fixes == 1 else "are fixes or close an issue"
        is_merge = self.commits[0].get("change_kind") == _MERGE
        counted = f"{many:,} {'merge' if is_merge else 'commit'}{'s' * (many > 1)}{of_fixes if fixes else ''}"
        kind = _MERGE if is_merge and self.kind == "issue" else self.kind
        text = f"{self.name} is {_OF_FACTS[kind].format(counted)}, "
        text += f"on {begun}" if begun == ended else f"from {begun} to {ended}"
        who = "it" if many == 1 else "they" if many <= LATELY else f"the last {LATELY}"
        for said, some in zip(("by", "by bots:", "in", f"{who} changed", "renamed"), names.values(), strict=True):
            more = f" and {len(some) - _MOST_SHOWN:,} more" if len(some) > _MOST_SHOWN else ""
            text += f"; {said} {', '.join(some[:_MOST_SHOWN])}{more}" if some else ""
        latest = [
            f"{abbreviated(row['git_commit'])} {row['occurred_at'][:10]} {cut(row['content'], _MOST_TITLE_CHARS)}"
            for row in self.commits[: -_MOST_SHOWN - 1 : -1]
        ]
        counts = {"commits": len(self.commits), "fixes": fixes, "first": first, "last": last}
        return {"kind": self.kind, "name": self.name, "text": text, **counts, **names, "latest": latest}


def facts_of(reader: Reader, project: str, name: str) -> list[Fact]:
    """Return what the commits of a project show about a name: of a file or folder, a person, a release, an issue (``#12`` or ``12``), or a commit by its hash.

    A file may have the name, have had it, or end with it: several files are several facts.
    """
    commits = dict[str, Row]()
    for row in _rows(reader, project):
        if "git_commit" in row:
            commits.setdefault(row["git_commit"], row)
    number = match[1] if (match := _NUMBERED.fullmatch(name)) else ""
    of: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for sha, row in commits.items():
        if len(name) >= _SHA_CHARS and sha.startswith(name.lower()):
            of["commit", sha].append(row)
    if naming := [row for row in commits.values() if number and _names(row, number)]:
        of["issue", f"#{number}"] = [row for row in naming if row.get("change_kind") != _MERGE] or naming
    others = [row for row in commits.values() if row.get("change_kind") != _MERGE]
    for row in others:
        release = row.get("release", "")
        if canonical_name(_author(row)) == canonical_name(name):
            of["bot" if is_bot(_author(row)) else "person", _author(row)].append(row)
        if release and release.casefold().removeprefix("v") == name.casefold().removeprefix("v"):
            of["release", release].append(row)
    return [*_files(others, name), *(Fact(kind, called, rows) for (kind, called), rows in of.items())]


def _names(row: Row, number: str) -> bool:
    """Return whether a commit, or a merge that is not kept beside it, names an issue."""
    is_entity = any(one["name"] == f"#{number}" for one in row.get("entities", ()))
    return is_entity or number in row.get("closes", ()) or int(number) in issues_in(row["content"])[0]


def _files(commits: Iterable[Row], name: str) -> list[Fact]:
    """Return the changes of the files that a name means, followed through their renames; of a folder, those of all its files."""
    files, of, moves = Files(), defaultdict[int, list[Row]](list), defaultdict[int, list[str]](list)
    for row in commits:
        if not row.get("changes"):
            continue
        change, on = _change(row), f"on {in_words(row['occurred_at'][:10])} ({abbreviated(row['git_commit'])})"
        for file, one in zip(files.follow(change), change.files, strict=True):
            of[file].append(row)
            if one.kind == "R":
                moves[file].insert(0, f"from {one.was} {on}")
    present: dict[str, list[int]] = defaultdict(list)
    for file in of:
        present[files.name(file)].append(file)
    known = {one: {name for file in some for name in files.names[file]} for one, some in present.items()}
    found = named(name, known)
    if found and all(is_in(one, name) for one in found):
        found, present[name] = [name], [file for one in found for file in present[one]]
    kind = "file" if name in known or found != [name] else "folder"
    changed = {one: {row["id"]: row for file in present[one] for row in of[file]} for one in found}
    former = {one: [said for file in present[one] for said in moves[file]] for one in found if kind == "file"}
    return [
        Fact(kind, one, sorted(rows.values(), key=itemgetter("seq")), former.get(one, ()))
        for one, rows in changed.items()
    ]


def _paths(commits: Iterable[Row]) -> Iterator[str]:
    return (one["path"] for row in commits for one in row.get("changes", ()))


def _most(names: Iterable[str]) -> list[str]:
    return [one for one, _ in Counter(filter(None, names)).most_common()]


def _author(row: Row) -> str:
    return next(iter(row.get("agents_involved", ())), "")


def records_of(reader: Reader, project: str, runs: Sequence[Row]) -> list[Record]:
    """Return the commits of a project in the order in which they were made, then the results of its tests. Costs a read of all its episodes."""
    return _history(reader, project, runs)[0]


def rules_of(records: Sequence[Record]) -> list[Counted]:
    """Return the rules that the commits and tests of a project show, the most confident of each kind first."""
    counting = Counting()
    for record in records:
        counting.learn(record)
    return counting.rules(check(records))


def projects_of(reader: Reader) -> list[str]:
    """Return the projects whose histories were read."""
    return sorted({row["project_id"] for row in reader.every_record("Source") if row["kind"] in _HISTORIES})


def runs_of(reader: Reader) -> dict[str, list[Row]]:
    """Return the runs of tests of each project in order, with the projects whose histories were read. Costs a read of all runs."""
    found = defaultdict(list, {project: list[Row]() for project in projects_of(reader)})
    for run in reader.every_record("Run"):
        found[run["project_id"]].append(run)
    return {one: sorted(found[one], key=lambda run: (run["completed_at"], run["name"])) for one in sorted(found)}


def count_records(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> CountingReport:
    """Keep the most confident rules of every project that has new commits or runs as memories: make them, bring them up to date, end them.

    Deterministic and idempotent; each project is one commit. What somebody deleted or forgot is not made again.
    """
    report = CountingReport()
    for project, runs in runs_of(store.reader).items():
        if is_time_up():
            return report.model_copy(update={"complete": False})
        if _has_new(store.reader, project, runs):
            done = carry_out(store, partial(_planned, project, runs), embedder=store.embedder).result
            counts = {name: getattr(report, name) + getattr(done, name) for name in ("created", "updated", "ended")}
            report = report.model_copy(update=counts)
    return report


def _has_new(reader: Reader, project: str, runs: Sequence[Row]) -> bool:
    with reader.frozen():
        since = last_run(reader, phase_key(PHASE)).get("seq", 0)
        seqs = reader.index.column("seq")[_episodes(reader, project)]
        return bool((seqs > since).any()) or any(run["seq"] > since for run in runs)


def _planned(project: str, runs: Sequence[Row], view: View) -> Plan[CountingReport]:
    reader = view.reader
    records, rows = _history(reader, project, runs)
    known = {one.id: one for one in (Known(row, frozenset()) for row in kept_rules(reader, project))}
    touchable = {key: one for key, one in known.items() if _is_as_counted(one.row)}
    wanted = []
    for rule in _strongest(rules_of(records)):
        lesson = _lesson(project, rule, [rows[one] for one in rule.evidence])
        of = touchable.pop(memory_id := source_id(lesson.key, 0), None)
        if of or (memory_id not in known and memory_id not in reader.rejected()):
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
        "confidence": round(rule.confidence, _DIGITS),
        "category": rule.kind,
        "pattern": rule.text,
        "entities": _entities(rule),
        "project_id": project,
        "tags": ["counted"],
        "source": COUNTING_SOURCE,
        "reason": f"counted over the {'runs' if rule.kind in OF_TESTS else 'commits'} of the history",
        "occurred_at": _iso(rule.last),
        **shared_context(evidence),
    }
    return Lesson(f"counted\x1f{project}\x1f{rule.key}", fields, rule.evidence[:_MOST_LINKED])


def _is_as_counted(row: Row) -> bool:
    """Return whether counting may change a rule: nobody gave it another text, or a confidence, which clears its pattern."""
    return bool(row["content"] == row.get("pattern")) and not row.get("is_pinned")


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


def _rows(reader: Reader, project: str) -> list[Row]:
    """Return the episodes of a project in the order of its history: authors' dates need not follow it, and what a name means does."""
    with reader.frozen():
        ids = [reader.index.ids.names[slot] for slot in np.flatnonzero(_episodes(reader, project)).tolist()]
        rows = (row for row in reader.rows(ids) if not row.get("is_suppressed"))
        return sorted(rows, key=itemgetter("seq"))


def _is_fix(row: Row) -> bool:
    return row.get("change_kind") == _FIXES or bool(row.get("closes"))


def _history(reader: Reader, project: str, runs: Sequence[Row]) -> tuple[list[Record], dict[str, Row]]:
    """Return the commits of a project in the order of its history with the results of its tests in the order of their times; and the rows of its episodes."""
    rows = _rows(reader, project)
    by_commit = {row["git_commit"]: row for row in rows if "git_commit" in row and row.get("changes")}
    changes = [_change(row) for row in by_commit.values()]
    told = {
        event: row["id"]
        for row in rows
        if row.get("outcome") == "negative"
        for event in row.get("source_event_ids", ())
    }
    by_id = {row["id"]: row for row in rows}
    return [*changes, *_outcomes(runs, told, changes, by_id)], by_id


def _outcomes(
    runs: Sequence[Row], told: Mapping[str, str], changes: Sequence[Change], rows: Mapping[str, Row]
) -> Iterator[Outcome]:
    """Yield the results of the tests that ever failed. A failure counts while a memory describes it; `told` has these ids by event."""
    ever = {one["name"] for run in runs for one in run.get("failed", ())}
    ran = []
    for run in runs:
        events = {one["name"]: event_id(run["name"], one["task"]) for one in run.get("failed", ())}
        failed = {test: told[event] for test, event in events.items() if event in told}
        ran.append((run, ever.intersection(run.get("passed", ())), failed))
    left = Counter(test for _, passed, failed in ran for test in passed | failed.keys())
    codes, near = _codes(changes), defaultdict[str, list[int]](list)
    times = list(accumulate((change.at for change in changes), max))
    for place, change in enumerate(changes):
        near[change.sha[:_SHA_CHARS]].append(place)
    last_failed: dict[tuple[str, str], tuple[int, str]] = {}
    for job, (run, passed, failed) in zip(_jobs(runs), ran, strict=True):
        sha = run.get("git_commit", "")
        begun, at = map(datetime.fromisoformat, (run["started_at"], run["completed_at"]))
        known = _place_of(sha, changes, near[sha[:_SHA_CHARS]])
        code = (sha if known is None else codes[known]) or run["id"]
        place = bisect_right(times, begun) - 1 if known is None else known
        for test in sorted(passed | failed.keys()):
            left[test] -= 1
            if left[test] >= MOST_RESULTS:
                continue
            is_ok, failure = test in passed, failed.get(test, "")
            one = Outcome(run["name"], at, test, is_ok, code, job, was_retried=is_ok and bool(failure), failure=failure)
            if not is_ok:
                last_failed[test, job] = place, code
            elif (before := last_failed.pop((test, job), None)) and before[1] != code:
                one = _mended(one, changes[before[0] + 1 : place + 1], rows)
            yield one


def _jobs(runs: Sequence[Row]) -> list[str]:
    """Return the job of each run, of which they are in order: the name without what sets its builds apart.

    A number sets builds apart, unless one returns on another commit, or two ran at the same time on one: then it tells jobs apart, such as shards.
    """
    named = [(match["job"], match["number"] or "") for run in runs if (match := _BUILD.fullmatch(run["name"]))]
    commits: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    ends: dict[tuple[str, str], tuple[str, str]] = {}
    several = set()
    for (job, number), run in zip(named, runs, strict=True):
        sha = run.get("git_commit", "")
        commits[job, number].add(sha or run["id"])
        last, of = ends.get((job, sha), ("", number))
        if len(commits[job, number]) > 1 or (sha and of != number and run["started_at"] <= last):
            several.add(job)
        ends[job, sha] = run["completed_at"], number
    return [job + number if job in several else job for job, number in named]


def _place_of(sha: str, changes: Sequence[Change], near: Sequence[int]) -> int | None:
    """Return the place of the commit with this hash, or of the only one if either hash begins with the other; None if there is none."""
    exact = [place for place in near if changes[place].sha == sha]
    same = exact or [one for one in near if changes[one].sha.startswith(sha) or sha.startswith(changes[one].sha)]
    return same[0] if len(same) == 1 else None


def _codes(changes: Iterable[Change]) -> list[str]:
    """Return of each commit, in order, the one whose code it has: what changes documentation alone has that of the one before."""
    codes, code = list[str](), ""
    for change in changes:
        if not (code and all(file.path.endswith(_DOCUMENTS) for file in change.files)):
            code = change.sha
        codes.append(code)
    return codes


def _mended(outcome: Outcome, between: Sequence[Change], rows: Mapping[str, Row]) -> Outcome:
    """Return a pass with what came between it and the failure before: the last fix of the commits, or the last of them."""
    if not 0 < len(between) <= _MOST_BETWEEN:
        return outcome
    by = [change for change in between if change.is_fix][-1:] or between[-1:]
    title = cut(rows[by[0].id]["content"], _MOST_TITLE_CHARS)
    said = f"commit {abbreviated(by[0].sha)}, “{title}”"
    others = f", one of {len(between)} commits" if len(between) > 1 else ""
    return replace(outcome, mended_by=f"{said}{others}", mending=by[0].id)


def _change(row: Row) -> Change:
    files = tuple(
        FileChange(one["path"], one["kind"], one.get("added", 0), one.get("removed", 0), one.get("was", ""))
        for one in row["changes"]
    )
    author = _author(row)
    return Change(
        id=row["id"],
        sha=row["git_commit"],
        at=datetime.fromisoformat(row["occurred_at"]),
        person="" if is_bot(author) or row.get("change_kind") == _MERGE else author,
        files=files,
        is_fix=_is_fix(row),
        mends=row.get("mends"),
        reverts=next(iter(row.get("undoes", ())), None),
    )


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
