"""Incremental run: learn scope by scope from what has changed since the last run.

A run, complete or stopped by its time limit, ends with an event that records how far it has read. The scopes that have
waited longest come first, so the next run continues there. After a kill, the next run finds the completed work in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import Index, scope_name
from memgraph.index.snapshot import is_gone
from memgraph.lifecycle.evidence.evidence import Deletions, Scope, TimeIsUp
from memgraph.lifecycle.run.changes import MOST_EVENTS, Watch, changes_after, expired, last_run
from memgraph.lifecycle.run.runner import Plan, View, added, carry_out, note
from memgraph.model.base import Model
from memgraph.model.events.memories import MemoryDerived, MemoryLinked, MemoryReembedded, MemoryUnlinked
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessRecorded
from memgraph.model.memory import MEMORY_TYPES
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader

R = TypeVar("R", bound=Model)
_WATCH = Watch((AccessRecorded, MemoryReembedded, MemoryDerived, MemoryLinked, MemoryUnlinked))
"""Events that change more of a memory than its use, state and links."""


@dataclass(frozen=True, slots=True)
class IncrementalRun(Generic[R]):
    """One kind of learning.

    Attributes
    ----------
    run_key : str
        Key of the row that records the progress.
    types : sequence of str
        Types of memory whose changes are relevant.
    plan : callable
        Returns the plan of a scope. The store is frozen meanwhile.
    nothing : Model
        The result for no scope; its field `complete` says whether the run completed, and all others are summed.
    conclude : callable or None
        Returns the event that ends the run, given the result of all scopes, the time, and the last event read. None: only sleep
        records the progress.
    """

    run_key: str
    types: Sequence[str]
    plan: Callable[[View, Scope, Deletions], Plan[R]]
    nothing: R
    conclude: Callable[[R, str, int], Payload] | None = None

    def run(self, store: AgentMemoryStore, is_time_up: TimeIsUp) -> R:
        """Learn from each scope that has changed, at least from one; once the time is up, the rest waits."""
        reader = store.reader
        with reader.frozen():
            began_at, now = reader.index.offset.seq, store.now()
            since = last_run(reader, self.run_key).get("seq", 0)
        total, own, is_first = self.nothing, set[int](), True
        deletions = Deletions(reader)

        def planned(scope: Scope, view: View) -> Plan[R]:
            with reader.frozen():
                is_alone = reader.index.offset.seq == began_at + len(own)  # otherwise others may have deleted something
                return self.plan(view, scope, deletions if is_alone else Deletions(reader))

        for scope, seq in _waiting(reader, self.run_key, self.types, now=now, until=began_at):
            if is_time_up() and not is_first:
                if self.conclude and seq - 1 > since:
                    event = self.conclude(total, now, seq - 1)
                    note(store, lambda _view: event)  # noqa: B023 (called at once)
                return total.model_copy(update={"complete": False})
            result, seqs = carry_out(store, partial(planned, scope), embedder=store.embedder)
            total, is_first = added(total, result), False
            own.update(seqs)
        if (conclude := self.conclude) and not is_first:
            note(store, lambda view: conclude(total, now, _seen_up_to(view.reader, began_at, own)))
        return total


def _waiting(
    reader: Reader, run_key: str, types: Sequence[str], *, now: str, until: int
) -> Iterator[tuple[Scope, int]]:
    """Yield the scopes in which memories of these types have changed since the lifecycle last read them, each once.

    Each scope comes with the first event that it waits for, in the order of these events: once some scopes are done,
    everything before the next one's event has been read. The journal is read on demand, in portions.

    Parameters
    ----------
    until : int
        Later events are left to the next run.
    """
    with reader.frozen():
        index = reader.index
        run = last_run(reader, run_key)
        since = run.get("seq", 0)
        kinds = [MEMORY_TYPES.index(kind) for kind in types]
        is_wanted = index.memories() & np.isin(index.column("type"), kinds)
        if since:
            slots = expired(index, run, now)
            first = dict.fromkeys(_scopes(index, slots[is_wanted[slots]]), since + 1)
        else:
            slots = np.flatnonzero(is_wanted)
            first = _earliest(zip(_scopes(index, slots), index.column("seq")[slots].tolist(), strict=True))
            since = until
    known: set[Scope] = set()
    yield from _new(first, known)
    for changes in changes_after(reader, since, _WATCH.touched, until=until, most_events=MOST_EVENTS):
        with reader.frozen():
            first = _earliest(_places(reader, changes.touched, kinds))
        yield from _new(first, known)


def _new(first: Mapping[Scope, int], known: set[Scope]) -> list[tuple[Scope, int]]:
    """Return the newly found scopes in the order of the events that they wait for, and note them."""
    in_order = sorted(first.items(), key=lambda item: (item[1], item[0][0] or "", item[0][1] or ""))
    new = [(scope, seq) for scope, seq in in_order if scope not in known]
    known.update(first)
    return new


def _places(reader: Reader, touched: Mapping[str, int], kinds: Sequence[int]) -> Iterator[tuple[Scope, int]]:
    """Yield the scopes of the memories, including those of deleted ones as long as the index knows their names."""
    index = reader.index
    gone: dict[str, int] = {}
    slots: list[int] = []
    for one in touched:
        if (slot := index.ids.find(one)) < 0:
            gone[one] = touched[one]
        elif not index.column("is_record")[slot] and (
            not index.column("is_live")[slot] or index.column("type")[slot] in kinds
        ):
            slots.append(slot)
    slots = [slot for slot in slots if _has_scope(index, slot)]
    seqs = [touched[index.ids.names[slot]] for slot in slots]
    yield from zip(_scopes(index, np.array(slots, dtype=np.int64)), seqs, strict=True)
    for row, _ in reader.deleted(sorted(gone)) if gone else ():
        if MEMORY_TYPES.index(row["type"]) in kinds:
            yield (row.get("project_id"), row.get("task_id")), gone[row["id"]]


def _has_scope(index: Index, slot: int) -> bool:
    """Return whether the names of a memory's scope are known. They are not if no live memory is left in it: then nothing is to be done there."""
    codes = (index.column(name)[slot] for name in ("project", "task"))
    return not any(code >= 0 and is_gone(index.scopes.names[code]) for code in codes)


def _earliest(found: Iterable[tuple[Scope, int]]) -> dict[Scope, int]:
    first: dict[Scope, int] = {}
    for scope, seq in found:
        first[scope] = min(seq, first.get(scope, seq))
    return first


def _scopes(index: Index, slots: NDArray[np.int64]) -> list[Scope]:
    names = index.scopes.names
    columns = (index.column("project")[slots].tolist(), index.column("task")[slots].tolist())
    return [
        (_name(names, "project", project), _name(names, "task", task)) for project, task in zip(*columns, strict=True)
    ]


def _name(names: Sequence[str], kind: str, code: int) -> str | None:
    return names[code].removeprefix(scope_name(kind, "")) if code >= 0 else None


def _seen_up_to(reader: Reader, began_at: int, own: set[int]) -> int:
    """Return the last event that a run has read: where it began, if others have changed memories since. Needs the lock."""
    others = (event for event in reader.events_after(began_at) if event.seq not in own)
    if any(_WATCH.touched(event) for event in others):
        return began_at
    return reader.index.offset.seq
