"""Contradictions: which memories conflict with which is found out, written down, and where it is safe decided.

Looked at is what is new or has changed since the last run, each memory against a few that it shares its rarest words with, so
the cost grows with what is new and not with its square. Only memories of the same project, task and privacy tier meet. Where two
are linked already, by whomever and however, it is known how they stand to each other, and nothing is proposed.

A run is made of batches: each is decided under the writer lock, writes its links, one commit a write scope, and then how far it
has come. Stopped at any moment, the next run goes on from there, and ends as if there had been one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import Index
from memgraph.journal.envelope import Event
from memgraph.lifecycle.conflict import conflict_of
from memgraph.lifecycle.experience import SOURCE as COMPRESSION_SOURCE
from memgraph.lifecycle.resolution import in_order, is_decided, since
from memgraph.model.contradictions import CONTRADICTIONS, ContradictionResult, ContradictionsSought
from memgraph.model.events import (
    MemoryAdded,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    OutcomeRecorded,
)
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import OUTCOME_OF_WORD, AgentMemory
from memgraph.model.payload import Payload
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore

NEAR = 0.6
"""Least cosine of two memories that are compared: of the right proposals from real logs the least was 0.63."""
_OVERLAP = 0.5
"""Least share of the shorter one's terms that both have, where one has no vector."""
_RAREST = 6
_MOST_POSTINGS = 2_000
_MOST_NEAR = 64
_MOST_JUDGED = 16
_BATCH = 500
_MOST_REREAD = 5_000
"""After so many events without anything to look at a run still notes how far it has come."""
_SAME = ("project", "task", "tier")
"""Columns in which two memories must agree."""
_TELLING = frozenset(
    "content outcome entities tags project_id domain valid_at invalid_at is_suppressed archived_at trust_class confidence "
    "situation action".split()
)  # fmt: skip
_CONFIRMING = frozenset({"trust_class", "confidence", "valid_at"})

Slots = NDArray[np.int64]


def find_contradictions(
    store: AgentMemoryStore, *, seconds: float | None = None, progress: Progress | None = None
) -> ContradictionResult:
    """Compare what is new or has changed since the last run with what is in force. Run again, it writes nothing.

    Parameters
    ----------
    seconds : float, optional
        After so long no further batch is begun.
    progress : callable, optional
        Is told how many events have been gone through, and of how many.

    Raises
    ------
    ModelMismatchError
        The store has changed its embedding model meanwhile; what was found is kept, and the next run goes on.
    """
    started = time.monotonic()
    before = (store.reader.record("LifecycleRun", CONTRADICTIONS) or {}).get("seq", 0)
    total = store.reader.index.offset.seq - before
    result = ContradictionResult()
    for step in _steps(store.reader.events_after(before)):
        if seconds is not None and time.monotonic() - started > seconds:
            return result.model_copy(update={"complete": False})
        with store.exclusive():
            found = _sought(store, step.memory_ids, step.confirmed)
            counts = {"looked_at": found.looked_at, "found": found.found, "superseded": found.superseded}
            event = ContradictionsSought(sought_at=store.now(), through_seq=step.through_seq, **counts)
            store.commit("system", [event], actor="system")
        result = _added(result, found)
        if progress:
            progress(min(step.through_seq - before, total), total)
    return result


def find_contradictions_of(store: AgentMemoryStore, memory_ids: Iterable[str]) -> ContradictionResult:
    """Compare memories that were just written with what is in force, at once; a run looks at them again and finds no more."""
    ids = list(memory_ids)
    if not ids:
        return ContradictionResult()
    with store.exclusive():
        return _sought(store, ids, frozenset())


def told(result: ContradictionResult) -> str | None:
    """Return what was found, in words; None where that is nothing."""
    left = result.found - result.superseded
    said = [
        f"replaces {_memories(result.superseded)} that it contradicts" if result.superseded else "",
        f"contradicts {_memories(left)}: see `memgraph contradictions list`" if left > 0 else "",
    ]
    return "; ".join(filter(None, said)) or None


def _memories(number: int) -> str:
    return f"{number} {'memory' if number == 1 else 'memories'}"


class _Step(NamedTuple):
    """What a batch looks at: memories, those among them that were confirmed since, and the event up to which that is all."""

    memory_ids: list[str]
    confirmed: frozenset[str]
    through_seq: int


def _steps(events: Iterable[Event]) -> Iterator[_Step]:
    touched: dict[str, None] = {}
    confirmed: set[str] = set()
    first = seq = 0
    for event in events:
        ids, confirms = _touched(event)
        touched |= dict.fromkeys(ids)
        confirmed |= set(ids if confirms else ())
        payload = event.payload
        if isinstance(payload, MemoryUnlinked) and payload.relation == "SUPERSEDES":
            confirmed -= {payload.source_id, payload.target_id}  # somebody has thought otherwise since
        seq = event.seq
        first = first or seq
        if len(touched) >= _BATCH:
            yield _Step(list(touched), frozenset(confirmed), seq)
            touched, confirmed, first = {}, set(), seq
    if touched or seq - first > _MOST_REREAD:
        yield _Step(list(touched), frozenset(confirmed), seq)


def _touched(event: Event) -> tuple[list[str], bool]:
    """Return whose claims an event can have changed, and whether it confirms them."""
    payload = event.payload
    if isinstance(payload, MemoryRevised):
        told = {*event.content.get("changed", ()), *event.content.get("cleared", ())}
        return ([payload.id], bool(told & _CONFIRMING)) if told & _TELLING else ([], False)
    if isinstance(payload, MemoryAdded | MemoryMerged | MemoryUndeleted):
        return payload.memory_ids()[:1], isinstance(payload, MemoryMerged)
    if isinstance(payload, OutcomeRecorded) and OUTCOME_OF_WORD.get(payload.outcome) == "positive":
        return payload.used, True
    return [], False


def _added(one: ContradictionResult, other: ContradictionResult) -> ContradictionResult:
    return ContradictionResult(
        looked_at=one.looked_at + other.looked_at,
        found=one.found + other.found,
        superseded=one.superseded + other.superseded,
        memory_ids=[*one.memory_ids, *other.memory_ids],
    )


@dataclass(slots=True)
class _Findings:
    """What a batch has found so far."""

    links: list[tuple[str | None, MemoryLinked]] = field(default_factory=list)
    compared: set[frozenset[str]] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)


def _sought(store: AgentMemoryStore, memory_ids: list[str], confirmed: frozenset[str]) -> ContradictionResult:
    """Look at some memories and commit what is found. The writer lock is held."""
    index, now = store.reader.index, store.now()
    in_force = store.reader.listed() & ~store.reader.superseded()
    slots = [slot for one in memory_ids if (slot := index.slot(one)) >= 0 and in_force[slot]]
    found = _Findings()
    for memory in store.read_memories([index.ids.names[slot] for slot in slots]):
        for rival in _rivals(store, memory, in_force):
            if memory.id not in found.retired and rival.id not in found.retired:
                _compare(store, memory, rival, found, confirmed=confirmed, now=now)
    ordered = sorted(found.links, key=lambda link: link[0] or "")
    for task_id, group in groupby(ordered, key=lambda link: link[0]):
        events: list[Payload] = [link for _, link in group]
        store.commit("task" if task_id else "global", events, task_id=task_id, actor="system")
    new = [link.source_id for _, link in found.links if link.relation == "CONTRADICTS"]
    return ContradictionResult(
        looked_at=len(slots), found=len(new), superseded=len(found.retired), memory_ids=list(dict.fromkeys(new))
    )


def _compare(
    store: AgentMemoryStore,
    one: AgentMemory,
    other: AgentMemory,
    found: _Findings,
    *,
    confirmed: frozenset[str],
    now: str,
) -> None:
    """Note how two memories conflict, if they do, and whether that is decided."""
    pair = frozenset([one.id or "", other.id or ""])
    older, newer = in_order(one, other)
    relations = _relations(store.reader.index, one.id or "", other.id or "")
    is_known = relations == {"CONTRADICTS"}
    if pair in found.compared or (relations and not (is_known and newer.id in confirmed)):
        return
    found.compared.add(pair)
    if older.invalid_at is not None and older.invalid_at <= since(newer):
        return  # each has its time
    conflict = conflict_of(older, newer)
    if conflict is None:
        return
    ends = {"source_id": newer.id or "", "target_id": older.id or ""}
    said = {**ends, "score": conflict.score, "reason": conflict.reason, "created_at": now}
    if not is_known:
        found.links.append((newer.task_id, MemoryLinked(relation="CONTRADICTS", **said)))
    if is_decided(conflict, older, newer, is_confirmed=newer.id in confirmed, now=now):
        found.links.append((newer.task_id, MemoryLinked(relation="SUPERSEDES", **said)))
        found.retired.add(older.id or "")


def _relations(index: Index, one_id: str, other_id: str) -> set[str]:
    """Return how two memories are linked, in either direction."""
    others, codes = index.links.get(index.slot(one_id))
    return {EXPLICIT_RELATIONS[code - 1] for code in np.abs(codes[others == index.slot(other_id)]).tolist()}


def _rivals(store: AgentMemoryStore, memory: AgentMemory, in_force: NDArray[np.bool_]) -> list[AgentMemory]:
    """Return the few memories in force that speak of the same things as one, the nearest first, ties in id order."""
    index = store.reader.index
    slot = index.slot(memory.id or "")
    if memory.source == COMPRESSION_SOURCE:
        return []  # it says what its episodes say
    near = _nearest(store, memory, slot, _sharing(index, slot, in_force))
    rivals = store.read_memories([index.ids.names[other] for other in near])
    return [rival for rival in rivals if rival.source != COMPRESSION_SOURCE]


def _sharing(index: Index, slot: int, in_force: NDArray[np.bool_]) -> Slots:
    """Return the slots of the same scope that share most of the memory's rarest terms: a bounded number of them."""
    postings = sorted((index.postings.get(code)[0] for code in np.unique(index.sequences.get(slot)).tolist()), key=len)
    telling = [slots[-_MOST_POSTINGS:] for slots in postings if len(slots) > 1][:_RAREST]
    if not telling:
        return np.empty(0, dtype=np.int64)
    others, shared = np.unique(np.concatenate(telling), return_counts=True)
    fits = in_force[others] & (others != slot)
    for name in _SAME:
        fits &= index.column(name)[others] == index.column(name)[slot]
    domain = index.column("domain")
    fits &= (domain[others] == domain[slot]) | (domain[others] < 0) | (domain[slot] < 0)
    others, shared = others[fits], shared[fits]
    first = np.lexsort((-index.column("seq")[others], -shared))[:_MOST_NEAR]
    near: Slots = others[first].astype(np.int64)
    return near


def _nearest(store: AgentMemoryStore, memory: AgentMemory, slot: int, others: Slots) -> list[int]:
    """Return those that are near by their vectors or, where one has none, by their words."""
    index = store.reader.index
    if not len(others):
        return []
    own = set(index.sequences.get(slot).tolist())
    alike = np.array([_overlap(own, set(index.sequences.get(other).tolist())) for other in others.tolist()])
    near = alike >= _OVERLAP
    if memory.embedding is not None:
        has_vector = index.column("vector_row")[others] >= 0
        cosines = np.round(store.reader.cosines(memory.embedding, others), 6)
        near = np.where(has_vector, cosines >= NEAR, near)
        alike = np.where(has_vector, cosines, alike)
    ranked = sorted((-alike[at], index.ids.names[others[at]], int(others[at])) for at in np.flatnonzero(near))
    return [other for _, _, other in ranked[:_MOST_JUDGED]]


def _overlap(one: set[int], other: set[int]) -> float:
    return len(one & other) / (min(len(one), len(other)) or 1)
