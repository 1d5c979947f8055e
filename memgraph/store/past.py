"""A store as of a point in time, or as an agent may read it.

A *view* is a store over an `Excerpt` of the journal, folded as usual in another directory, so all reading works on it. Writing raises
`ReadOnlyError`, and a recall leaves no trace. What is made of a view is cached (see `Views`) under a key of moment, journal end and schema, so
that a repeated question is answered at once, and never with an outdated answer.

Of all events, in the journal's order, a view of the past has those that had happened by the moment (or, with `recorded`, that had been
recorded by then). Events about a memory that did not exist yet change nothing, as in any fold.

- The time of an event is defined by `memgraph.fold.event_time`. In the order of recording, later values win; none reveals later facts.
- The clock of a view stands at its moment, and a memory recorded later that had happened by then has not begun to fade.
- Vectors are the store's own, of its current model, if a memory had the embedded text at the moment; otherwise it is found by words.
- A moment later than now means now. A day means its end, in UTC.
- Memories hidden or deleted since are readable. Pictures and exports leave them out (see `memgraph.store.access.visibility`).

An agent's view has only the events about memories that the agent may have, as the policy of each type states. What the agent may not have is
not in its graph, index or journal, so lists, links, Cypher, pages, charts and exports of the view need no rule of their own. Of recalls only
the named agent's own are there, with the memories that it may have; one without a name has none. A memory that the agent may have today is
there from the event that made it so: earlier texts of it are not in the view.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from memgraph.config import AgentMemoryConfig
from memgraph.disk.folders import KeptViews, Lease
from memgraph.errors import InvalidInputError, ReadOnlyError, StorageError
from memgraph.fold.event_time import ALWAYS, Moments
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.envelope import Event
from memgraph.journal.excerpt import Excerpt, Sift
from memgraph.journal.journal import Journal
from memgraph.logs import logger_of
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Callback, checked
from memgraph.model.build import event_id
from memgraph.model.events.memories import MemoryAdded, MemoryDerived, MemoryMerged, MemoryReembedded, MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessRecorded, BuildConsolidated, OutcomeRecorded, RetrievalRecorded
from memgraph.model.events.store import StoreReset
from memgraph.model.memory import MemoryRecord
from memgraph.model.timestamps import to_iso
from memgraph.ports import Progress, Row
from memgraph.privacy import Access
from memgraph.store.access.visibility import visible
from memgraph.store.commit.writer import Writer
from memgraph.store.opening import open_projector
from memgraph.store.projector import Projector
from memgraph.store.query import Reader, StorePart

logger = logger_of(__name__)

When = str | date | datetime
_WEEK = re.compile(r"\d{4}-?W\d\d", re.ASCII)
_TO_ITS_SUNDAY = timedelta(days=6)
MOST_OF_AGENTS = 2
"""Number of cached views of agents. All are of the journal's present end: a write makes them useless."""
_VIEW_VERSION = "4"
"""Version of the meaning of a moment; increased when the same moment shows something else."""


@dataclass(frozen=True, slots=True)
class OpenView:
    """Journal, graph and index of a view, in use until `close`."""

    lease: Lease
    projector: Projector
    journal: Excerpt

    def close(self) -> None:
        """Close graph and index, and allow the view's directory to be removed."""
        try:
            self.projector.close()
            self.journal.close()
        finally:
            self.lease.release()


@dataclass(slots=True)
class _Shared:
    """A view, its users, and the lock of the thread that opens it."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    view: OpenView | None = None
    users: int = 0


class SharedViews:
    """The open views of a store, by key. Thread-safe. The latest one stays open while nobody uses it, for the next reader."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Shared] = {}
        self._latest: str | None = None

    def take(self, key: str, make: Callable[[], OpenView]) -> tuple[OpenView, Callable[[], None]]:
        """Return a view, which one thread opens while others wait, and the function to call after use, any number of times."""
        with self._lock:
            if self._latest != key:
                self._keep(key)
            shared = self._open.setdefault(key, _Shared())
            shared.users += 1
        is_used = True

        def leave() -> None:
            nonlocal is_used
            with self._lock:
                if is_used:
                    is_used = False
                    shared.users -= 1
                    self._close_unused(key)

        try:
            with shared.opening:
                if shared.view is None:
                    shared.view = make()
                return shared.view, leave
        except BaseException:
            leave()
            raise

    def close(self) -> None:
        """Close the view that nobody uses, and each other one when its last user leaves it. Idempotent."""
        with self._lock:
            self._keep(None)

    def _keep(self, key: str | None) -> None:
        before, self._latest = self._latest, key
        if before is not None:
            self._close_unused(before)

    def _close_unused(self, key: str) -> None:
        shared = self._open.get(key)
        if shared is not None and not shared.users and (key != self._latest or shared.view is None):
            del self._open[key]
            if shared.view is not None:
                shared.view.close()


@dataclass(eq=False)
class Views(StorePart):
    """Creates views of a store's past in a folder."""

    _config: AgentMemoryConfig
    _folder: Path
    _of: Past | None
    """The moment of the store, if it is itself a view."""

    def __post_init__(self) -> None:
        self._kept = KeptViews(self._folder)
        self._kept_of_agents = KeptViews(self._folder / "agents", most=MOST_OF_AGENTS)
        self._shared = SharedViews()

    def open(self, when: When, *, recorded: bool = False, progress: Progress | None = None) -> PastView:
        """Return the journal, graph and index as of a moment."""
        checked(Callback, progress, "progress")
        if self._of is not None and recorded != self._of.recorded:
            problem = f"must be {self._of.recorded}, as in this view; ask the store itself"
            raise InvalidInputError(problem, field="recorded", value=recorded)
        if self._of is not None and self._of.access is not None:
            problem = (
                "cannot be given for an agent's view; take the view of the past first, and then the agent's view of it"
            )
            raise InvalidInputError(problem, field="when", value=when)
        past = Past(self._moment(when), recorded=recorded)
        why = f"this is the store as it was at {past.as_of}, which is read-only; open the store itself to write"
        journal = self._excerpt(past, past.sift, why)

        def make(folder: Path) -> None:
            self._fill(folder, journal, progress)
            past.check(when)

        try:
            view = self._opened(self._kept.take(journal.name, make), journal)
        except BaseException:
            journal.close()
            raise
        return PastView(past, view, view.close)

    def open_for(self, access: Access, *, progress: Progress | None = None) -> PastView:
        """Return the journal, graph and index that an agent may read now, or at the view's moment; shared until something is written."""
        checked(Callback, progress, "progress")
        past = Past(self._now(), recorded=self._of is not None and self._of.recorded, access=access)
        selection = AgentSelection(access)
        why = f"this is the store as the agent {access.agent!r} may read it, which is read-only; open the store itself to write"
        of = self._journal
        sift = of.and_sifted(selection.sift) if isinstance(of, Excerpt) else selection.sift
        journal = self._excerpt(past, sift, why)

        def make() -> OpenView:
            # after the excerpt's end is known: what was made private since then is not selected
            selection.select(self._reader, self._reader.events_after(0))
            end = journal.tail.seq
            lease = self._kept_of_agents.take(
                journal.name, lambda folder: self._fill(folder, journal, progress), since=end
            )
            return self._opened(lease, journal)

        try:
            view, release = self._shared.take(journal.name, make)
        except BaseException:
            journal.close()
            raise
        if view.journal is not journal:
            journal.close()  # else the store's database would stay open for it
        return PastView(past, view, release)

    def close(self) -> None:
        """Close the agent's view that is kept open for the next reader. Idempotent."""
        self._shared.close()

    def _opened(self, lease: Lease, journal: Excerpt) -> OpenView:
        try:
            return OpenView(lease, open_projector(self._config.engine, journal, lease.folder), journal)
        except BaseException:
            lease.release()
            raise

    def _fill(self, folder: Path, journal: Excerpt, progress: Progress | None) -> None:
        """Make the graph and index of a view in a directory; it must not keep what is being purged meanwhile."""
        projector = open_projector(self._config.engine, journal, folder)
        try:
            projector.rebuild(progress)
        finally:
            projector.close()
        if any(seq > journal.tail.seq for seq, _ in self._journal.purges()):
            raise StorageError("was purged while the view was made; ask again", path=self._config.home)

    def _excerpt(self, past: Past, sift: Callable[[], Sift], why: str) -> Excerpt:
        """Return the excerpt of the journal, including all that is recorded so far."""
        if self._projector.is_reading:
            raise RuntimeError("a view was requested inside a block of reads")
        self._reader.settle()
        with self._projector.guard:
            if self._journal.has_changed():
                self._journal.refresh()
            name = _key(self._journal, past, self._of)
            return Excerpt(self._journal, sift, home=self._config.home, name=name, why=why)

    def _moment(self, when: When) -> str:
        given, now = moment_of(when), self._now()
        if given[:10] > now[:10]:
            logger.warning("%s is in the future: reading the store as it is now", given)
        return min(given, now)


class Past:
    """The events that had happened by a moment; `access` is set for the view of an agent."""

    def __init__(self, as_of: str, *, recorded: bool, access: Access | None = None) -> None:
        self.as_of = as_of
        self.recorded = recorded
        self.access = access
        self.begins = ALWAYS
        """The first moment of the journal, once it has been read."""

    def sift(self) -> Sift:
        """Return, after one pass over the journal, the predicate for events that had happened."""
        moments = Moments(recorded=self.recorded)

        def stay(events: Sequence[Event]) -> list[Event]:
            found = []
            for event, moment in zip(events, moments.of(events), strict=True):
                if moment != ALWAYS:
                    self.begins = min(self.begins or moment, moment)
                if moment <= self.as_of:
                    found.append(self._as_then(event, moments))
            return found

        return stay

    def check(self, when: When) -> None:
        """Reject a moment before the first event."""
        if self.begins > self.as_of:
            what = "recorded" if self.recorded else "remembered"
            problem = f"is before the first {what} event, at {self.begins}"
            raise InvalidInputError(problem, field="when", value=when)

    def _as_then(self, event: Event, moments: Moments) -> Event:
        """Return an event without vectors of texts that memories got later."""
        payload = event.payload
        if not isinstance(payload, MemoryReembedded):
            return event
        return _with(
            event, payload, vectors=[one for one in payload.vectors if moments.content_at(one.id) <= self.as_of]
        )


class PastView(NamedTuple):
    """A moment with its readable state: in use until `release` is called."""

    past: Past
    open: OpenView
    release: Callable[[], None]


class NoWriter(Writer):
    """Rejects writes to an excerpt. A recall leaves no trace: recording one does nothing."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ReadOnlyError(self._projector.journal.why)  # type: ignore[attr-defined]

    commit = insert = import_memories = update = append_about = exclusive = note_uses = _refuse


def moment_of(when: When, *, field: str = "when") -> str:
    """Return a moment in canonical form; a day alone means its end in UTC, and a week the end of its last day. Errors name the field."""
    try:
        return to_iso(_end_of_day(when) or when)
    except ValueError:
        problem = "is not a date: give a date such as 2024-06-01, or an ISO 8601 time"
        raise InvalidInputError(problem, field=field, value=when) from None


def _end_of_day(when: object) -> datetime | None:
    if isinstance(when, str):
        text = when.strip()
        try:
            when = date.fromisoformat(text) + (_TO_ITS_SUNDAY if _WEEK.fullmatch(text) else timedelta())
        except (ValueError, OverflowError):
            return None
    if not isinstance(when, date) or isinstance(when, datetime):
        return None
    return datetime.combine(when, time.max, tzinfo=UTC)


def _key(journal: Journal, past: Past, of: Past | None) -> str:
    """Return the key of a view: all moments after the journal's end share one, for each agent with its permissions."""
    end = journal.tail
    what: tuple[object, ...] = (past.as_of, past.recorded) if past.as_of < end.timestamp else ("all",)
    if past.access is not None:
        moment = (of.as_of, of.recorded) if of is not None else ("all",)
        what = (*moment, past.access.agent, past.access.is_justified, past.access.permissions.model_dump_json())
    parts = (*what, end.seq, end.signature, SCHEMA_VERSION, _VIEW_VERSION)
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:32]


class AgentSelection:
    """The events that an agent may have, up to the present end of the journal."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._recalls: set[str] = set()

    def select(self, reader: Reader, events: Iterable[Event]) -> None:
        """Find out, from all events of the store, which ones the agent may have; before any is sifted, and outside a frozen block."""
        access = self._access
        with reader.frozen():
            index = reader.index
            mask, live = visible(reader, access, "read"), index.column("is_live")
            self._visible = {index.ids.names[slot] for slot in np.flatnonzero(live & mask).tolist()}
            hidden = [index.ids.names[slot] for slot in np.flatnonzero(live & ~mask).tolist()]
            self._builds = {(row.get("project_id"), row.get("build_id")) for row in reader.rows(hidden)}
        self._openings, self._before, every, self._told, failed = _openings(events, self._visible, access)
        self._hidden = every - self._visible
        told = {name for event, name in failed if event in self._told}
        self._hidden_tests = {name for _, name in failed} - told

    def sift(self) -> Sift:
        """Return the filter for one pass over the journal."""
        return lambda events: [kept for event in events if (kept := self._kept(event)) is not None]

    def _kept(self, event: Event) -> Event | None:
        """Return the event as the agent may have it; None if it may not."""
        if event.seq in self._openings:
            row = self._openings[event.seq]
            return _as_added(event, {**row, **self._without_hidden(row)})
        payload = event.payload
        part = payload.POLICY.agents
        if part == "whole":
            return event
        if part == "of_one":
            (memory_id,) = payload.memory_ids()
            is_there = memory_id in self._visible and event.seq > self._before.get(memory_id, 0)
            return self._named(event, payload) if is_there else None
        if part == "of_all":
            return event if self._visible.issuperset(payload.memory_ids()) else None
        return self._reduced(event, payload) if part == "in_part" else None

    def _named(self, event: Event, payload: Payload) -> Event:
        """Return an event about one memory without the ids of memories that the agent may not have."""
        name = "memory" if isinstance(payload, MemoryAdded) else "changed"
        fewer = self._without_hidden(event.content.get(name, {}))
        return _with(event, payload, **{name: getattr(payload, name).model_copy(update=fewer)}) if fewer else event

    def _without_hidden(self, row: Row) -> Row:
        """Return the fields of a row that name memories that the agent may not have, without these."""
        fewer: Row = {}
        if row.get("previous_id") in self._hidden:
            fewer["previous_id"] = None
        if not self._hidden.isdisjoint(row.get("source_event_ids", ())):
            fewer["source_event_ids"] = [one for one in row["source_event_ids"] if one not in self._hidden]
        return fewer

    def _reduced(self, event: Event, payload: Payload) -> Event | None:
        """Return an event about several memories with those that the agent may have."""
        visible = self._visible
        if isinstance(payload, BuildConsolidated):
            return None if (payload.project_id, payload.build_id) in self._builds else self._with_tests(event, payload)
        if isinstance(payload, MemoryDerived):
            sources = [one for one in payload.source_ids if one in visible]
            if payload.id not in visible or not sources:
                return None
            return _with(event, payload, source_ids=sources)
        if isinstance(payload, StoreReset):  # how many there were of what it cleared is not the agent's
            removed = [one for one in payload.removed if one in visible]
            return _with(event, payload, removed=removed, cleared=dict.fromkeys(payload.cleared, 0))
        if isinstance(payload, AccessRecorded):
            uses = [one for one in payload.accesses if one.id in visible]
            return _with(event, payload, accesses=uses) if uses else None
        if isinstance(payload, RetrievalRecorded):
            if self._access.agent in (UNNAMED, None) or payload.agent_name != self._access.agent:
                return None  # what others asked, and in which project and session, is theirs
            self._recalls.add(payload.query_id)
            return _with(event, payload, results=[one for one in payload.results if one.id in visible])
        if isinstance(payload, OutcomeRecorded) and payload.query_id in self._recalls:
            used, overridden = ([one for one in ids if one in visible] for ids in (payload.used, payload.overridden))
            return _with(event, payload, used=used, overridden=overridden)
        return None

    def _with_tests(self, event: Event, payload: BuildConsolidated) -> Event:
        """Return a build with the failures that visible memories tell, and without what other tests that failed are called."""
        passed = [one for one in payload.passed if one not in self._hidden_tests]
        failed = [one for one in payload.failed if event_id(payload.build_id, one.task) in self._told]
        has_tests = payload.passed or payload.failed
        return _with(event, payload, passed=passed, failed=failed, consumed_keys=[]) if has_tests else event


def _openings(
    events: Iterable[Event], visible: Collection[str], access: Access
) -> tuple[dict[int, Row], dict[str, int], set[str], set[str], set[tuple[str, str]]]:
    """Return from which event on the agent may have each memory, all memories there ever were, and what of builds the visible ones tell."""
    rows: dict[str, Row] = {}
    every: set[str] = set()
    found: dict[str, tuple[int, Row]] = {}
    was_open: dict[str, bool] = defaultdict(bool)
    failed: set[tuple[str, str]] = set()
    for event in events:
        payload: Any = event.payload
        if isinstance(payload, BuildConsolidated):
            failed.update((event_id(payload.build_id, one.task), one.name) for one in payload.failed)
        if event.type in ("memory.added", "memory.undeleted"):
            every.add(payload.memory.id)
        if event.type in ("memory.added", "memory.undeleted") and payload.memory.id in visible:
            memory_id, row = payload.memory.id, dict(event.content["memory"])
        elif isinstance(payload, MemoryRevised | MemoryMerged) and payload.id in rows:
            memory_id, row = payload.id, payload.row_after(rows[payload.id])
        elif removed := payload.removed_ids():
            was_open.update(dict.fromkeys(rows.keys() & set(removed), False))
            continue
        else:
            continue
        rows[memory_id] = row
        is_open = access.may("read", row.get("privacy_tier", "public"), row.get("domain"))
        if is_open and not was_open[memory_id] and event.type != "memory.added":
            found[memory_id] = event.seq, row
        was_open[memory_id] = is_open
    told = {one for row in rows.values() for one in row.get("source_event_ids", ())}
    return dict(found.values()), {one: seq for one, (seq, _) in found.items()}, every, told, failed


def _as_added(event: Event, row: Row) -> Event:
    record = MemoryRecord.parse({name: value for name, value in row.items() if name in MemoryRecord.model_fields})
    payload = MemoryAdded(memory=record, vector=event.payload.vector)  # type: ignore[attr-defined]
    return event._replace(type=MemoryAdded.TYPE, payload=payload, content=payload.dump())


def _with(event: Event, payload: Payload, **fields: Any) -> Event:
    reduced = payload.model_copy(update=fields)
    return event._replace(payload=reduced, content=reduced.dump())
