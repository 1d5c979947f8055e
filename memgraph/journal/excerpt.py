"""A read-only view of a journal that contains only some of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from memgraph.disk.seal import Seal
from memgraph.errors import ReadOnlyError
from memgraph.journal.envelope import Chain, Committed, Event, Line, canonical
from memgraph.journal.journal import Journal
from memgraph.journal.vectors import Vectors
from memgraph.ports import Progress

Sift = Callable[[Sequence[Event]], Sequence[Event]]
"""Called with each commit of a journal in order, from the first; returns the events to keep."""


class Excerpt(Journal):
    """A read-only view of a journal, as it ends now, without the events that `sift` leaves out; `name` is unique, and a write raises `why`."""

    def __init__(self, journal: Journal, sift: Callable[[], Sift], *, home: Path, name: str, why: str) -> None:
        super().__init__(
            journal.database,
            home,
            journal.store_id,
            journal._ring,  # noqa: SLF001 - a subclass
            heads=journal._heads,  # noqa: SLF001
            lock_timeout_s=journal.lock_timeout_s,
        )
        self.database.retain()
        self.tail, self.named = journal.tail, journal.named
        self._use(journal.used)
        self._own_secret = journal._own_secret  # noqa: SLF001
        self._of = journal
        self._sift = sift
        self._events: dict[int, Event] = {}
        self.name = name
        self.why = why

    @property
    def is_read_only(self) -> bool:
        """Always True."""
        return True

    def seal(self, purpose: str) -> Seal:
        """Return the seal for files of this excerpt only."""
        return super().seal(f"{purpose}\x1fexcerpt {self.name}")

    def vectors(self, model: str, dimension: int | None = None) -> Vectors:
        """Return the vectors of a model: the journal's own."""
        return self._of.vectors(model, dimension)

    def and_sifted(self, sift: Callable[[], Sift]) -> Callable[[], Sift]:
        """Return a filter for the events that this excerpt keeps."""

        def both() -> Sift:
            first, second = self._sift(), sift()
            return lambda events: second(first(events))

        return both

    def locked(self) -> NoReturn:
        """Raise `ReadOnlyError`: an excerpt is never written."""
        raise ReadOnlyError(self.why)

    def refused_writes(self) -> None:
        """Return None: an excerpt is never written, whatever the system allows."""

    def refresh(self) -> None:
        """Do nothing: later events do not belong to the excerpt."""

    def has_changed(self) -> bool:
        """Return False: an excerpt never changes."""
        return False

    def replay(self, after: Chain | None = None, *, until: int | None = None) -> Iterator[Committed]:
        """Iterate over commits after a point, with the events that are kept; the last ends at the journal's end, as a projection does."""
        seq, stay = after.seq if after else 0, self._sift()
        held: Committed | None = None
        for commit in super().replay(until=until):
            events = tuple(stay(commit.events))
            if events and commit.after.seq > seq:
                if held is not None:
                    yield held
                held = Committed(events, commit.after)
        if held is not None:
            yield replace(held, after=self.tail)

    def events_after(self, seq: int) -> Iterator[Event]:
        """Iterate over the kept events after this one."""
        for commit in self.replay():
            yield from (event for event in commit.events if event.seq > seq)

    def every_event(self) -> Iterator[Event]:
        """Iterate over all events of the journal up to the excerpt's end, including those left out."""
        return super().events_after(0)

    def lines(self) -> Iterator[Line]:
        """Iterate over lines of the kept events, as the excerpt keeps them: written anew, so the journal's own bytes are not among them."""
        for event in self.events_after(0):
            yield self._written(event)

    def lines_of(self, *types: str, holding: bytes = b"") -> Iterator[Line]:
        """Iterate over the kept lines of events of some types whose payloads hold some bytes, type by type."""
        lines = [line for line in self.lines() if holding in (line.payload or b"")]
        for type_ in types:
            yield from (line for line in lines if line.type == type_)

    def event(self, line: Line) -> Event:
        """Return the event of one of the `lines`: it was verified when it was read."""
        return self._events[line.seq] if line.seq in self._events else super().event(line)

    def _written(self, event: Event) -> Line:
        head = {name: getattr(event, name) for name in _HEAD}
        self._events[event.seq] = event
        return Line(event.seq, event.type, canonical(head), canonical(event.content), b"", b"")

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event and return how many are kept. `also` is called with each commit of kept events."""
        count = 0
        for commit in self.replay():
            also(commit)
            count += len(commit.events)
            if progress:
                progress(commit.after.seq, self.tail.seq)
        return count


_HEAD = ("seq", "commit_id", "last", "type", "write_scope", "task_id", "actor", "timestamp", "occurred_at")
"""What a line of an excerpt states of its event."""
