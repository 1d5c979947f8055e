"""Temporal validation: facts whose own end has passed are invalid, and a newer one counts once its time has come (seed 2).

Nothing is retired for its age: a fact holds until it says itself, or somebody else says, that it does not. Retired is a fact
(a semantic memory) whose text states an end that has passed; and the older side of an open contradiction whose newer side began
to hold later than it was written down. What is pinned stays, and is counted: who pinned it decides. What its ``invalid_at``
says needs no run: that is seen by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.contradictions.resolution import is_decided, open_contradictions
from memgraph.lifecycle.contradictions.stated_ends import stated_end
from memgraph.lifecycle.evidence.evidence import TimeIsUp, never
from memgraph.model.events.lifecycle import phase_key
from memgraph.model.events.links import MemoryLinked
from memgraph.model.events.memories import MemoryRevised, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.memory import since
from memgraph.model.results.contradictions import Contradiction
from memgraph.model.results.sleep import TemporalResult
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore

PHASE = "temporal"
STATED = "its own end has passed: the text says until when it holds"
"""Why a fact is invalid."""
_BATCH = 1_000


def validate_facts(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> TemporalResult:
    """Retire facts whose time is over. Run again, it writes nothing; `revalidate` and `unsupersede` take it back for good.

    Parameters
    ----------
    is_time_up : callable, optional
        Asked every thousand facts.
    """
    looked_at = expired = pinned = 0
    for ids in _facts(store):
        if is_time_up():
            return TemporalResult(looked_at=looked_at, expired=expired, ended_but_pinned=pinned, complete=False)
        stated, passed, kept = _expire(store, ids)
        looked_at, expired, pinned = looked_at + stated, expired + passed, pinned + kept
    open_ones, replaced = _replace(store)
    return TemporalResult(looked_at=looked_at + open_ones, expired=expired, replaced=replaced, ended_but_pinned=pinned)


def _facts(store: AgentMemoryStore) -> Iterator[list[str]]:
    """Yield the ids of facts in force without an end of validity, those of one write scope at a time, in batches."""
    with store.reader.frozen(links=True):
        index = store.reader.index
        mask = store.reader.listed(type="semantic") & np.isinf(index.column("invalid_days"))
        slots = np.flatnonzero(mask)
        task, seq = index.column("task")[slots], index.column("seq")[slots]
        slots = slots[np.lexsort((seq, task))]
        tasks = index.column("task")[slots]
        parts = np.split(slots, np.flatnonzero(np.diff(tasks)) + 1)
        batches = [
            [index.ids.names[slot] for slot in part[start : start + _BATCH].tolist()]
            for part in parts
            for start in range(0, len(part), _BATCH)
        ]
    yield from batches


def _expire(store: AgentMemoryStore, ids: Sequence[str]) -> tuple[int, int, int]:
    """Say of some facts of one write scope that they are invalid.

    Return how many state an end, of how many it has passed, and how many of which it has passed are pinned.
    """
    now = store.now()
    stating = [(row, end) for row in store.reader.rows(ids) if (end := _end_of(row)) is not None]
    pinned = sum(end <= now and row.get("is_pinned", False) for row, end in stating)
    over = [row["id"] for row, end in stating if end <= now and not row.get("is_pinned", False)]
    if not over:
        return len(stating), 0, pinned
    with store.exclusive():
        now = store.now()
        rows = [
            row
            for row in store.reader.rows(over)
            if (end := _end_of(row)) is not None and end <= now and not row.get("is_pinned", False)
        ]
        events: list[Payload] = [_expired(row, now) for row in rows]
        task_id = rows[0].get("task_id") if rows else None
        store.commit("task" if task_id else "global", events, task_id=task_id, actor="system")
    return len(stating), len(events), pinned


def _end_of(row: Row) -> str | None:
    """Return when a fact ceases to hold by its own text, None if it does not say; whoever changed it after its end knew better."""
    changed_at = row["updated_at"] if row["updated_at"] > row["created_at"] else ""
    said_at = max(row["occurred_at"], row.get("valid_at", ""), changed_at)
    return None if "invalid_at" in row else stated_end(row["content"], said_at)


def _expired(row: Row, now: str) -> MemoryRevised:
    changed = {"invalid_at": _end_of(row), "invalidation_reason": STATED, "updated_at": now}
    return MemoryRevised(id=row["id"], changed=RecordPatch.parse(changed))


def _replace(store: AgentMemoryStore) -> tuple[int, int]:
    """Let newer facts replace those that they contradict, where their time came since the last run."""
    run = store.reader.record("LifecycleRun", phase_key(PHASE)) or {}
    replaced = 0
    with store.exclusive():
        found, now = open_contradictions(store), store.now()
        gone: set[str] = set()
        for pair in found:
            began = since(pair.newer)
            if not max(pair.found_at or "", run.get("applied_at", "")) < began <= now:
                continue
            if gone & {pair.newer.id, pair.older.id} or (link := _replacing(pair, now)) is None:
                continue
            task_id = pair.newer.task_id
            store.commit("task" if task_id else "global", [link], task_id=task_id, actor="system")
            gone.add(pair.older.id or "")
            replaced += 1
    return len(found), replaced


def _replacing(pair: Contradiction, now: str) -> MemoryLinked | None:
    conflict = conflict_of(pair.older, pair.newer)
    if conflict is None or not is_decided(conflict, pair.older, pair.newer, is_confirmed=False, now=now):
        return None
    said = {"score": conflict.score, "reason": conflict.noted, "created_at": now}
    ends = {"source_id": pair.newer.id or "", "target_id": pair.older.id or ""}
    return MemoryLinked(relation="SUPERSEDES", **ends, **said)
