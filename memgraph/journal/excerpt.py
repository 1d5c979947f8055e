"""A read-only view of a journal that contains only some of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from memgraph.disk.seal import Seal
from memgraph.errors import ReadOnlyError
from memgraph.journal.envelope import Event, written
from memgraph.journal.journal import Journal
from memgraph.journal.replay import Committed, Offset
from memgraph.journal.segments import Line, Position
from memgraph.ports import Progress

Sift = Callable[[Sequence[Event]], Sequence[Event]]
"""Called with each commit of a journal in order, from the first; returns the events to keep."""


_NO_SEGMENT = "excerpt"


@dataclass(frozen=True, slots=True)
class _KeptLine(Line):
    """A line of an excerpt."""

    event: Event


class Excerpt(Journal):
    """A read-only view of a journal without some of its events, up to the journal's present end.

    Every line is verified as in the journal itself; events that are left out are then skipped. Independent of the given object.

    Parameters
    ----------
    journal : Journal
        Its present end remains the excerpt's end.
    sift : callable
        Returns a new filter for one pass over the journal.
    name : str
        Unique for each excerpt, so that its graph and index cannot be mistaken for those of another excerpt or of the journal.
    why : str
        The message of the error that a write raises.
    """

    def __init__(self, journal: Journal, sift: Callable[[], Sift], *, keys_home: Path, name: str, why: str) -> None:
        ring = journal._ring  # noqa: SLF001 - a subclass
        super().__init__(
            journal.folder.parent,
            journal.store_id,
            ring,
            keys_home=keys_home,
            lock_timeout_s=journal.lock_timeout_s,
        )
        self.tail, self.named = journal.tail, journal.named
        self._use(journal.used)
        self._own_secret = journal._own_secret  # noqa: SLF001 - a subclass
        self._sift = sift
        self.name = name
        self.why = why

    @property
    def is_read_only(self) -> bool:
        """Always True."""
        return True

    def seal(self, purpose: str) -> Seal:
        """Return the seal for files of this excerpt only."""
        return super().seal(f"{purpose}\x1fexcerpt {self.name}")

    @property
    def base(self) -> Offset:
        """The start: what an excerpt leaves out is in the baseline's rows, too."""
        return self.start

    def and_sifted(self, sift: Callable[[], Sift]) -> Callable[[], Sift]:
        """Return a filter for the events that this excerpt keeps."""

        def both() -> Sift:
            first, second = self._sift(), sift()
            return lambda events: second(first(events))

        return both

    def refuse(self) -> NoReturn:
        """Raise the error for a write.

        Raises
        ------
        ReadOnlyError
        """
        raise ReadOnlyError(self.why)

    def locked(self, *, before_waiting: Callable[[], None] = lambda: None) -> NoReturn:  # noqa: ARG002
        """Raise `ReadOnlyError`: an excerpt is never written."""
        self.refuse()

    def refused_writes(self) -> None:
        """Return None: an excerpt is never written, whatever the system allows."""

    def refresh(self) -> None:
        """Do nothing: later events do not belong to the excerpt."""

    def has_changed(self) -> bool:
        """Return False: an excerpt never changes."""
        return False

    def checkpoint(self) -> None:
        """Do nothing: the journal keeps its own checkpoint."""

    def torn_tail(self) -> tuple[int, int]:
        """Return (0, 0): a torn commit lies after the excerpt's end."""
        return 0, 0

    def replay(self, after: Offset | None = None) -> Iterator[Committed]:
        """Iterate over commits after a point, each with the events that are kept. Reads the journal from its first event.

        The last commit ends at the journal's end, so that a projection reaches it.
        """
        seq, stay = after.chain.seq if after else 0, self._sift()
        held: Committed | None = None
        for commit in super().replay():
            events = tuple(stay(commit.events))
            if events and commit.after.chain.seq > seq:
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
            here = Position(_NO_SEGMENT, event.seq)
            yield _KeptLine(written(event, self.store_id), here, here, whole=True, event=event)

    def event(self, line: Line) -> Event:
        """Return the event of one of the `lines`: it was verified when it was read."""
        return line.event if isinstance(line, _KeptLine) else super().event(line)

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event and return how many are kept. `also` is called with each commit of kept events."""
        count = 0
        for commit in self.replay():
            also(commit)
            count += len(commit.events)
            if progress:
                progress(commit.after.chain.seq, self.tail.chain.seq)
        return count
