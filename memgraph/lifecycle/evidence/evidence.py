"""What learning works on: the episodes that are true still, by project and task, faded ones included; and how it writes what it learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import TIERS, TRUST
from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.model.events.links import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.payload import Payload, WriteScope, sparse
from memgraph.model.events.recalls import AccessRecorded
from memgraph.model.events.reembedding import MemoryReembedded
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, id_of
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.append import Write
from memgraph.store.commit.records import patch, record_of
from memgraph.store.query import Reader

Scope = tuple[str | None, str | None]
"""A project and a task, by name: what was learned in one is never mixed with another."""
TimeIsUp = Callable[[], bool]

MOST_PER_SCOPE = 100_000
"""Of a scope with more memories the latest are looked at."""
LEAST_BUILDS = 3
"""Builds in which something was seen, before it is a pattern (design §5)."""
CONFIDENCE = {3: 0.7, 4: 0.8}
CONFIDENCE_AT_MOST = 0.9
_MOST_IN_A_COMMIT = 400
_OF_USE = AccessRecorded | MemoryReembedded | MemoryDerived | MemoryLinked | MemoryUnlinked
"""Events that say how a memory is used, kept and linked, and nothing else of it."""
_PORTION_EVENTS = 20_000


def never() -> bool:
    """Return False: there is time."""
    return False


def confidence_of(builds: int) -> float:
    """Return how sure something is that was seen in so many builds, three or more."""
    return CONFIDENCE.get(builds, CONFIDENCE_AT_MOST)


def waiting(reader: Reader, run_key: str, types: Sequence[str], *, now: str, until: int) -> Iterator[tuple[Scope, int]]:
    """Yield the scopes in which memories of these types have changed since a run of the lifecycle looked at them, each once.

    With each comes the first event that it waits for, and they come in the order of these: once some are done, everything
    before the event of the next one has been looked at. The journal is read as far as they are asked for, in portions.

    Parameters
    ----------
    until : int
        Of later events the next run hears.
    """
    with reader.frozen(links=True):
        index = reader.index
        run = reader.record("LifecycleRun", run_key) or {}
        since = run.get("seq", 0)
        kinds = [MEMORY_TYPES.index(kind) for kind in types]
        is_wanted = index.column("is_live") & np.isin(index.column("type"), kinds)
        if since:
            slots = expired(index, run, now)
            first = dict.fromkeys(_scopes(index, slots[is_wanted[slots]]), since + 1)
        else:
            slots = np.flatnonzero(is_wanted)
            first = _earliest(zip(_scopes(index, slots), index.column("seq")[slots].tolist(), strict=True))
            since = until
    known: set[Scope] = set()
    while True:
        in_order = sorted(first.items(), key=lambda item: (item[1], item[0][0] or "", item[0][1] or ""))
        new = [(scope, seq) for scope, seq in in_order if scope not in known]
        known.update(first)
        yield from new
        if since >= until:
            return
        with reader.frozen(links=True):
            touched, since = _touched(reader, since, until)
            first = _earliest(_places(reader, touched, kinds))


def _touched(reader: Reader, since: int, until: int) -> tuple[dict[str, int], int]:
    """Return the memories that some thousand events touched, with the first such event of each, and how far they go."""
    touched: dict[str, int] = {}
    for event in reader.events_after(since):
        if event.seq > until:
            break
        if not isinstance(event.payload, _OF_USE):
            for one in event.payload.memory_ids():
                touched.setdefault(one, event.seq)
        if event.seq - since >= _PORTION_EVENTS:
            return touched, event.seq
    return touched, until


def _places(reader: Reader, touched: Mapping[str, int], kinds: Sequence[int]) -> Iterator[tuple[Scope, int]]:
    """Yield where the memories are, or were: what was deleted is missed there."""
    index = reader.index
    gone: dict[str, int] = {}
    slots: list[int] = []
    for one in touched:
        if (slot := index.ids.find(one)) < 0:
            gone[one] = touched[one]
        elif not index.column("is_live")[slot] or index.column("type")[slot] in kinds:
            slots.append(slot)
    seqs = [touched[index.ids.names[slot]] for slot in slots]
    yield from zip(_scopes(index, np.array(slots, dtype=np.int64)), seqs, strict=True)
    for row, _ in reader.deleted(sorted(gone)) if gone else ():
        if MEMORY_TYPES.index(row["type"]) in kinds:
            yield (row.get("project_id"), row.get("task_id")), gone[row["id"]]


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


def expired(index: Index, run: Row, now: str) -> NDArray[np.int64]:
    """Return the slots of what has ceased to be valid by itself since a run."""
    until = index.column("invalid_days")
    return np.flatnonzero((until > epoch_days(run["applied_at"])) & (until <= epoch_days(now)))


def sources_of(index: Index, memory_id: str) -> set[str]:
    """Return what a memory was made of, and what it quotes."""
    others, codes = index.links.get(index.slot(memory_id))
    return {index.ids.names[slot] for slot in others[codes == RELATION_CODE["DERIVED_FROM"]].tolist()}


def _name(names: Sequence[str], kind: str, code: int) -> str | None:
    return names[code].removeprefix(scope_name(kind, "")) if code >= 0 else None


def read_scope(reader: Reader, scope: Scope, types: Sequence[str]) -> list[Row]:
    """Return the rows of a scope's memories of these types, whatever state they are in, in id order."""
    index = reader.index
    mask = index.column("is_live") & np.isin(index.column("type"), [MEMORY_TYPES.index(kind) for kind in types])
    for kind, name in zip(("project", "task"), scope, strict=True):
        code = index.scopes.find(scope_name(kind, name)) if name is not None else -1
        mask &= index.column(kind) == code
    slots: NDArray[np.int64] = np.flatnonzero(mask)
    slots = slots[np.argsort(index.column("seq")[slots], kind="stable")][-MOST_PER_SCOPE:]
    return reader.rows(sorted(index.ids.names[slot] for slot in slots.tolist()))


def is_true(row: Row, now: str) -> bool:
    """Whether a memory is evidence: neither forgotten nor invalid. What faded, or was replaced, happened all the same."""
    return not row.get("is_suppressed", False) and not row.get("invalid_at", "9999") <= now


def shared_context(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is derived from some memories inherits: the strictest tier, the lowest trust, a domain that all have."""
    domains = {row.get("domain") for row in rows}
    return {
        "domain": domains.pop() if len(domains) == 1 else None,
        "privacy_tier": max((row.get("privacy_tier", "public") for row in rows), key=TIERS.index),
        "trust_class": max((row.get("trust_class", "agent") for row in rows), key=TRUST.index),
    }


def strictness(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the strictest privacy tier and the lowest trust of some rows.

    What is derived from memories goes on with those that it had, if they are the stricter ones: its words may be those of
    evidence that is gone, and somebody may have seen to it. Only a person makes it laxer.
    """
    return {name: value for name, value in shared_context(rows).items() if name != "domain"}


def may_tell(row: Row, rows: Sequence[Row]) -> bool:
    """Whether what is derived from some memories may repeat what another one says: it is no stricter in tier, no lower in trust."""
    derived = shared_context(rows)
    is_open = TIERS.index(row.get("privacy_tier", "public")) <= TIERS.index(derived["privacy_tier"])
    return is_open and TRUST.index(row.get("trust_class", "agent")) <= TRUST.index(derived["trust_class"])


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return memories in the order in which what they tell happened."""
    return sorted(rows, key=lambda row: (row.get("occurred_at", ""), row.get("seq", 0)))


def revision(before: AgentMemory, after: AgentMemory) -> MemoryRevised | None:
    """Return the event that turns one state of a memory into another; None if they differ in nothing but when that was."""
    now = after.updated_at or ""
    old = sparse(record_of(before, now=now, max_relevance=float("inf")).model_dump())
    changed, cleared = patch(old, record_of(after, now=now, max_relevance=float("inf")))
    if not cleared and set(sparse(changed.model_dump())) <= {"updated_at"}:
        return None
    return MemoryRevised(id=id_of(before), changed=changed, cleared=cleared)


def unlinked(memory_id: str, source_ids: Sequence[str]) -> Iterator[Payload]:
    """Yield the events that take a memory's derivation from some others back."""
    for one in source_ids:
        yield MemoryUnlinked(source_id=memory_id, relation="DERIVED_FROM", target_id=one)
        yield MemoryUnlinked(source_id=one, relation="SUPPORTS", target_id=memory_id)


def commit_each(store: AgentMemoryStore, scope: Scope, units: Sequence[Sequence[Write]]) -> set[int]:
    """Commit what belongs together in commits of a few hundred events, in the scope's own write scope; return their numbers."""
    write_scope: WriteScope = "task" if scope[1] else "global"
    batches: list[list[Write]] = [[]]
    for unit in units:
        if len(batches[-1]) + len(unit) > _MOST_IN_A_COMMIT:
            batches.append([])
        batches[-1].extend(unit)
    committed = [store.commit(write_scope, batch, task_id=scope[1], actor="system") for batch in batches]
    return {event.seq for events in committed for event in events}


def seen_up_to(store: AgentMemoryStore, began_at: int, own: set[int]) -> int:
    """Return the last event that a run has looked at: where it began, if somebody else has changed memories since. Needs the lock."""
    others = (event for event in store.reader.events_after(began_at) if event.seq not in own)
    if any(event.payload.memory_ids() for event in others if not isinstance(event.payload, _OF_USE)):
        return began_at
    return store.reader.index.offset.seq
