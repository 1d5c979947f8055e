"""Changes since a phase's last run: the memories that later events touched, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import Index
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Row
from memgraph.store.query import Reader

MOST_EVENTS = 20_000
"""Maximum number of journal events read per batch."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Events after which a phase must read memories again: all except those listed here.

    Attributes
    ----------
    ignored : tuple of type
        Payload types that are irrelevant to the phase.
    ignored_fields : frozenset of str
        Fields that are irrelevant to the phase: a revision of no other field is ignored.
    """

    ignored: tuple[type[Payload], ...]
    ignored_fields: frozenset[str] = frozenset()

    def touched(self, event: Event) -> list[str]:
        """Return the memories to read again after an event."""
        is_ignored = isinstance(event.payload, self.ignored)
        if is_ignored or (isinstance(event.payload, MemoryRevised) and revised_fields(event) <= self.ignored_fields):
            return []
        return event.payload.memory_ids()


class Changes(NamedTuple):
    """The memories touched after one event up to another, each with its first event; whether it is the last batch."""

    touched: dict[str, int]
    after_seq: int
    through_seq: int
    is_last: bool


def changes_after(
    reader: Reader,
    since: int,
    touched_by: Callable[[Event], Sequence[str]],
    *,
    until: int | None = None,
    most_memories: float = float("inf"),
    most_events: float = float("inf"),
) -> Iterator[Changes]:
    """Yield the changes after an event in batches; the last one may be empty.

    Parameters
    ----------
    touched_by : callable
        Returns the memories that an event touches: `Watch.touched`.
    until : int, optional
        The last event to read. None: the last one at the time of the call.
    most_memories, most_events : float
        A batch ends with the event at which it reaches one of these.
    """
    touched: dict[str, int] = {}
    seq = since
    for event in reader.events_after(since):
        if until is not None and event.seq > until:
            break
        seq = event.seq
        for one in touched_by(event):
            touched.setdefault(one, seq)
        if len(touched) >= most_memories or seq - since >= most_events:
            yield Changes(touched, since, seq, is_last=seq == until)
            if seq == until:
                return
            touched, since = {}, seq
    yield Changes(touched, since, seq if until is None else until, is_last=True)


def revised_fields(event: Event) -> set[str]:
    """Return the fields that a revision sets or clears."""
    return {*event.content.get("changed", ()), *event.content.get("cleared", ())}


def last_run(reader: Reader, key: str) -> Row:
    """Return the row with the last event (`seq`) that a phase has covered completely; empty before its first run."""
    return reader.record("LifecycleRun", key) or {}


def expired(index: Index, run: Row, now: str) -> NDArray[np.int64]:
    """Return the slots of memories whose validity has ended by itself since a run."""
    until = index.column("invalid_days")
    return np.flatnonzero((until > epoch_days(run["applied_at"])) & (until <= epoch_days(now)))
