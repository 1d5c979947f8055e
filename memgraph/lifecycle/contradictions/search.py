"""Search for contradictions: find conflicting memories, link them, and settle them where that is safe.

Memories that are new or have changed since the last run are each compared with a few that share their rarest words, so
the cost is linear in the number of changes. Only memories of the same project, task and privacy tier are compared. Two
memories that are already linked, by anyone and in any way, are skipped.

A run consists of batches. Each is decided under the writer lock, writes its links in one commit per write scope, and
then records its progress. After an interruption the next run continues from there, with the same final result.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from memgraph.fold.fold import last_known
from memgraph.index.columns import TRUST
from memgraph.index.index import Index
from memgraph.lifecycle.contradictions.changes import Batch, batches_after
from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.contradictions.resolution import is_decided, replaced_by, replaces
from memgraph.lifecycle.contradictions.restated import gives_up, is_users
from memgraph.lifecycle.evidence.evidence import revised
from memgraph.lifecycle.evidence.experience import SOURCE as COMPRESSION_SOURCE
from memgraph.lifecycle.run.changes import last_run
from memgraph.lifecycle.run.runner import Commit, Plan, View, account, added, carry_out
from memgraph.model.base import Seconds, checked
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.events.payload import Actor, Payload
from memgraph.model.events.records import CONTRADICTIONS, ContradictionsSought
from memgraph.model.link import EXPLICIT_RELATIONS, in_order, since
from memgraph.model.memory import StoredMemory
from memgraph.model.results.learning import ContradictionResult
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.query import Reader
from memgraph.text.words import overlap

NEAR = 0.6
"""Minimum cosine of two memories that are compared: the lowest of the correct proposals from real logs was 0.63."""
_NEAR_SAID = 0.3
"""The same for two statements of a user: who takes a rule back need not repeat it."""
_OVERLAP = 0.5
"""Minimum share of the shorter text's terms that both must contain if one has no vector."""
_NAMED = 0.1
"""The same where one says what is given up: its name is enough."""
_RAREST = 6
_MOST_POSTINGS = 2_000
_MOST_NEAR = 64
_MOST_JUDGED = 16
_MOST_KNOWN = 20_000
_MOST_APART = 1_000_000
_SAME = ("project", "task", "tier")
"""Columns in which two memories must agree."""
Mask = NDArray[np.bool_]
Slots = NDArray[np.int64]


def find_contradictions(
    store: AgentMemoryStore,
    *,
    seconds: float | None = None,
    progress: Progress | None = None,
    actor: Actor = "system",
) -> ContradictionResult:
    """Compare memories that are new or have changed since the last run with those in force. Idempotent.

    Parameters
    ----------
    seconds : float, optional
        No further batch begins after this time.
    progress : callable, optional
        Called with (done, total) events.
    actor : {"user", "agent", "system"}
        Who asked for it.

    Raises
    ------
    InvalidInputError
        `seconds` is not a number ≥ 0.
    ModelMismatchError
        The store's embedding model has changed meanwhile; links found so far are kept, and the next run continues.
    """
    seconds = checked(Seconds | None, seconds, "seconds")
    started = time.monotonic()
    before = last_run(store.reader, CONTRADICTIONS).get("seq", 0)
    total = store.reader.index.offset.seq - before
    result, known = ContradictionResult(), _Cache(store.reader)
    for step in batches_after(store.reader, before):
        if seconds is not None and time.monotonic() - started >= seconds:
            return result.model_copy(update={"complete": False})
        found, seqs = carry_out(store, partial(_planned_and_noted, step=step, known=known), attempts=1, actor=actor)
        known.through_seq = seqs[-1]
        result = added(result, found)
        if progress:
            progress(min(step.through_seq - before, total), total)
    return result


def find_contradictions_of(
    store: AgentMemoryStore, memory_ids: Iterable[str], *, actor: Actor = "system", may: Permits = everything
) -> ContradictionResult:
    """Compare memories that were just written with those in force that their writer may have.

    A later run compares them again, with all; it finds no more of the ones that were compared.

    Parameters
    ----------
    actor : {"user", "agent", "system"}
        Who wrote them.
    """
    ids = list(memory_ids)
    if not ids:
        return ContradictionResult()
    step = Batch(ids, frozenset(), frozenset(), 0, 0)
    planned = partial(_planned, step=step, known=_Cache(store.reader), may=may)
    return carry_out(store, planned, attempts=1, actor=actor).result


def described(result: ContradictionResult) -> str | None:
    """Return a message about what was found; None if there is nothing."""
    left = result.found - result.superseded
    said = [
        f"replaces {_memories(result.replaced)} that held until then" if result.replaced else "",
        f"replaces {_memories(result.superseded)} that it contradicts" if result.superseded else "",
        f"contradicts {_memories(left)}: see `memgraph contradictions list`" if left > 0 else "",
    ]
    return "; ".join(filter(None, said)) or None


def _memories(number: int) -> str:
    return f"{number} {'memory' if number == 1 else 'memories'}"


@dataclass(slots=True)
class _Findings:
    """Findings of a batch."""

    writes: list[tuple[str | None, Payload]] = field(default_factory=list)
    contradicting: list[str] = field(default_factory=list)
    compared: set[frozenset[str]] = field(default_factory=set)
    retired: set[str] = field(default_factory=set)
    replaced: int = 0


class _Cache:
    """Cache of a run, valid until another writer commits: memories, the slots that hold a term, and pairs without conflict.

    Attributes
    ----------
    apart : set of (int, int)
        Pairs of slots, the lower one first.
    through_seq : int
        The last event that this run wrote; its events changed no memory but those that they took out of force.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.apart: set[tuple[int, int]] = set()
        self._memories: dict[str, StoredMemory] = {}
        self._holders: dict[int, NDArray[np.int32]] = {}
        self.through_seq = -1

    def read(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        """Return these memories, in this order."""
        lacking = [one for one in memory_ids if one not in self._memories]
        self._memories |= {memory.id: memory for memory in self._reader.read(lacking)} if lacking else {}
        return [self._memories[one] for one in memory_ids if one in self._memories]

    def holders(self, code: int) -> NDArray[np.int32]:
        """Return the slots whose texts contain a term. Cached, since a look-up may scan all recent writes."""
        if code not in self._holders:
            self._holders[code] = self._reader.index.postings.get(code)[0]
        return self._holders[code]

    def has_risen(self, memory: StoredMemory, after_seq: int) -> bool:
        """Return whether a memory's confidence or trust has risen since, and neither fell. Reads the journal: call it last."""
        memory_id = memory.id
        events = (event for event in self._reader.history(memory_id) if event.seq <= after_seq)
        if (then := last_known(events, memory_id)) is None:
            return False  # compared when it was written
        sure, distrust = then.row.get("confidence", 1.0), TRUST.index(then.row.get("trust_class", "agent"))
        now = memory.confidence, TRUST.index(memory.trust_class)
        return now != (sure, distrust) and now[0] >= sure and now[1] <= distrust

    def refresh(self) -> None:
        """Clear the cache if another writer has committed, or if it has become too large."""
        is_much = len(self._memories) > _MOST_KNOWN or len(self.apart) > _MOST_APART
        if is_much or self._reader.index.offset.seq != self.through_seq:
            self._memories.clear()
            self._holders.clear()
            self.apart.clear()


class _Field:
    """The memories that a batch is compared with: those in force when it began."""

    def __init__(self, reader: Reader, known: _Cache, may: Permits = everything) -> None:
        self.reader, self.index, self.known = reader, reader.index, known
        told = ~reader.index.column("is_session_bound")  # what is only told in its session decides nothing beyond it
        self.in_force = reader.listed() & ~reader.superseded() & told
        self._rivals = self.in_force & may(reader)
        self._fitting: dict[tuple[int, ...], Mask] = {}

    def fitting(self, slot: int) -> Mask:
        """Return which slots in force have the same scope as one, its own included. Costs one pass over all per scope."""
        scope = tuple(int(self.index.column(name)[slot]) for name in (*_SAME, "domain"))
        if scope not in self._fitting:
            domain = self.index.column("domain")
            fits = self._rivals & ((domain == scope[-1]) | (domain < 0) | (scope[-1] < 0))
            for name, code in zip(_SAME, scope, strict=False):
                fits &= self.index.column(name) == code
            self._fitting[scope] = fits
        return self._fitting[scope]


def _planned_and_noted(view: View, step: Batch, known: _Cache) -> Plan[ContradictionResult]:
    """Plan the findings among some memories, and the record of the run's progress."""
    plan = _planned(view, step, known)
    counts = {name: getattr(plan.result, name) for name in ("looked_at", "found", "superseded")}
    sought = ContradictionsSought(sought_at=view.now, through_seq=step.through_seq, **counts)
    return replace(plan, commits=[*plan.commits, account(sought)])


def _planned(view: View, step: Batch, known: _Cache, may: Permits = everything) -> Plan[ContradictionResult]:
    """Compare some memories and plan the links for what is found."""
    known.refresh()
    field, now = _Field(view.reader, known, may), view.now
    index = field.index
    slots = [slot for one in step.memory_ids if (slot := index.slot(one)) >= 0 and field.in_force[slot]]
    found = _Findings()
    for memory in known.read([index.ids.names[slot] for slot in slots]):
        slot = index.slot(memory.id)
        linked = _linked(index, slot)
        for other, rival in _rivals(field, memory, slot):
            if memory.id not in found.retired and rival.id not in found.retired:
                relations = linked.get(other, frozenset())
                if not _compare(memory, rival, relations, found, step=step, known=known, now=now):
                    known.apart.add(_pair(slot, other))
    ordered = sorted(found.writes, key=lambda write: write[0] or "")
    commits = [
        Commit([event for _, event in group], task_id)
        for task_id, group in groupby(ordered, key=lambda write: write[0])
    ]
    result = ContradictionResult(
        looked_at=len(slots),
        found=len(found.contradicting),
        superseded=len(found.retired) - found.replaced,
        replaced=found.replaced,
        memory_ids=list(dict.fromkeys(found.contradicting)),
    )
    return Plan(result, commits)


def _compare(
    one: StoredMemory,
    other: StoredMemory,
    relations: Set[str],
    found: _Findings,
    *,
    step: Batch,
    known: _Cache,
    now: str,
) -> bool:
    """Note how two memories conflict, if they do, and whether it is settled. Return whether a later comparison may differ."""
    older, newer = in_order(one, other)
    is_confirmed, is_known = newer.id in step.confirmed, relations == {"CONTRADICTS"}
    may_be_decided = is_confirmed or newer.id in step.weighed
    pair = frozenset([one.id, other.id])
    if pair in found.compared or (relations and not (is_known and may_be_decided)):
        return True
    if older.invalid_at is not None and older.invalid_at <= since(newer):
        return False  # each is valid in its own period
    conflict = conflict_of(older, newer)
    if conflict is None:
        return False
    found.compared.add(pair)
    ends = {"source_id": newer.id, "target_id": older.id}
    said = {**ends, "score": conflict.score, "reason": conflict.noted, "created_at": now}
    if not is_known and replaces(conflict, older, newer, now=now):
        ended = revised(older, replaced_by(newer, older, now))
        found.writes += [(newer.task_id, MemoryLinked(relation="SUPERSEDES", **said)), (newer.task_id, ended)]
        found.retired.add(older.id)
        found.replaced += 1
        return True
    if not is_known:
        found.writes.append((newer.task_id, MemoryLinked(relation="CONTRADICTS", **said)))
        found.contradicting.append(newer.id)
    is_certain = is_decided(conflict, older, newer, is_confirmed=is_confirmed, now=now)
    if is_certain and (not is_known or is_confirmed or known.has_risen(newer, step.after_seq)):
        found.writes.append((newer.task_id, MemoryLinked(relation="SUPERSEDES", **said)))
        found.retired.add(older.id)
    return True


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _linked(index: Index, slot: int) -> dict[int, Set[str]]:
    """Return the links between one slot and others, in either direction."""
    found: dict[int, Set[str]] = {}
    for other, code in zip(*(part.tolist() for part in index.links.get(slot)), strict=True):
        found[other] = found.get(other, set()) | {EXPLICIT_RELATIONS[abs(code) - 1]}
    return found


def _rivals(field: _Field, memory: StoredMemory, slot: int) -> list[tuple[int, StoredMemory]]:
    """Return the few memories in force that may contradict one, with their slots, nearest first, ties in id order."""
    if memory.source == COMPRESSION_SOURCE:
        return []  # it repeats what its episodes say
    says_more = is_users(memory), gives_up(memory)
    least = _NEAR_SAID if any(says_more) else NEAR, _NAMED if says_more[1] else _OVERLAP
    near = _nearest(field, memory, slot, _sharing(field, slot), least)
    near = {other: alike for other, alike in near.items() if _pair(slot, other) not in field.known.apart}
    rivals = field.known.read([field.index.ids.names[other] for other in near])
    return [
        (at, rival)
        for at, rival in zip(near, rivals, strict=True)
        if rival.source != COMPRESSION_SOURCE
        and (near[at] >= NEAR or rival.embedding is None or says_more[1] or (says_more[0] and is_users(rival)))
    ]


def _sharing(field: _Field, slot: int) -> Slots:
    """Return the slots of the same scope that share most of the memory's rarest terms: a bounded number."""
    index = field.index
    postings = sorted(map(field.known.holders, np.unique(index.sequences.get(slot)).tolist()), key=len)
    telling = [slots[-_MOST_POSTINGS:] for slots in postings if len(slots) > 1][:_RAREST]
    if not telling:
        return np.empty(0, dtype=np.int64)
    holders = np.concatenate(telling)
    holders = holders[field.fitting(slot)[holders]]
    others, shared = np.unique(holders[holders != slot], return_counts=True)
    first = np.lexsort((-index.column("seq")[others], -shared))[:_MOST_NEAR]
    near: Slots = others[first].astype(np.int64)
    return near


def _nearest(
    field: _Field, memory: StoredMemory, slot: int, others: Slots, least: tuple[float, float]
) -> dict[int, float]:
    """Return those that are near enough by their vectors or, where one has none, by their words, and how near; nearest first."""
    index = field.index
    if not len(others):
        return {}
    has_vector = field.reader.has_vector(others) & (memory.embedding is not None)
    alike = np.zeros(len(others))
    if memory.embedding is not None and has_vector.any():
        alike[has_vector] = np.round(field.reader.cosines(memory.embedding, others[has_vector]), 6)
    if not has_vector.all():
        own = set(index.sequences.get(slot).tolist())
        for at in np.flatnonzero(~has_vector).tolist():
            alike[at] = overlap(own, set(index.sequences.get(others[at]).tolist()), of_smaller=True)
    near = alike >= np.where(has_vector, *least)
    ranked = sorted((-alike[at], index.ids.names[others[at]], int(others[at])) for at in np.flatnonzero(near))
    return {other: -alike for alike, _, other in ranked[:_MOST_JUDGED]}
