"""What has changed since the last run of a phase: the memories that later events touched, in batches."""

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
"""A batch reads so many events of the journal at most."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Which events make a phase look at memories again: all but those that it says.

    Attributes
    ----------
    ignored : tuple of type
        Payloads that say nothing of a memory that the phase looks at.
    ignored_fields : frozenset of str
        Fields that the phase does not look at: a revision of nothing else is ignored.
    """

    ignored: tuple[type[Payload], ...]
    ignored_fields: frozenset[str] = frozenset()

    def touched(self, event: Event) -> list[str]:
        """Return the memories that are to be looked at again after an event."""
        is_ignored = isinstance(event.payload, self.ignored)
        if is_ignored or (isinstance(event.payload, MemoryRevised) and revised_fields(event) <= self.ignored_fields):
            return []
        return event.payload.memory_ids()


class Changes(NamedTuple):
    """The memories that were touched after one event and through another, each with the first event that did; whether it is the last batch."""

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
    """Yield what has changed after an event, in batches; the last one may be empty.

    Parameters
    ----------
    touched_by : callable
        Returns the memories that an event touches: `Watch.touched`.
    until : int, optional
        The last event that is read. None: that which is the last by then.
    most_memories, most_events : float
        A batch ends with the event by which it has so many.
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
    """Return the row that says up to which event (`seq`) a phase has looked at everything; empty before its first run."""
    return reader.record("LifecycleRun", key) or {}


def expired(index: Index, run: Row, now: str) -> NDArray[np.int64]:
    """Return the slots of what has ceased to be valid by itself since a run."""
    until = index.column("invalid_days")
    return np.flatnonzero((until > epoch_days(run["applied_at"])) & (until <= epoch_days(now)))
