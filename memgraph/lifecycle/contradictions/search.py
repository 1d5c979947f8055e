"""Contradictions: which memories conflict with which is found out, written down, and where it is safe decided.

Looked at is what is new or has changed since the last run, each memory against a few that it shares its rarest words with, so
the cost grows with what is new and not with its square. Only memories of the same project, task and privacy tier meet. Where two
are linked already, by whomever and however, it is known how they stand to each other, and nothing is proposed.

A run is made of batches: each is decided under the writer lock, writes its links, one commit a write scope, and then how far it
has come. Stopped at any moment, the next run goes on from there, and ends as if there had been one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from memgraph.fold.last_state import last_known
from memgraph.index.columns import TRUST
from memgraph.index.index import Index
from memgraph.lifecycle.contradictions.changes import Changes, changes_in
from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.contradictions.resolution import is_decided
from memgraph.lifecycle.evidence.experience import SOURCE as COMPRESSION_SOURCE
from memgraph.model.base import Seconds, checked
from memgraph.model.events.lifecycle import CONTRADICTIONS, ContradictionsSought
from memgraph.model.events.links import MemoryLinked
from memgraph.model.events.payload import Payload
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import AgentMemory, in_order, since
from memgraph.model.results.contradictions import ContradictionResult
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
_MOST_KNOWN = 20_000
_MOST_APART = 1_000_000
_SAME = ("project", "task", "tier")
"""Columns in which two memories must agree."""
Mask = NDArray[np.bool_]
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
    InvalidInputError
        The time is no number of seconds, 0 or more.
    ModelMismatchError
        The store has changed its embedding model meanwhile; what was found is kept, and the next run goes on.
    """
    seconds = checked(Seconds | None, seconds, "seconds")
    started = time.monotonic()
    before = (store.reader.record("LifecycleRun", CONTRADICTIONS) or {}).get("seq", 0)
    total = store.reader.index.offset.seq - before
    result, known = ContradictionResult(), _Known(store)
    for step in changes_in(store.reader.events_after(before)):
        if seconds is not None and time.monotonic() - started >= seconds:
            return result.model_copy(update={"complete": False})
        with store.exclusive():
            found = _sought(store, step, known)
            counts = {"looked_at": found.looked_at, "found": found.found, "superseded": found.superseded}
            event = ContradictionsSought(sought_at=store.now(), through_seq=step.through_seq, **counts)
            store.commit("system", [event], actor="system")
            known.stands()
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
        return _sought(store, Changes(ids, frozenset(), frozenset(), 0, 0), _Known(store))


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


class _Known:
    """What a run knows for as long as nobody else has written: memories, which of them hold a term, and which pairs do not conflict.

    Attributes
    ----------
    apart : set of (int, int)
        Pairs of slots, the lower one first.
    """

    def __init__(self, store: AgentMemoryStore) -> None:
        self._store = store
        self.apart: set[tuple[int, int]] = set()
        self._memories: dict[str, AgentMemory] = {}
        self._holders: dict[int, NDArray[np.int32]] = {}
        self._seq = -1

    def read(self, memory_ids: Sequence[str]) -> list[AgentMemory]:
        """Return these memories in this order."""
        lacking = [one for one in memory_ids if one not in self._memories]
        self._memories |= {memory.id or "": memory for memory in self._store.read_memories(lacking)} if lacking else {}
        return [self._memories[one] for one in memory_ids if one in self._memories]

    def holders(self, code: int) -> NDArray[np.int32]:
        """Return the slots whose texts hold a term: asked once, for a look-up may cost a pass over what was written of late."""
        if code not in self._holders:
            self._holders[code] = self._store.reader.index.postings.get(code)[0]
        return self._holders[code]

    def has_risen(self, memory: AgentMemory, after_seq: int) -> bool:
        """Whether a memory is surer, or trusted more, than it was then, and neither less. Reads the journal: ask last."""
        memory_id = memory.id or ""
        events = (event for event in self._store.reader.history(memory_id) if event.seq <= after_seq)
        if (then := last_known(events, memory_id)) is None:
            return False  # it was weighed when it was written
        sure, distrust = then.row.get("confidence", 1.0), TRUST.index(then.row.get("trust_class", "agent"))
        now = memory.confidence, TRUST.index(memory.trust_class)
        return now != (sure, distrust) and now[0] >= sure and now[1] <= distrust

    def stands(self) -> None:
        """Say that this run has written all that was written up to now, and no memory's own text or state with it."""
        self._seq = self._store.reader.index.offset.seq

    def refresh(self) -> None:
        """Forget everything if somebody else has written since, or it has become much."""
        is_much = len(self._memories) > _MOST_KNOWN or len(self.apart) > _MOST_APART
        if is_much or self._store.reader.index.offset.seq != self._seq:
            self._memories.clear()
            self._holders.clear()
            self.apart.clear()


class _Field:
    """What a batch is compared with: what was in force when it began."""

    def __init__(self, store: AgentMemoryStore, known: _Known) -> None:
        self.reader, self.index, self.known = store.reader, store.reader.index, known
        self.in_force = store.reader.listed() & ~store.reader.superseded()
        self._fitting: dict[tuple[int, ...], Mask] = {}

    def fitting(self, slot: int) -> Mask:
        """Return which slots in force have the same scope as one; its own among them. Costs a pass over all, once a scope."""
        scope = tuple(int(self.index.column(name)[slot]) for name in (*_SAME, "domain"))
        if scope not in self._fitting:
            domain = self.index.column("domain")
            fits = self.in_force & ((domain == scope[-1]) | (domain < 0) | (scope[-1] < 0))
            for name, code in zip(_SAME, scope, strict=False):
                fits &= self.index.column(name) == code
            self._fitting[scope] = fits
        return self._fitting[scope]


def _sought(store: AgentMemoryStore, step: Changes, known: _Known) -> ContradictionResult:
    """Look at some memories and commit what is found. The writer lock is held."""
    known.refresh()
    field, now = _Field(store, known), store.now()
    index = field.index
    slots = [slot for one in step.memory_ids if (slot := index.slot(one)) >= 0 and field.in_force[slot]]
    found = _Findings()
    for memory in known.read([index.ids.names[slot] for slot in slots]):
        slot = index.slot(memory.id or "")
        linked = _linked(index, slot)
        for other, rival in _rivals(field, memory, slot):
            if memory.id not in found.retired and rival.id not in found.retired:
                relations = linked.get(other, frozenset())
                if not _compare(memory, rival, relations, found, step=step, known=known, now=now):
                    known.apart.add(_pair(slot, other))
    ordered = sorted(found.links, key=lambda link: link[0] or "")
    for task_id, group in groupby(ordered, key=lambda link: link[0]):
        events: list[Payload] = [link for _, link in group]
        store.commit("task" if task_id else "global", events, task_id=task_id, actor="system")
    new = [link.source_id for _, link in found.links if link.relation == "CONTRADICTS"]
    return ContradictionResult(
        looked_at=len(slots), found=len(new), superseded=len(found.retired), memory_ids=list(dict.fromkeys(new))
    )


def _compare(
    one: AgentMemory,
    other: AgentMemory,
    relations: Set[str],
    found: _Findings,
    *,
    step: Changes,
    known: _Known,
    now: str,
) -> bool:
    """Note how two memories conflict, if they do, and whether that is decided. Tell whether more could be said another time."""
    older, newer = in_order(one, other)
    is_confirmed, is_known = newer.id in step.confirmed, relations == {"CONTRADICTS"}
    may_be_decided = is_confirmed or newer.id in step.weighed
    pair = frozenset([one.id or "", other.id or ""])
    if pair in found.compared or (relations and not (is_known and may_be_decided)):
        return True
    if older.invalid_at is not None and older.invalid_at <= since(newer):
        return False  # each has its time
    conflict = conflict_of(older, newer)
    if conflict is None:
        return False
    found.compared.add(pair)
    ends = {"source_id": newer.id or "", "target_id": older.id or ""}
    said = {**ends, "score": conflict.score, "reason": conflict.noted, "created_at": now}
    if not is_known:
        found.links.append((newer.task_id, MemoryLinked(relation="CONTRADICTS", **said)))
    is_certain = is_decided(conflict, older, newer, is_confirmed=is_confirmed, now=now)
    if is_certain and (not is_known or is_confirmed or known.has_risen(newer, step.after_seq)):
        found.links.append((newer.task_id, MemoryLinked(relation="SUPERSEDES", **said)))
        found.retired.add(older.id or "")
    return True


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _linked(index: Index, slot: int) -> dict[int, Set[str]]:
    """Return how other slots are linked with one, in either direction."""
    found: dict[int, Set[str]] = {}
    for other, code in zip(*(part.tolist() for part in index.links.get(slot)), strict=True):
        found[other] = found.get(other, set()) | {EXPLICIT_RELATIONS[abs(code) - 1]}
    return found


def _rivals(field: _Field, memory: AgentMemory, slot: int) -> list[tuple[int, AgentMemory]]:
    """Return the few memories in force that may contradict one, with their slots, the nearest first, ties in id order."""
    if memory.source == COMPRESSION_SOURCE:
        return []  # it says what its episodes say
    near = _nearest(field, memory, slot, _sharing(field, slot))
    near = [other for other in near if _pair(slot, other) not in field.known.apart]
    rivals = field.known.read([field.index.ids.names[other] for other in near])
    return [(at, rival) for at, rival in zip(near, rivals, strict=True) if rival.source != COMPRESSION_SOURCE]


def _sharing(field: _Field, slot: int) -> Slots:
    """Return the slots of the same scope that share most of the memory's rarest terms: a bounded number of them."""
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


def _nearest(field: _Field, memory: AgentMemory, slot: int, others: Slots) -> list[int]:
    """Return those that are near by their vectors or, where one has none, by their words."""
    index = field.index
    if not len(others):
        return []
    has_vector = field.reader.has_vector(others) & (memory.embedding is not None)
    alike = np.zeros(len(others))
    if memory.embedding is not None and has_vector.any():
        alike[has_vector] = np.round(field.reader.cosines(memory.embedding, others[has_vector]), 6)
    if not has_vector.all():
        own = set(index.sequences.get(slot).tolist())
        for at in np.flatnonzero(~has_vector).tolist():
            alike[at] = _overlap(own, set(index.sequences.get(others[at]).tolist()))
    near = alike >= np.where(has_vector, NEAR, _OVERLAP)
    ranked = sorted((-alike[at], index.ids.names[others[at]], int(others[at])) for at in np.flatnonzero(near))
    return [other for _, _, other in ranked[:_MOST_JUDGED]]


def _overlap(one: set[int], other: set[int]) -> float:
    return len(one & other) / (min(len(one), len(other)) or 1)
