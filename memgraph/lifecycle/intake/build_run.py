"""Consolidation of one build log: its candidates, the records of what else happened, and the joint embedding of several logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memgraph.extraction.readers.source import end
from memgraph.extraction.rules.extractor import failed_with, task_name
from memgraph.extraction.rules.findings import MAX_FILES, placed
from memgraph.lifecycle.run.time_limit import PacedEmbedding, TimeLimit, Timer
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.build import BuildEventLog, BuildTask, Candidate, ExtractionResult
from memgraph.model.events.records import BuildConsolidated
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import (
    RECORD_SOURCE,
    RECORD_SOURCES,
    RUN_SOURCE,
    SAID_SOURCE,
    AgentMemory,
    EpisodicMemory,
    FileChange,
)
from memgraph.model.results.learning import ConsolidationResult
from memgraph.ports import Embedder, Row
from memgraph.text.cutting import split_text, whole_sentences
from memgraph.text.sentences import ended


@dataclass(slots=True, eq=False)
class BuildRun:
    """A log, the candidates found in it, and their state.

    Attributes
    ----------
    known : Row or None
        Row of an earlier consolidation.
    consumed : list of str
        Keys of the decided candidates, those of earlier consolidations included.
    left_out : list of str
        Keys of the candidates that were less informative than the best.
    spent_s : float
        Seconds taken, with its share of the embedding.
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
        """Select what a user stated, and the first of the other candidates up to a limit, that are not decided yet."""
        self.extraction, self.is_extracted = extraction, True
        consumed = set(self.known_keys)
        keyed = [
            candidate.model_copy(update={"key": candidate.key or f"#{place}"})
            for place, candidate in enumerate(extraction.candidates)
        ]
        left = [_completed(self.log, candidate) for candidate in keyed if candidate.key not in consumed]
        found = [candidate for candidate in left if not candidate.is_stated]
        dropped = {candidate.key for candidate in found[most:]}
        tasks = {task.task_id: task for task in self.log.tasks}
        chosen = [
            _of_commit(candidate, tasks) if self.log.source != "transcript" else _unproven(candidate)
            for candidate in left
            if candidate.key not in dropped
        ]
        # of a commit whose candidate was decided before, the memory or the record is there, or somebody has rejected it
        decided = [candidate for candidate in keyed if candidate.key in consumed]
        made = {event: one.memory for one in [*chosen, *decided] for event in one.memory.source_event_ids}
        records = (one for one in records_of(self.log) if not _is_told(one, made))
        every = [*chosen, *(_completed(self.log, one) for one in records)]
        # a history is stored in the order of its commits: which file a name means depends on it
        places = {task.task_id: place for place, task in enumerate(self.log.tasks)}
        self.candidates = sorted(every, key=lambda one: places.get(getattr(one.memory, "git_commit", None) or "", -1))
        self.left_out = [candidate.key or "" for candidate in found[most:]]

    def record_beside(self, candidate: Candidate) -> Candidate | None:
        """Return the record of what a candidate tells that was merged into another memory."""
        events = set(candidate.memory.source_event_ids)
        record = next((one for one in records_of(self.log) if not events.isdisjoint(one.memory.source_event_ids)), None)
        if record and any(one.key == record.key for one in self.candidates):
            return None  # it is kept anyhow
        return _completed(self.log, record) if record else None

    def cut(self, place: int) -> None:
        """Leave the candidates from this place on to the next run."""
        del self.candidates[place:]
        self.complete = False

    def event(self, now: str) -> BuildConsolidated:
        """Return the event that records what was done."""
        log, known = self.log, self.known or {}
        # the best candidates were chosen: the next run completes those that time did not suffice for, and no others
        left_out = [] if self.complete else self.left_out
        return BuildConsolidated(
            project_id=log.project_id,
            build_id=log.build_id,
            log_sha256=self.sha256,
            outcome=log.build_outcome,
            started_at=log.started_at,
            completed_at=log.completed_at,
            task_count=len(log.tasks),
            agents=sorted({task.agent_name for task in log.tasks}),
            consumed_keys=[*self.consumed, *left_out],
            complete=self.complete,
            extracted=known.get("extracted", 0) + len(self.added),
            merged=known.get("merged", 0) + self.merged,
            extractor=self.extraction.extractor,
            consolidated_at=now,
        )

    def result(self, now: str, *, notice: str | None = None) -> ConsolidationResult:
        """Return the result; without a notice it reports the extractor's notice and the number left out."""
        said = (
            f"{self.forgotten} left out because they repeat what was forgotten or replaced" if self.forgotten else None
        )
        own_notice = "; ".join(filter(None, [self.extraction.notice, said])) or None
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
            notice=notice or own_notice,
            extraction_notice=self.extraction.notice,
        )


def embed_candidates(
    builds: Sequence[BuildRun], embedder: Embedder, paced: PacedEmbedding, limit: TimeLimit, timer: Timer
) -> None:
    """Embed the candidates of all builds in order, and cut off those for which there is no time."""
    lacking = [
        (number, place)
        for number, build in enumerate(builds)
        for place, candidate in enumerate(build.candidates)
        if candidate.memory.embedding is None
        and candidate.memory.source not in RECORD_SOURCES  # records get theirs later
    ]
    began = timer()
    texts = [builds[number].candidates[place].memory.content for number, place in lacking]
    vectors = paced.embed(embedder, texts, limit)
    text_s = (timer() - began) / max(1, len(vectors))
    for (number, place), vector in zip(lacking, vectors, strict=False):
        build = builds[number]
        candidate = build.candidates[place]
        memory = candidate.memory.model_copy(update={"embedding": vector})
        build.candidates[place] = candidate.model_copy(update={"memory": memory})
        build.spent_s += text_s
    if len(vectors) < len(lacking):
        first, place = lacking[len(vectors)]
        builds[first].cut(place)
        for later in builds[first + 1 :]:  # a duplicate is merged into what comes before it
            later.cut(0)


def _is_told(record: Candidate, made: Mapping[str, AgentMemory]) -> bool:
    """Return whether a memory of the same event says what a record says; of what a user said, it may be one sentence."""
    told = next((made[event] for event in record.memory.source_event_ids if event in made), None)
    if told is None or record.memory.source != SAID_SOURCE:
        return told is not None
    said, _, _ = record.memory.content.removeprefix(_SAID).partition(_BEFORE)
    return canonical_name(said).strip(" .") in canonical_name(told.content)


def _of_commit(candidate: Candidate, tasks: Mapping[str, BuildTask]) -> Candidate:
    """Fill in what is known of the commit that a memory is made of."""
    task = tasks.get(getattr(candidate.memory, "git_commit", None) or "")
    if task is None:
        return candidate
    return candidate.model_copy(update={"memory": candidate.memory.model_copy(update=commit_fields(task))})


def _unproven(candidate: Candidate) -> Candidate:
    """Return what the rules found in a session as an unconfirmed record, unless the user stated it."""
    if candidate.is_stated:
        return candidate
    unproven = {"source": RUN_SOURCE, "relevance_score": RELEVANCE}
    return candidate.model_copy(update={"memory": candidate.memory.model_copy(update=unproven)})


def _completed(log: BuildEventLog, candidate: Candidate) -> Candidate:
    """Fill in the source of a memory; its id derives from it."""
    memory = candidate.memory
    updates = {
        "id": source_id(f"{log.project_id}\x1f{log.build_id}\x1f{candidate.key}", 0),
        "project_id": memory.project_id or log.project_id,
        "build_id": memory.build_id or log.build_id,
        "source_event_ids": memory.source_event_ids or [log.build_id],
        "evidence_build_ids": memory.evidence_build_ids or [log.build_id],
        "occurred_at": memory.occurred_at or getattr(memory, "event_date", None) or log.completed_at,
        "reason": memory.reason or "proposed by the extractor",
    }
    return candidate.model_copy(update={"memory": memory.model_copy(update=updates)})


RELEVANCE = 0.5
"""Relevance of a new record: it fades below that at which it is archived before any memory of its day does."""


_SAID, _CONCLUDED, _BEFORE = "The user said: ", "The agent concluded: ", " Before that: "
_MOST_PARTS, _MOST_CONTEXT_CHARS = 6, 300
"""Maximum number of records of what was said at once, and of characters of what the agent had said before: its end."""
_WHY = {
    RECORD_SOURCE: "a commit of the history",
    RUN_SOURCE: "a run failed, or its author said something of it",
    SAID_SOURCE: "it was said in a session",
}
_OF_RUNS = frozenset(("build log", "ci log", "test report", "trial"))
"""Sources of logs whose failures are kept whole, and what went well where the one who did it says something of it."""


def records_of(log: BuildEventLog) -> Iterator[Candidate]:
    """Yield what a log says happened: commits, failed tests and commands of a build, and what user and agent said in a session.

    A commit is its whole message without trailers and markup; a failure is what failed, with its output; a success is its lesson, reasons
    and command, if the log states any; a user's turn is what was said, with the end of what the agent had asked; an agent's is the message
    with which it concluded. Each has up to `MAX_CONTENT_CHARS`, cut at a sentence, and what was said is kept in up to six parts. A merge
    that only repeats the message of what it brings in makes no record.
    """
    for task in log.tasks:
        if log.source == "git" and not task.repeats:
            text, outcome = task.text or task.description, "negative" if task.outcome == "failure" else "positive"
            own = {"outcome": outcome, "git_commit": task.task_id, **commit_fields(task)}
            yield _record(log, task.task_id, RECORD_SOURCE, text, task.occurred_at, task.agent_name, **own)
        elif log.source in _OF_RUNS and (text := _of_run(log, task)):
            own = {"outcome": "negative" if task.outcome == "failure" else "positive", "tried": task_name(task)}
            own |= {"files_involved": task.files_changed[:MAX_FILES], **failed_with(task)}
            yield _record(log, task.task_id, RUN_SOURCE, text, task.occurred_at, task.agent_name, **own)
        elif log.source == "transcript" and task.lesson:
            yield from _told(log, task.task_id, _CONCLUDED, task.lesson, task.occurred_at, task.agent_name)
    replies: Counter[str] = Counter()
    by = next((task.agent_name for task in log.tasks), None)
    for event, said in placed(log.user_interventions if log.source == "transcript" else ()):
        context = end(said.context, _MOST_CONTEXT_CHARS)
        yield from _told(log, event, _SAID, ended(said.action), said.timestamp, asked=context)
        if said.reply:
            when = said.replied_at or said.timestamp
            number = f"#{replies[when]}" if replies[when] else ""
            replies[when] += 1
            yield from _told(log, f"agent@{when}{number}", _CONCLUDED, said.reply, when, by)


def _told(
    log: BuildEventLog, event: str, lead: str, text: str, when: str | None, by: str | None = None, *, asked: str = ""
) -> Iterator[Candidate]:
    """Yield what somebody said as one record, or as several if it is long; the first has what was asked."""
    before, room = f"{_BEFORE}{asked}" if asked else "", MAX_CONTENT_CHARS - len(lead)
    first, *others = split_text(" ".join(text.split()), room - len(before)) or [""]
    parts = [f"{first}{before}", *split_text(" ".join(others), room)]
    for number, part in enumerate(parts[:_MOST_PARTS]):
        yield _record(log, event, SAID_SOURCE, f"{lead}{part}", when, by, number=number)


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
    event: str,
    source: str,
    text: str,
    when: str | None,
    by: str | None = None,
    *,
    number: int = 0,
    **fields: Any,
) -> Candidate:
    memory = EpisodicMemory(
        content=whole_sentences(" ".join(text.split()), MAX_CONTENT_CHARS),
        occurred_at=when,
        agents_involved=[by] if by else [],
        source_event_ids=[f"{log.build_id}/{event}"[:400]],
        source=source,
        reason=_WHY[source],
        session_id=log.session_id,
        trust_class=log.trust_class,
        relevance_score=RELEVANCE,
        **fields,
    )
    return Candidate(key=f"{event[:380]}:{source}{f'-{number + 1}' if number else ''}", memory=memory)


def commit_fields(task: BuildTask) -> dict[str, Any]:
    """Return what is known of a commit, as fields of a memory (`CommitFields`)."""
    changes = [
        FileChange(path=one.path, kind=one.kind, added=one.added or 0, removed=one.removed or 0, was=one.was)
        for one in sorted(task.changes, key=lambda one: one.kind == "M")[
            :MAX_ITEMS
        ]  # what moved, came or went is not left out
    ]
    return {
        "change_kind": task.kind,
        "changes": changes,
        "undoes": (task.undoes or [*filter(None, [task.reverts])])[:MAX_ITEMS],
        "mends": task.mends,
        "closes": [str(number) for number in task.closes[:MAX_ITEMS]],
        "release": task.release,
    }
