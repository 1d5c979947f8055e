"""A store as it was at a moment.

A *view* is a store over an `Excerpt` of the journal: of all events, in the journal's order, those that had happened by the
moment (or, `recorded`, those that had been written down), folded as they always are. Events about a memory that was not there
then change nothing, as the fold has it. So a view is a rebuild of fewer events, in another directory, and everything that
reads works on it: rows, links, Cypher, index, recall, digest.

- When an event happened says `memgraph.fold.event_time`: what was derived came with its latest source, nothing came after it was
  recorded. In the order in which they were recorded, later values win; none of them tells of what came later.
- The clock of a view stands at its moment. Relevance is that of then, and what was recorded later, but had happened by then,
  has not begun to fade (design §4: relevance and age of backfilled memories count from recording; time does not run backwards).
- Vectors are looked up in the store's own files by the store's model of today, where a memory said then what it was embedded
  for; else words find it.
- Nothing is written: what writes raises `ReadOnlyError`, and a recall leaves no trace.
- What lies in the future is not known yet: a later moment than now means now. A day means its end, in UTC.
- What was hidden or deleted since is read as it was: this is the store of then. Pictures and exports, which are passed on, leave it
  out (see `memgraph.store.visibility`).

Graph and index of a view are kept (see `views`), under a key of moment, journal's end and schema: the same question again is
answered at once, and an older answer never.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from memgraph.config import AgentMemoryConfig
from memgraph.errors import InvalidInputError
from memgraph.fold.event_time import ALWAYS, Moments
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.envelope import Event
from memgraph.journal.excerpt import Excerpt, Sift
from memgraph.journal.journal import Journal
from memgraph.logs import logger_of
from memgraph.model.base import Callback, checked
from memgraph.model.events.reembedding import MemoryReembedded
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, Embedder, KeyProvider, Progress
from memgraph.store.opening import open_projector, open_store_journal
from memgraph.store.past.views import KeptViews
from memgraph.store.projection.place import Place, place_of
from memgraph.store.projection.projector import Projector
from memgraph.store.query import Reader

if TYPE_CHECKING:
    from memgraph.store.past.store import PastStore

logger = logger_of(__name__)

When = str | date | datetime
_WEEK = re.compile(r"\d{4}-?W\d\d", re.ASCII)
_TO_ITS_SUNDAY = timedelta(days=6)
_VIEW_VERSION = "2"
"""Of what a moment means; raised when the same moment shows something else."""


class LooksBack:
    """The part of a store that says over which journal it stands, and shows it as it was."""

    config: AgentMemoryConfig
    embedder: Embedder
    now: Callable[[], str]
    _reader: Reader
    _check_open: Callable[[], None]
    _clock: Clock
    _journal: Journal
    _projector: Projector
    _place: Place

    def at(self, when: When, *, recorded: bool = False, progress: Progress | None = None) -> PastStore:
        """Return the store as it was at a moment: to be read, not written, and closed when done with.

        It is made from the journal, some 3,000 events a second, and kept: the same moment again is there at once until something
        is written.

        Parameters
        ----------
        when : str, date or datetime
            ISO 8601; without an offset it is UTC, and a day alone means its end. Later than now means now.
        recorded : bool
            What had been recorded by then, rather than what had happened: history that was ingested later is left out.
        progress : callable, optional
            Is told how many events are done, and of how many.

        Raises
        ------
        InvalidInputError
            It is no time, or lies before everything that is remembered; the message says when that begins.
        """
        from memgraph.store.past.store import PastStore

        self._check_open()
        checked(Callback, progress, "progress")
        past = Past(self._moment(when), recorded=recorded)
        journal = self._excerpt(past)

        def make(folder: Path) -> None:
            projector = open_projector(self.config, journal, folder)
            try:
                projector.rebuild(progress)
            finally:
                projector.close()
            past.check(when)

        lease = KeptViews(self._place.folder / "past").take(_key(journal, past), make)
        try:
            return PastStore(journal, lease, past, place=self._place, config=self.config, embedder=self.embedder)
        except BaseException:
            lease.release()
            raise

    def _parts(self, keys: KeyProvider | None) -> tuple[Journal, Projector]:
        """Open the journal, and what is projected from it."""
        journal = open_store_journal(self.config, keys, lambda: to_iso(self._clock()))
        self._place = place_of(self.config.home, has_key=journal.has_key)
        return journal, open_projector(self.config, journal, self._place.folder)

    def _excerpt(self, past: Past) -> Excerpt:
        """Return the journal, with all that is recorded so far, as what had happened by a moment."""
        if self._projector.turns.is_reading:
            raise RuntimeError("a view of the past was requested inside a block of reads")
        self._reader.settle()
        why = f"this is the store as it was at {past.as_of}, which is read-only; open the store itself to write"
        with self._projector.turns.guard:
            if self._journal.has_changed():
                self._journal.refresh()
            name = _key(self._journal, past)
            return Excerpt(self._journal, past.sift, keys_home=self.config.keys_home, name=name, why=why)

    def _moment(self, when: When) -> str:
        given, now = moment_of(when), self.now()
        if given[:10] > now[:10]:
            logger.warning("%s is in the future: reading the store as it is now", given)
        return min(given, now)


class Past:
    """What had happened by a moment.

    Attributes
    ----------
    as_of : str
    recorded : bool
    begins : str
        The first moment of the journal, once it was gone over.
    """

    def __init__(self, as_of: str, *, recorded: bool) -> None:
        self.as_of = as_of
        self.recorded = recorded
        self.begins = ALWAYS

    def sift(self) -> Sift:
        """Return what tells, in one pass over the journal, which events had happened."""
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
        """Refuse a moment before everything."""
        if self.begins > self.as_of:
            what = "recorded" if self.recorded else "remembered"
            problem = f"is before the first {what} event, at {self.begins}"
            raise InvalidInputError(problem, field="when", value=when)

    def _as_then(self, event: Event, moments: Moments) -> Event:
        """Return an event without the vectors of texts that memories had only later."""
        payload = event.payload
        if not isinstance(payload, MemoryReembedded):
            return event
        kept = [one for one in payload.vectors if moments.told_at(one.id) <= self.as_of]
        return event._replace(payload=payload.model_copy(update={"vectors": kept}))


def moment_of(when: When, *, field: str = "when") -> str:
    """Return a moment in canonical form; a day alone means its end, in UTC, and a week its last day's.

    Parameters
    ----------
    field : str
        What it is called where it is refused.

    Raises
    ------
    InvalidInputError
        It is no time.
    """
    try:
        return to_iso(_end_of_day(when) or when)
    except ValueError:
        problem = "is not a date: give a date such as 2024-06-01, or an ISO 8601 time"
        raise InvalidInputError(problem, field=field, value=when) from None


def _end_of_day(when: object) -> datetime | None:
    """Return the last moment of a day or a week; None for what is neither."""
    if isinstance(when, str):
        text = when.strip()
        try:
            when = date.fromisoformat(text) + (_TO_ITS_SUNDAY if _WEEK.fullmatch(text) else timedelta())
        except (ValueError, OverflowError):
            return None
    if not isinstance(when, date) or isinstance(when, datetime):
        return None
    return datetime.combine(when, time.max, tzinfo=UTC)


def _key(journal: Journal, past: Past) -> str:
    """Return the name of a view: from the journal's end on it is the same one, whatever was asked."""
    end = journal.tail.chain
    what = (past.as_of, past.recorded) if past.as_of < end.timestamp else ("all",)
    parts = (*what, end.seq, end.signature, SCHEMA_VERSION, _VIEW_VERSION)
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:32]
