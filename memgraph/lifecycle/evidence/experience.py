"""Experience: which scopes have changed since a run, and the evidence and generalisations of a scope.

A *scope* is a project and a task: episodes of a task are never mixed with those outside it, nor those of two projects.

A run, complete or stopped by its time limit, ends with an event that records how far it has read. The scopes that have
waited longest come first, so the next run continues there. After a kill, the next run finds the completed work in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.index.snapshot import is_gone
from memgraph.lifecycle.evidence.evidence import Deletions, Scope, TimeIsUp, is_true, one_build_a_run, read_scope
from memgraph.lifecycle.evidence.reconcile import Known, deleted_of, has_lapsed, known_of
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.lifecycle.run.changes import MOST_EVENTS, Watch, changes_after, expired, last_run
from memgraph.lifecycle.run.runner import Plan, View, added, carry_out, note
from memgraph.model.base import Model
from memgraph.model.events.memories import MemoryReembedded
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import COMPRESSION, AccessRecorded
from memgraph.model.memory import MEMORY_TYPES
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader

R = TypeVar("R", bound=Model)
SOURCE = "compression"
"""The `source` of generalisations made by compression."""
TYPES = ("episodic", "semantic")
WATCH = Watch(
    (AccessRecorded, MemoryReembedded),
    frozenset("floor archive_summary relevance_anchor relevance_at updated_at embedding_model embedded_at".split()),
)
"""Events that change more of a memory than its use."""
Mask = NDArray[np.bool_]


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

        for scope, seq in waiting(reader, last_run(reader, self.run_key), self.types, now=now, until=began_at):
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


def waiting(reader: Reader, run: Row, types: Sequence[str], *, now: str, until: int) -> Iterator[tuple[Scope, int]]:
    """Yield the scopes in which memories of these types have changed since a run (empty: all), each once.

    Each scope comes with the first event that it waits for, in the order of these events: once some scopes are done,
    everything before the next one's event has been read. The journal is read on demand, in portions.

    Parameters
    ----------
    until : int
        Later events are left to the next run.
    """
    with reader.frozen():
        index = reader.index
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
    for changes in changes_after(reader, since, WATCH.touched, until=until, most_events=MOST_EVENTS):
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
    if any(WATCH.touched(event) for event in others):
        return began_at
    return reader.index.offset.seq


@dataclass(slots=True)
class Experience:
    """The experience of a scope and an outcome.

    Attributes
    ----------
    episodes : list of Row
        In id order: those in force, and those that faded but are evidence of a generalisation in force.
    in_force, put_away : list of Known
        The generalisations made of such episodes; those that are hidden, archived, deleted, or replaced by another memory.
    solved : mapping
        Successful trials of the scope in any state, by their task (`trials.task_of`).
    """

    scope: Scope
    outcome: str
    episodes: list[Row]
    in_force: list[Known]
    put_away: list[Known] = field(default_factory=list)
    solved: Mapping[str, Sequence[Row]] = field(default_factory=dict)


def changed_scopes(reader: Reader, now: str, run: Row | None = None) -> set[Scope]:
    """Return the scopes that have changed since a run: by default compression's last."""
    run = last_run(reader, COMPRESSION) if run is None else run
    return {scope for scope, _ in waiting(reader, run, TYPES, now=now, until=reader.index.offset.seq)}


def read_experience(reader: Reader, scopes: Iterable[Scope], now: str) -> list[Experience]:
    """Return the episodes and generalisations of some scopes, grouped by scope."""
    deletions, in_force = Deletions(reader), reader.listed() & ~reader.superseded()
    ordered = sorted(scopes, key=lambda scope: tuple(part or "" for part in scope))
    return [one for scope in ordered for one in _experience_of(reader, scope, in_force, deletions, now)]


def _experience_of(
    reader: Reader, scope: Scope, in_force: Mask, deletions: Deletions, now: str
) -> Iterator[Experience]:
    index = reader.index
    rows = one_build_a_run(reader, read_scope(reader, scope, TYPES))
    listed = {row["id"] for row in rows if in_force[index.slot(row["id"])]}
    own = [row for row in rows if row["type"] == "semantic" and row.get("source") == SOURCE]
    deleted = [one for one in deleted_of(deletions, scope, SOURCE) if one.row.get("invalid_at", "9999") > now]
    solved: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("outcome") == "positive" and (task := task_of(row)):
            solved.setdefault(task, []).append(row)
    by_outcome: dict[str, dict[str, Row]] = {}
    for row in (*own, *(row for row in rows if row["type"] == "episodic" and is_true(row, now))):
        there = by_outcome.setdefault(row.get("outcome", "unknown"), {})
        if row["type"] == "episodic":
            there[row["id"]] = row
    for outcome, evidence in sorted(by_outcome.items()):
        made = [row for row in own if row.get("outcome", "unknown") == outcome]
        known = known_of(reader, deletions, [row for row in made if row["id"] in listed], rows, evidence)
        covered = listed.union(*(one.members for one in known))
        found = Experience(scope, outcome, [evidence[one] for one in sorted(evidence) if one in covered], known)
        for row in made:
            newer = _replacing(index, row["id"])
            if row["id"] not in listed and not has_lapsed(row) and newer.isdisjoint(one["id"] for one in own):
                members = frozenset(row.get("source_event_ids", ()))
                found.put_away.append(Known(row, members, gone="deleted" if newer else ""))
        for one in deleted:
            is_kept = any(len(other.members & one.members) * 2 > len(one.members) for other in known)
            if one.row.get("outcome", "unknown") == outcome and not is_kept:
                found.put_away.append(one)
        found.solved = solved
        yield found


def _replacing(index: Index, memory_id: str) -> set[str]:
    """Return the memories that supersede one."""
    others, codes = index.links.get(index.slot(memory_id))
    return {index.ids.names[slot] for slot in others[codes == -RELATION_CODE["SUPERSEDES"]].tolist()}
