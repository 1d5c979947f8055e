"""One build log under consolidation: its candidates, the records of what else happened, and what it does to earlier memories.

What went wrong is *mended* by a later success of the same task, or in a session of the same error: such a success becomes a memory and
supersedes the failures, so that recall gives it in their place. What fails again is a new failure. A commit may *undo* earlier ones: the
memory of a reverted commit, and one of code whose files were removed, is invalid from that moment; it is kept, and shown with the reason.
A revert that became a memory supersedes what it undid, and a fix is linked to the commit that it corrects. A memory whose file was
renamed follows its file, so that a later removal finds it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from memgraph.extraction.components import goes_along, is_packaging
from memgraph.extraction.error_text import failure_fingerprint
from memgraph.extraction.readers.source import end
from memgraph.extraction.rules.extractor import command_of, failed_with, recovery_of, task_name
from memgraph.extraction.rules.findings import MAX_FILES, placed, quoted_task
from memgraph.extraction.rules.sessions import explanations
from memgraph.index.columns import OUTCOMES, TIERS, TRUST
from memgraph.index.index import entity_name
from memgraph.lifecycle.dedup.near_duplicates import of_scope
from memgraph.lifecycle.episodes import strictness
from memgraph.lifecycle.reconcile import linked_to
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.build import FIRST_RUN, BuildEventLog, BuildTask, Candidate, ExtractionResult, event_id
from memgraph.model.events.memories import MemoryRevised, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import BuildConsolidated, FailedTest
from memgraph.model.ids import canonical_name, natural_id, source_id
from memgraph.model.memory import (
    RECORD_SOURCE,
    RECORD_SOURCES,
    RUN_SOURCE,
    SAID_SOURCE,
    AgentMemory,
    Entity,
    EpisodicMemory,
    FileChange,
    id_of,
)
from memgraph.model.results.learning import ConsolidationResult
from memgraph.ports import Row, is_release
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader
from memgraph.text.attempts import AT_WORK, BEFORE, CONCLUDED, SAID
from memgraph.text.cutting import split_text, whole_sentences
from memgraph.text.sentences import ended


@dataclass(slots=True, eq=False)
class BuildRun:
    """A log, the row of an earlier consolidation, the candidates found in it, and what became of them.

    `consumed` are the keys of the decided candidates, those of earlier consolidations included; `left_out` those of the candidates that
    were less informative than the best; `spent_s` includes its share of the embedding.
    """

    log: BuildEventLog
    sha256: str
    known: Row | None
    secrets: int = 0
    extraction: ExtractionResult = field(default_factory=ExtractionResult)
    candidates: list[Candidate] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    recorded: int = 0
    merged: int = 0
    forgotten: int = 0
    complete: bool = True
    is_extracted: bool = False
    spent_s: float = 0.0

    @property
    def known_keys(self) -> list[str]:
        """Keys that earlier consolidations have decided."""
        return list((self.known or {}).get("consumed_keys", ()))

    @property
    def is_known(self) -> bool:
        """Whether exactly this log was consolidated completely."""
        known = self.known
        return bool(known and known.get("is_complete") and known.get("log_sha256") == self.sha256)

    @property
    def is_decided(self) -> bool:
        """Whether it is complete, or at least one of its candidates is decided."""
        return self.complete or len(self.consumed) > len(self.known_keys)

    def choose(self, extraction: ExtractionResult, most: int) -> None:
        """Select what a user stated, and the first of the other candidates up to a limit, that are not decided yet; and add the records."""
        self.extraction, self.is_extracted = extraction, True
        log, consumed, tasks = self.log, set(self.known_keys), {task.task_id: task for task in self.log.tasks}
        keyed = [
            candidate.model_copy(update={"key": candidate.key or f"#{place}"})
            for place, candidate in enumerate(extraction.candidates)
        ]
        left = [_completed(log, candidate) for candidate in keyed if candidate.key not in consumed]
        self.left_out = [one.key or "" for one in [one for one in left if not one.is_stated][most:]]
        left_out = set(self.left_out)
        chosen = [self._of_source(one, tasks) for one in left if one.key not in left_out]
        # of a commit whose candidate was decided before, the memory or the record is there, or somebody has rejected it
        decided = [candidate for candidate in keyed if candidate.key in consumed]
        made = {event: one.memory for one in [*chosen, *decided] for event in one.memory.source_event_ids}
        chosen += [_completed(log, one) for one in _records_of(log) if not _is_told(one, made)]
        # a history is stored in the order of its commits: which file a name means depends on it
        places = {task_id: place for place, task_id in enumerate(tasks)}
        self.candidates = sorted(chosen, key=lambda one: places.get(getattr(one.memory, "git_commit", None) or "", -1))

    def _of_source(self, candidate: Candidate, tasks: Mapping[str, BuildTask]) -> Candidate:
        """Fill in what is known of the commit; what rules find in a session is unconfirmed, unless the user stated it."""
        if self.log.source == "transcript":
            unproven = {} if candidate.is_stated else {"source": RUN_SOURCE, "relevance_score": _RELEVANCE}
            return with_fields(candidate, unproven)
        task = tasks.get(getattr(candidate.memory, "git_commit", None) or "")
        return with_fields(candidate, _commit_fields(task) if task else {})

    def record_beside(self, candidate: Candidate) -> list[Candidate]:
        """Return the record of what a candidate tells that was merged into another memory, unless it is kept anyhow."""
        events = set(candidate.memory.source_event_ids)
        of_it = (one for one in _records_of(self.log) if not events.isdisjoint(one.memory.source_event_ids))
        kept = {one.key for one in self.candidates}
        return [_completed(self.log, one) for one in islice(of_it, 1) if one.key not in kept]

    def cut(self, place: int) -> None:
        """Leave the candidates from this place on to the next run."""
        del self.candidates[place:]
        self.complete = False

    def event(self, now: str) -> BuildConsolidated:
        """Return the event that records what was done, and how the build's tests ended."""
        log, known = self.log, self.known or {}
        # the best candidates were chosen: the next run completes those that time did not suffice for, and no others
        left_out = [] if self.complete else self.left_out
        return BuildConsolidated(
            **{name: getattr(log, name) for name in ("project_id", "build_id", "started_at", "completed_at")},
            log_sha256=self.sha256,
            outcome=log.build_outcome,
            task_count=len(log.tasks),
            agents=sorted({task.agent_name for task in log.tasks}),
            consumed_keys=[*self.consumed, *left_out],
            complete=self.complete,
            extracted=known.get("extracted", 0) + len(self.added),
            merged=known.get("merged", 0) + self.merged,
            extractor=self.extraction.extractor,
            consolidated_at=now,
            **_tests_of(log),
        )

    def result(self, now: str, *, notice: str | None = None) -> ConsolidationResult:
        """Return the result; without a notice it reports the extractor's notice and the number left out."""
        repeated = f"{self.forgotten} left out because they repeat what was forgotten or replaced"
        said = [self.extraction.notice, repeated if self.forgotten else None]
        return ConsolidationResult(
            build_id=self.log.build_id,
            consolidated_at=now,
            memories_extracted=len(self.added) + self.merged,
            memories_deduplicated=self.merged,
            memories_forgotten=self.forgotten,
            memories_left_out=len(self.left_out) if self.is_decided else 0,
            records_kept=self.recorded,
            secrets_redacted=self.secrets,
            new_memory_ids=self.added,
            duration_ms=self.spent_s * 1000,
            complete=self.complete,
            was_known=self.is_known,
            notice=notice or "; ".join(filter(None, said)) or None,
            extraction_notice=self.extraction.notice,
        )


def _tests_of(log: BuildEventLog) -> dict[str, Any]:
    """Return how the tests of a log ended. A name that failed, passed only if it was run again: two packages may have tests of one name."""
    ran = [task for task in log.tasks if task.test]
    failed = {task.test: task.task_id for task in ran if task.outcome == "failure"}
    wrong = {task.test for task in ran if task.outcome == "failure" and not task.task_id.endswith(FIRST_RUN)}
    passed = list(dict.fromkeys(task.test for task in ran if task.outcome == "success" and task.test not in wrong))
    if len(passed) > MAX_ITEMS:
        passed.sort(key=lambda test: (test not in failed, test))
    told = [FailedTest(name=name or "", task=task) for name, task in failed.items()]
    return {"git_commit": log.git_commit, "passed": passed[:MAX_ITEMS], "failed": told[:MAX_ITEMS]}


def with_fields(candidate: Candidate, fields: Mapping[str, Any]) -> Candidate:
    """Return a candidate whose memory has these fields."""
    return candidate.model_copy(update={"memory": candidate.memory.model_copy(update=fields)})


def _completed(log: BuildEventLog, candidate: Candidate) -> Candidate:
    """Fill in the source of a memory; its id derives from it."""
    memory = candidate.memory
    fields = {
        "id": source_id(f"{log.project_id}\x1f{log.build_id}\x1f{candidate.key}", 0),
        "project_id": memory.project_id or log.project_id,
        "build_id": memory.build_id or log.build_id,
        "source_event_ids": memory.source_event_ids or [log.build_id],
        "evidence_build_ids": memory.evidence_build_ids or [log.build_id],
        "occurred_at": memory.occurred_at or getattr(memory, "event_date", None) or log.completed_at,
        "reason": memory.reason or "proposed by the extractor",
    }
    return with_fields(candidate, fields)


# --- records: what else happened ---

_RELEVANCE = 0.5
"""Relevance of a new record: it fades below that at which it is archived before any memory of its day does."""
_LEAST_AT_WORK_CHARS = 150
"""Minimum characters of a record of what an agent said between its steps, except where it explains: less announces the next step."""
_MOST_CONTEXT_CHARS = 300
"""Maximum characters of what the agent had said before: its end."""
_WHY = {
    RECORD_SOURCE: "a commit of the history",
    RUN_SOURCE: "a run failed, or its author said something of it",
    SAID_SOURCE: "it was said in a session",
}
_OF_RUNS = frozenset(("build log", "ci log", "test report", "trial"))
"""Sources of logs whose failures are kept whole, and what went well where the one who did it says something of it."""


def _records_of(log: BuildEventLog) -> Iterator[Candidate]:
    """Yield what a log says happened: commits, failed tests and commands of a build, and what user and agent said in a session.

    A commit is its whole message without trailers and markup; a failure is what failed, with its output; a success is its lesson, reasons
    and command, if the log states any; a user's turn is what was said, with the end of what the agent had asked; an agent's is the message
    with which it concluded. Each has up to `MAX_CONTENT_CHARS`, cut at a sentence, and what was said is kept whole as it was read, in parts. A merge
    that only repeats the message of what it brings in makes no record.
    """
    before, concluded = "", {turn.reply for turn in log.user_interventions}
    explained = explanations(log.tasks) if log.source == "transcript" else ()
    for task in log.tasks:
        said = task.task_id, task.occurred_at, task.agent_name
        own: dict[str, Any] = {"outcome": "negative" if task.outcome == "failure" else "positive"}
        if log.source == "git" and not task.repeats:
            own |= {"git_commit": task.task_id, **_commit_fields(task)}
            yield _record(log, RECORD_SOURCE, *said, task.text or task.description, **own)
        elif log.source in _OF_RUNS and (text := _of_run(log, task)):
            own |= {"tried": task_name(task), "files_involved": task.files_changed[:MAX_FILES], **failed_with(task)}
            yield _record(log, RUN_SOURCE, *said, text, **own)
        elif log.source == "transcript":
            is_new = task.reasoning != before and task.reasoning not in concluded
            if is_new and (len(task.reasoning) >= _LEAST_AT_WORK_CHARS or task.task_id in explained):
                yield from _told(log, *said, AT_WORK, task.reasoning)
            before = task.reasoning
            if task.lesson:
                yield from _told(log, *said, CONCLUDED, task.lesson)
    replies: Counter[str] = Counter()
    agent = next((task.agent_name for task in log.tasks), None)
    for event, turn in placed(log.user_interventions if log.source == "transcript" else ()):
        asked = end(turn.context, _MOST_CONTEXT_CHARS)
        yield from _told(log, event, turn.timestamp, None, SAID, ended(turn.action), asked)
        if turn.reply:
            when = turn.replied_at or turn.timestamp
            number = f"#{replies[when]}" if replies[when] else ""
            replies[when] += 1
            yield from _told(log, f"agent@{when}{number}", when, agent, CONCLUDED, turn.reply)


def _told(
    log: BuildEventLog, event: str, when: str | None, by: str | None, lead: str, text: str, asked: str = ""
) -> Iterator[Candidate]:
    """Yield what somebody said as one record, or as several if it is long; the first has what was asked."""
    before, room = f"{BEFORE}{asked}" if asked else "", MAX_CONTENT_CHARS - len(lead)
    first, *others = split_text(" ".join(text.split()), room - len(before)) or [""]
    parts = [f"{first}{before}", *split_text(" ".join(others), room)]
    for number, part in enumerate(parts):
        yield _record(log, SAID_SOURCE, event, when, by, f"{lead}{part}", number=number)


def _of_run(log: BuildEventLog, task: BuildTask) -> str:
    """Return what a task of a build or trial says of itself; empty if it went well, and nobody says why or how."""
    told = [task.lesson, task.reasoning]
    if task.outcome == "failure":
        told = [task.lesson, task.output or task.command]
    elif task.outcome != "success" or log.trust_class == "tool" or (log.source == "trial" and task.command):
        return ""
    elif task.command:
        told.append(f"`{task.command}`")
    said = " ".join(ended(one.strip()) for one in told if one.strip())
    return f"{ended(task.description)} {said}" if said or task.outcome == "failure" else ""


def _record(
    log: BuildEventLog,
    source: str,
    event: str,
    when: str | None,
    by: str | None,
    text: str,
    *,
    number: int = 0,
    **own: Any,
) -> Candidate:
    memory = EpisodicMemory(
        content=whole_sentences(" ".join(text.split()), MAX_CONTENT_CHARS),
        occurred_at=when,
        agents_involved=[by] if by else [],
        source_event_ids=[event_id(log.build_id, event)],
        source=source,
        reason=_WHY[source],
        session_id=log.session_id,
        trust_class=log.trust_class,
        relevance_score=_RELEVANCE,
        **own,
    )
    return Candidate(key=f"{event[:380]}:{source}{f'-{number + 1}' if number else ''}", memory=memory)


def _is_told(record: Candidate, made: Mapping[str, AgentMemory]) -> bool:
    """Return whether a memory of the same event says what a record says; of what a user said, it may be one sentence."""
    told = next((made[event] for event in record.memory.source_event_ids if event in made), None)
    if told is None or record.memory.source != SAID_SOURCE:
        return told is not None
    said, _, _ = record.memory.content.removeprefix(SAID).partition(BEFORE)
    return canonical_name(said).strip(" .") in canonical_name(told.content)


def _commit_fields(task: BuildTask) -> dict[str, Any]:
    """Return what is known of a commit, as fields of a memory (`CommitFields`). What moved, came or went is not left out."""
    changes = sorted(task.changes, key=lambda one: one.kind == "M")[:MAX_ITEMS]
    return {
        "change_kind": task.kind,
        "changes": [
            FileChange(path=one.path, kind=one.kind, added=one.added, removed=one.removed, was=one.was)
            for one in changes
        ],
        "undoes": (task.undoes or [*filter(None, [task.reverts])])[:MAX_ITEMS],
        "mends": task.mends,
        "closes": [str(number) for number in task.closes[:MAX_ITEMS]],
        "release": task.release,
    }


# --- what mends earlier failures ---

_NAMED_ALIKE = frozenset({"build log", "ci log", "test report"})
"""Sources whose tasks are named alike in each build."""
_MOST_FAILURES = 2_000


class Failures:
    """The failures that nothing has mended: those of a store, and those of builds that are read in order."""

    def __init__(self, store: AgentMemoryStore) -> None:
        self._store = store
        self._known: dict[str | None, list[EpisodicMemory]] = {}
        self._new: dict[str, EpisodicMemory] = {}
        self._ends: dict[tuple[str | None, str], str] = {}
        self._commits: dict[tuple[str | None, str], str] = {}
        self._mended: set[str] = set()

    def with_recoveries(self, log: BuildEventLog, found: Sequence[Candidate]) -> list[Candidate]:
        """Return what was found in a build, with the recoveries from failures of earlier ones in place of what else their tasks say.

        What passes on the commit on which it failed, and states nothing that was done, recovered from nothing.
        """
        self._commits[log.project_id, log.build_id] = log.git_commit or ""
        if log.source not in _NAMED_ALIKE:
            return list(found)
        told = {_what_failed(one.memory) for one in found}
        failed: defaultdict[str, list[EpisodicMemory]] = defaultdict(list)
        latest = reversed(self._before(log))
        for one in sorted(latest, key=lambda one: not one.errors_encountered):
            if (its := _what_failed(one)) and its not in told:
                failed[its].append(one)
                if command := command_of(one):
                    failed[f"$ {command}"].append(one)
        made: dict[str | None, Candidate] = {}
        for task in log.tasks if failed else ():
            names = [task_name(task), *([quoted_task(f"Test {task.test}")] if task.test else [])]  # as reports have it
            keys = dict.fromkeys([*map(canonical_name, names), f"$ {' '.join(task.command.split())}"])
            for one in (one for key in keys for one in failed.get(key, ())):
                is_done = task.outcome == "success" and (
                    task.lesson or task.files_changed or not self._is_same_code(log, one)
                )
                if is_done and (what := _what_failed(one)) not in made:
                    recovery = recovery_of(log, task, one)
                    both = (recovery.memory, one)  # it quotes the error: it is as private, and no more trusted
                    made[what] = with_fields(recovery, strictness([vars(memory) for memory in both]))
        events = {event for one in made.values() for event in one.memory.source_event_ids}
        others = (
            one for one in found if one.memory.type != "episodic" or events.isdisjoint(one.memory.source_event_ids)
        )
        return [*made.values(), *others]

    def _is_same_code(self, log: BuildEventLog, failure: EpisodicMemory) -> bool:
        """Return whether a build ran on the commit on which a failure was met last."""
        place = log.project_id, next(reversed(failure.evidence_build_ids), failure.build_id or "")
        if log.git_commit and place not in self._commits:
            row = self._store.reader.record("Run", natural_id("run", place[1], project_id=log.project_id)) or {}
            self._commits[place] = row.get("git_commit", "")
        return log.git_commit is not None and self._commits[place] == log.git_commit

    def note(self, log: BuildEventLog, memory: AgentMemory) -> list[EpisodicMemory]:
        """Note a memory of a build, and return the failures that it mends: it must be as visible, as trusted, and no record."""
        self._ends[log.project_id, log.build_id] = log.completed_at
        what = _what_failed(memory)
        if what is None or not isinstance(memory, EpisodicMemory):
            return []
        if memory.outcome == "negative":
            self._new[id_of(memory)] = memory
        if memory.outcome != "positive" or memory.source in RECORD_SOURCES:
            return []
        mended = [
            one
            for one in self._before(log)
            if _what_failed(one) == what
            and TIERS.index(memory.privacy_tier) <= TIERS.index(one.privacy_tier)
            and TRUST.index(memory.trust_class) <= TRUST.index(one.trust_class)
            and one.task_id is None
            and not one.is_pinned
        ]
        self._mended |= set(map(id_of, mended))
        return mended

    def _before(self, log: BuildEventLog) -> list[EpisodicMemory]:
        """Return the failures of a project that were met before the end of a build, the last ones last."""
        every = {id_of(one): one for one in self._stored(log.project_id)} | self._new
        left = (one for key, one in every.items() if key not in self._mended and one.project_id == log.project_id)
        return [one for one in left if self._last(one) <= log.completed_at]

    def _stored(self, project: str) -> list[EpisodicMemory]:
        if project not in self._known:
            reader, index = self._store.reader, self._store.reader.index
            mask = reader.listed(type="episodic") | (index.column("is_live") & index.column("is_record"))
            mask &= of_scope(self._store, "project", project) & ~reader.superseded()
            mask &= ~index.column("is_archived") & ~index.column("is_suppressed")
            slots = np.flatnonzero(mask & (index.column("outcome") == OUTCOMES.index("negative")))
            slots = slots[np.argsort(index.column("seq")[slots], kind="stable")][-_MOST_FAILURES:]
            read = reader.read([index.ids.names[slot] for slot in slots.tolist()])
            self._known[project] = [one for one in read if isinstance(one, EpisodicMemory) and _what_failed(one)]
        return self._known[project]

    def _last(self, failure: EpisodicMemory) -> str:
        """Return when a failure was met last."""
        project, times = failure.project_id, []
        for build in failure.evidence_build_ids:
            if (project, build) not in self._ends:
                row = self._store.reader.record("Build", natural_id("build", build, project_id=project)) or {}
                self._ends[project, build] = row.get("completed_at", "")
            times.append(self._ends[project, build])
        return max(times, default=failure.occurred_at or "")


def _what_failed(memory: AgentMemory) -> str | None:
    """Return what a failure and its recovery have in common: the task, or the error and the program; None for other memories."""
    tried = getattr(memory, "tried", None)
    if not tried:
        return None
    if tried.startswith("“"):
        return canonical_name(tried).replace(" failed”", "”")
    errors = memory.errors_encountered if isinstance(memory, EpisodicMemory) else []
    return f"{failure_fingerprint(errors[0].message)} {tried.strip('`').split(' ', 1)[0]}" if errors else None


# --- what commits do to earlier memories ---

_COMMIT_CHARS = 12
_MOST_PATHS = 2_000
_REVERTED = "its change was reverted by commit {}"
_REMOVED = "the code it concerns was removed by commit {}"
_UNDONE = (_REVERTED.format(""), _REMOVED.format(""))


@dataclass(slots=True)
class _Subject:
    """A memory of a commit, stored or about to be stored (then with its place), and what changes: each field with the build that changes it."""

    memory_id: str
    fields: Mapping[str, Any]
    place: tuple[BuildRun, int] | None = None
    changed: dict[str, tuple[Any, BuildRun | None]] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        return self.changed[name][0] if name in self.changed else self.fields.get(name)

    def change(self, by: BuildRun | None, **fields: Any) -> None:
        self.changed |= {name: (value, by) for name, value in fields.items()}


class Undone:
    """Applies to earlier memories what some builds and releases do, in order.

    The candidates of the builds are changed before they are stored. `known` are a project's first releases of commits and persons of names.
    """

    def __init__(
        self, reader: Reader, builds: Sequence[BuildRun], known: tuple[str, Mapping[str, str], Mapping[str, str]]
    ) -> None:
        self._reader, (project, releases, people) = reader, known
        self._subjects: dict[str, _Subject] = {}
        self._links: dict[tuple[str, str, str, str], BuildRun] = {}
        self._new: list[_Subject] = []
        for build in builds:
            if build.log.source == "git":
                made: dict[str, list[_Subject]] = defaultdict(list)
                for place, memory in enumerate(one.memory for one in build.candidates):
                    new = _Subject(id_of(memory), vars(memory), (build, place))
                    made[getattr(memory, "git_commit", None) or ""].append(new)
                for task in build.log.tasks:
                    self._apply(build, task, made[task.task_id])
                    self._new += made[task.task_id]
        for subject in self._new:
            if subject.place and subject.changed:
                build, place = subject.place
                changed = {name: value for name, (value, _) in subject.changed.items()}
                build.candidates[place] = with_fields(build.candidates[place], changed)
        for sha, release in releases.items():
            if self._mentioning("commit", sha[:_COMMIT_CHARS], project) - self._mentioning("commit", release, project):
                for subject in self._of_commit(sha, project):
                    entities = subject.get("entities") or ()
                    if not any(is_release(one["kind"], one["name"]) for one in entities):
                        released = {"name": release, "kind": "commit", "about": False}
                        subject.change(None, release=release, entities=[*entities, released])
        for name, person in people.items():
            for subject in self._of_author(name, project):
                called = (person if one == name else one for one in subject.get("agents_involved"))
                subject.change(None, agents_involved=list(dict.fromkeys(called)))

    def events(self, known: set[str], now: str) -> Iterator[tuple[BuildRun | None, Payload]]:
        """Yield the changes of stored memories, and the links between those and what the same commit stores, with the build that makes them.

        None: a release, or a person.
        """
        stored = [one for one in self._subjects.values() if one.place is None]
        for subject in stored:
            for build in dict.fromkeys(by for _, by in subject.changed.values()):
                own = {name: value for name, (value, by) in subject.changed.items() if by is build}
                changed = {name: value for name, value in own.items() if value is not None}
                patch = RecordPatch.parse({**changed, "updated_at": now})
                cleared = [name for name in own if name not in changed]
                yield build, MemoryRevised(id=subject.memory_id, changed=patch, cleared=cleared)
        there = known.union(one.memory_id for one in stored)
        for (source, relation, target, reason), build in self._links.items():
            if {source, target} <= there:
                yield build, linked_to(source, relation, target, reason, now)

    def _apply(self, build: BuildRun, task: BuildTask, own: Sequence[_Subject]) -> None:
        commit, project = task.task_id[:_COMMIT_CHARS], build.log.project_id
        is_removal = not task.reverts and {one.kind for one in task.changes} == {"D"}
        why = (_REMOVED if is_removal else _REVERTED).format(commit)
        for sha in dict.fromkeys(filter(None, (task.reverts, *task.undoes, task.takes_back))):
            for subject in self._of_commit(sha, project):
                _end(subject, build, task, why)
                self._link(build, own, "SUPERSEDES", subject, "the change was reverted")
        back = filter(None, (task.restores, *task.restores_too))
        for subject in (one for sha in back for one in self._of_commit(sha, project)):
            if str(subject.get("invalidation_reason") or "").startswith(_UNDONE):
                subject.change(build, invalid_at=None, invalidation_reason=None)
        for subject in self._of_commit(task.mends, project) if task.mends else ():
            self._link(build, own, "RELATED_TO", subject, "corrects that change")
        for subject in self._of_commit(task.repeats, project) if task.repeats else ():
            given = subject.get("entities") or ()
            known = {dict(one)["name"] for one in given}
            issues = [Entity(name=f"#{number}", kind="issue") for number in task.mentions if f"#{number}" not in known]
            if issues:  # of a merge that is not kept
                subject.change(build, entities=[*given, *(one if subject.place else dict(one) for one in issues)])
        gone = frozenset(task.files_removed[:_MOST_PATHS])
        for path in sorted(gone):
            for subject in self._of_file(path, project):
                if subject.get("git_commit") != task.task_id and _is_gone(subject, gone):
                    _end(subject, build, task, _REMOVED.format(commit))
        for old, new in list(task.files_renamed.items())[:_MOST_PATHS]:
            for subject in self._of_file(old, project):
                _move(subject, build, old, new)

    def _link(self, build: BuildRun, own: Sequence[_Subject], relation: str, subject: _Subject, said: str) -> None:
        self._links |= {(one.memory_id, relation, subject.memory_id, said): build for one in own}

    def _of_commit(self, sha: str, project: str) -> list[_Subject]:
        return self._found("commit", sha[:_COMMIT_CHARS], project, lambda one: one.get("git_commit") == sha)

    def _of_author(self, name: str, project: str) -> list[_Subject]:
        return self._found("author", name, project, lambda one: name in (one.get("agents_involved") or ()))

    def _of_file(self, path: str, project: str) -> list[_Subject]:
        return self._found("file", path[:400], project, lambda one: path in (one.get("files_involved") or ()))

    def _found(self, kind: str, name: str, project: str, is_meant: Callable[[_Subject], bool]) -> list[_Subject]:
        """Return the memories of commits of this project that the index knows by an entity or author, and the new ones."""
        names = self._reader.index.ids.names
        ids = [names[slot] for slot in self._mentioning(kind, name, project)]
        for row in self._reader.rows([one for one in ids if one not in self._subjects]):
            self._subjects[row["id"]] = _Subject(row["id"], row)
        found = [self._subjects[one] for one in ids if one in self._subjects]
        moved = [one for one in self._subjects.values() if one.changed.get("files_involved")]
        # of a sitting that has grown, the first commits are stored, and read once more
        every = {one.memory_id: one for one in (*self._new, *moved, *found)}.values()
        own = (one for one in every if one.get("source") in ("git", RECORD_SOURCE) and one.get("project_id") == project)
        return [one for one in own if is_meant(one)]

    def _mentioning(self, kind: str, name: str, project: str) -> set[int]:
        """Return the index's slots of the memories that mention an entity, or are of an author."""
        index, is_entity = self._reader.index, kind != "author"
        names, slots = (index.entities, index.mentions) if is_entity else (index.agent_names, index.agents)
        code = names.find(entity_name(kind, name, project) if is_entity else name)
        return set(slots.get(code)[0].tolist()) if code >= 0 else set()


def _end(subject: _Subject, build: BuildRun, task: BuildTask, reason: str) -> None:
    """End what a memory says, unless other sources say it too."""
    if not (subject.get("invalid_at") or subject.get("is_pinned") or len(subject.get("source_event_ids") or ()) > 1):
        subject.change(build, invalid_at=task.occurred_at, invalidation_reason=reason)


def _move(subject: _Subject, build: BuildRun, old: str, new: str) -> None:
    """Let a memory follow its file. A new memory's entities are found when it is stored."""
    subject.change(build, files_involved=[new if file == old else file for file in subject.get("files_involved")])
    if subject.get("title") == old:
        subject.change(build, title=new)
    if old in (subject.get("location") or ""):
        subject.change(build, location=subject.get("location").replace(old, new)[:400])
    if subject.place is None:
        entities = [
            {**entity, "name": new[:400]} if entity["kind"] == "file" and entity["name"] == old[:400] else entity
            for entity in subject.get("entities") or []
        ]
        subject.change(build, entities=entities)


def _is_gone(subject: _Subject, gone: frozenset[str]) -> bool:
    """Return whether what a change brought is gone: all its files but tests and documentation. What took more lines than it brought stands."""
    files: Sequence[str] = subject.get("files_involved") or ()
    own = [file for file in files if not goes_along(file)] or files
    if all(map(is_packaging, own)) or not gone.issuperset(own):
        return False
    changes = map(dict, subject.get("changes") or ())
    gained: int = sum(one.get("added", 0) - one.get("removed", 0) for one in changes if not goes_along(one["path"]))
    return gained >= 0
