"""A journal as some of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from memgraph.disk.seal import Seal
from memgraph.errors import ReadOnlyError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.journal.replay import Committed, Offset
from memgraph.journal.segments import Line
from memgraph.ports import Progress

Sift = Callable[[Sequence[Event]], Sequence[Event]]
"""Given a journal's commits in order, from the first on, returns of each the events that stay."""


class Excerpt(Journal):
    """What a journal would be if some of its events had never been: as long as it is now, and never written.

    Every line is verified as the journal's own is; then what is left out is passed over. Independent of the object it is made of.

    Parameters
    ----------
    journal : Journal
        At its end, which is the excerpt's for good.
    sift : callable
        Returns, for one pass over the journal, what tells which events stay.
    name : str
        Another for each excerpt: no graph or index of one passes for that of another, nor for the journal's own.
    why : str
        What who writes is told.
    """

    def __init__(self, journal: Journal, sift: Callable[[], Sift], *, keys_home: Path, name: str, why: str) -> None:
        key = journal._key  # noqa: SLF001 - a journal's own class
        super().__init__(
            journal.folder.parent,
            journal.store_id,
            key,
            keys_home=keys_home,
            lock_timeout_s=journal.lock_timeout_s,
        )
        self.tail, self.named = journal.tail, journal.named
        self._sift = sift
        self._name = name
        self.why = why

    @property
    def is_read_only(self) -> bool:
        """It is."""
        return True

    def seal(self, purpose: str) -> Seal:
        """Return what vouches for a file of this excerpt alone."""
        return super().seal(f"{purpose}\x1fexcerpt {self._name}")

    def refuse(self) -> NoReturn:
        """Refuse to write.

        Raises
        ------
        ReadOnlyError
        """
        raise ReadOnlyError(self.why)

    def locked(self, *, before_waiting: Callable[[], None] = lambda: None) -> NoReturn:  # noqa: ARG002
        """Refuse: nothing is written."""
        self.refuse()

    def refused_writes(self) -> None:
        """Return None: whatever the system allows, nothing is written here."""

    def refresh(self) -> None:
        """Do nothing: what came since is not of it."""

    def has_changed(self) -> bool:
        """Tell that it has not."""
        return False

    def checkpoint(self) -> None:
        """Do nothing: how far a journal is verified is told by itself."""

    def torn_tail(self) -> tuple[int, int]:
        """Tell of none: it lies after the end."""
        return 0, 0

    def replay(self, after: Offset | None = None) -> Iterator[Committed]:
        """Iterate over commits after a point, each with the events that stay. Reads the journal from its first event on.

        The last one ends where the journal does, so that a projection of it is at the end.
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
        """Iterate over the events that stay after this one."""
        for commit in self.replay():
            yield from (event for event in commit.events if event.seq > seq)

    def every_event(self) -> Iterator[Event]:
        """Iterate over all events of the journal up to the excerpt's end, those that were left out too."""
        return super().events_after(0)

    def lines(self) -> Iterator[Line]:
        """Iterate over the lines of the events that stay."""
        stay = {event.seq for event in self.events_after(0)}
        yield from (line for seq, line in enumerate(super().lines(), start=1) if seq in stay)

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event, and return how many stay; `also` is given these."""
        count = 0
        for commit in self.replay():
            also(commit)
            count += len(commit.events)
            if progress:
                progress(commit.after.chain.seq, self.tail.chain.seq)
        return count
