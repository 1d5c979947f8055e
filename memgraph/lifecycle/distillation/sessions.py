"""Long sessions: noted while a source is read, and made work orders at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappush, heappushpop

from memgraph.extraction.llm.prompt import Event, informative_events, is_essential, question_in
from memgraph.extraction.readers import Reader as SourceReader
from memgraph.extraction.readers import SourceRecord
from memgraph.extraction.rules.sessions import failures, mended_text, steps_of
from memgraph.extraction.secrets import redact_any
from memgraph.fold.records import WORK_ORDER
from memgraph.lifecycle.distillation.requests import request_sessions
from memgraph.lifecycle.distillation.subjects import MAX_EXCERPT_CHARS, Subject, excerpt_of
from memgraph.model.build import BuildEventLog
from memgraph.model.results.learning import OrdersResult
from memgraph.store import AgentMemoryStore

LONG_EVENTS = 30
"""Minimum number of events of a long session."""
_EVENTS_OF_AN_INTERVENTION = 6
"""An intervention counts as so many tasks: users state in about one turn of five what holds beyond the task, and rules find half of it."""
_NO_SESSIONS = frozenset({"git", "ci log", "test report"})
"""Sources whose builds contain no conversation."""
LEAST_CHARS = MAX_EXCERPT_CHARS // 2
"""What matters and was not asked about before: less of it in a session that has an order already makes no other."""
_EVENT_FRAME_CHARS = 12
_MOST_QUESTIONS = 500
_LEAST_QUESTION_CHARS = 40
"""What the agent asked in fewer characters may stand elsewhere by chance."""


class SessionWatch:
    """Notes the longest sessions that a reader yields, at most as many as work orders may be made in a day.

    Parameters
    ----------
    store : AgentMemoryStore
    """

    def __init__(self, store: AgentMemoryStore) -> None:
        self._store = store
        self._most = store.config.distil_orders_a_day
        self._noted: list[tuple[int, str, BuildEventLog]] = []

    def over(self, reader: SourceReader) -> SourceReader:
        """Return a reader that yields the same records, and notes the long sessions among them."""
        return _Watched(reader, self)

    def note(self, log: BuildEventLog) -> None:
        """Note a log if it is a long session, and among the longest so far."""
        many = length_of(log)
        if not many or not self._most:
            return
        entry = (many, f"{log.project_id}\x1f{log.build_id}", log)
        self._noted = [one for one in self._noted if one[1] != entry[1]]  # read again because it has grown
        self._noted.sort()
        (heappush if len(self._noted) < self._most else heappushpop)(self._noted, entry)

    def request_orders(self) -> OrdersResult:
        """Make work orders for the noted sessions, within the budget of the day. How much the rules kept says nothing of what they missed."""
        asked: dict[tuple[str, str], list[str]] = {}
        for row in self._store.reader.every_record(WORK_ORDER):
            if row["kind"] == "long session":
                asked.setdefault((row["project_id"], row["build_id"]), []).append(row["excerpt"])
        subjects = [
            subject
            for _, _, log in self._noted
            for subject in subjects_of(log, asked.get((log.project_id, log.build_id), ()))
        ]
        self._noted = []
        return request_sessions(self._store, subjects)


class _Watched:
    """A reader whose long sessions are noted."""

    def __init__(self, reader: SourceReader, watch: SessionWatch) -> None:
        self._reader = reader
        self._watch = watch
        self.source_id, self.kind = reader.source_id, reader.kind
        self.locator, self.project_id = reader.locator, reader.project_id

    def count(self) -> int | None:
        return self._reader.count()

    def records(self, cursor: str | None = None) -> Iterator[SourceRecord]:
        for record in self._reader.records(cursor):
            if record.build is not None:
                self._watch.note(record.build)
            yield record


def length_of(log: BuildEventLog) -> int:
    """Return the length of a session in events; 0 if it is not a long one, or no session."""
    many = len(log.tasks) + _EVENTS_OF_AN_INTERVENTION * len(log.user_interventions)
    return 0 if log.source in _NO_SESSIONS or many < LONG_EVENTS else many


def subjects_of(log: BuildEventLog, asked: Sequence[str] = ()) -> list[Subject]:
    """Return what to ask about a session: a subject for each part of what the user said, what the agent concluded and what failed.

    Nothing about one that is not long. One in which little matters is filled up with its other events. The value of a part is by its share of what matters.

    Parameters
    ----------
    asked : sequence of str
        Excerpts of its orders: what stands there is left out.
    """
    if not (many := length_of(log)):
        return []
    log = _told_once(redact_any(log).value)  # secrets before anything is cut: a truncated one would not be recognised
    essential = list(filter(is_essential, informative_events(log, 1, lambda _: 0)))
    if asked:
        left = [event for event in essential if not _stands_in(event, asked)]
        parts = [part for part in _parts(left) if sum(map(_cost, part)) >= LEAST_CHARS]
    else:
        parts = _parts(informative_events(log, max(sum(map(_cost, essential)), MAX_EXCERPT_CHARS), _cost))
    shares = [sum(map(is_essential, part)) + 1 for part in parts]
    return [
        Subject(
            kind="long session",
            key=f"{log.build_id}\x1f{part[0].text}" if asked or number else log.build_id,
            excerpt=excerpt_of([event.text for event in part]),
            value=round(0.7 * (1 - 1 / (1 + many / 60)) * share / max(shares), 6),
            source_at=log.completed_at,
            trust_class=log.trust_class,
            project_id=log.project_id,
            build_id=log.build_id,
            source_event_ids=[log.build_id],
        )
        for number, (part, share) in enumerate(zip(parts, shares, strict=True))
    ]


def _stands_in(event: Event, excerpts: Sequence[str]) -> bool:
    shown = excerpt_of([event.text]).partition("\n")[2]
    return any(shown in excerpt for excerpt in excerpts)


def _cost(event: Event) -> int:
    return len(event.text) + _EVENT_FRAME_CHARS


def _told_once(log: BuildEventLog) -> BuildEventLog:
    """Return a log without repetitions, and with what ended a failure: an agent's text stands before the user's first answer if there is one, else with its first task."""
    asked: set[str] = set()
    asked_of = (question_in(turn.context) for turn in log.user_interventions[-_MOST_QUESTIONS:])
    questions = [text for text in asked_of if len(text) >= _LEAST_QUESTION_CHARS]
    turns = []
    for turn in log.user_interventions:
        own = {"context": "" if turn.context in asked else turn.context, "reply": _without(turn.reply, questions)}
        turns.append(turn.model_copy(update=own))
        asked.add(turn.context)
    told = {turn.reply for turn in turns}
    found = failures(steps_of(log.tasks)) if log.source == "transcript" else ()
    mended = {one.task.task_id: mended_text(one) for one in found if one.task and one.kind == "recovery"}
    tasks = []
    for task in log.tasks:
        texts = {"reasoning": task.reasoning, "lesson": mended.get(task.task_id, task.lesson)}
        own = {name: _without(text, questions) for name, text in texts.items()}
        own = {name: "" if text in told else text for name, text in own.items()}
        new = {text for text in own.values() if text} or {f"{task.description}\x1f{task.command}\x1f{task.output}"}
        if not new <= told:
            tasks.append(task.model_copy(update=own))
        told |= new
    return log.model_copy(update={"tasks": tasks, "user_interventions": turns})


def _without(text: str, questions: Sequence[str]) -> str:
    for question in questions:
        text = text.replace(question, "") if question in text else text
    return text.strip()


def _parts(events: Sequence[Event]) -> list[list[Event]]:
    """Return events, in order, in as many parts as their texts need."""
    parts: list[list[Event]] = [[]]
    left = MAX_EXCERPT_CHARS
    for event in events:
        if parts[-1] and _cost(event) > left:
            parts.append([])
            left = MAX_EXCERPT_CHARS
        parts[-1].append(event)
        left -= _cost(event)
    return parts
