"""Long sessions of which the rules kept little: noted while a source is read, and made work orders at its end."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heappushpop

from memgraph.extraction.llm.prompt import informative_events
from memgraph.extraction.readers import Reader as SourceReader
from memgraph.extraction.readers import SourceRecord
from memgraph.extraction.secrets import redact_any
from memgraph.lifecycle.distillation.requests import request_sessions
from memgraph.lifecycle.distillation.subjects import MAX_EXCERPT_CHARS, Subject, excerpt_of
from memgraph.model.build import BuildEventLog
from memgraph.model.ids import natural_id
from memgraph.model.results.learning import OrdersResult
from memgraph.store import AgentMemoryStore

LONG_EVENTS = 30
"""Minimum number of events of a long session; the rules kept little if they kept less than one memory for so many."""
_EVENTS_OF_AN_INTERVENTION = 6
"""An intervention counts as so many tasks: users state in about one turn of five what holds beyond the task, and rules find half of it."""
_NO_SESSIONS = frozenset({"git", "ci log", "test report"})
"""Sources whose builds contain no conversation."""
_EVENT_FRAME_CHARS = 12


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
        many = len(log.tasks) + _EVENTS_OF_AN_INTERVENTION * len(log.user_interventions)
        if log.source in _NO_SESSIONS or many < LONG_EVENTS or not self._most:
            return
        entry = (many, f"{log.project_id}\x1f{log.build_id}", log)
        self._noted = [one for one in self._noted if one[1] != entry[1]]  # read again because it has grown
        self._noted.sort()
        (heappush if len(self._noted) < self._most else heappushpop)(self._noted, entry)

    def request_orders(self) -> OrdersResult:
        """Make work orders for the noted sessions of which little was kept, within the budget of the day."""
        subjects = [_subject(log, many) for many, _, log in self._noted if self._kept(log) * LONG_EVENTS < many]
        self._noted = []
        return request_sessions(self._store, subjects)

    def _kept(self, log: BuildEventLog) -> int:
        row = self._store.reader.record("Build", natural_id("build", log.build_id, project_id=log.project_id)) or {}
        return int(row.get("extracted", 0)) + int(row.get("merged", 0))


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


def _subject(log: BuildEventLog, many: int) -> Subject:
    log = redact_any(log).value  # before anything is cut: a truncated secret would not be recognised
    events = informative_events(log, MAX_EXCERPT_CHARS, lambda event: len(event.text) + _EVENT_FRAME_CHARS)
    return Subject(
        kind="long session",
        key=log.build_id,
        excerpt=excerpt_of([event.text for event in events]),
        value=round(0.7 * (1 - 1 / (1 + many / 60)), 6),
        source_at=log.completed_at,
        trust_class=log.trust_class,
        project_id=log.project_id,
        build_id=log.build_id,
        source_event_ids=[log.build_id],
    )
