"""Copies: identical texts that were stored through different doors become one memory.

What the user asked to remember, an agent observed and a session or a history says in equal words (`is_equal`) differs
in type, trust and source, so that near-duplicates are not compared across them. Of the copies the pinned one stays, then
the one that is trusted most, then the first. It supersedes the others, which are kept unchanged, and takes over their
sources and builds; a copy that is trusted less adds neither confidence nor relevance.

Copies have the same project, task, privacy tier and domain, and outcomes that agree. What near-duplicates exclude is
excluded here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from memgraph.index.columns import TRUST
from memgraph.lifecycle.dedup.duplicates import equal_memories
from memgraph.lifecycle.dedup.merge import joined, merge_writes, united
from memgraph.lifecycle.dedup.near_duplicates import comparable, linked, may_be_one
from memgraph.lifecycle.evidence.evidence import TimeIsUp, never
from memgraph.lifecycle.run.changes import MOST_EVENTS, Watch, changes_after, last_run
from memgraph.lifecycle.run.runner import Commit, Plan, View, added, carry_out
from memgraph.model.events.payload import Actor
from memgraph.model.events.records import AccessRecorded, phase_key
from memgraph.model.memory import StoredMemory
from memgraph.model.results.learning import CopiesResult
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.query import Mask, Reader

PHASE = "copies"
REASON = "same text"
"""Reason of the SUPERSEDES link from the memory that stays."""
_SCOPE = ("project", "task", "tier", "domain")
_MOST = 1_000
_WATCH = Watch(
    (AccessRecorded,), frozenset({"floor", "archive_summary", "relevance_anchor", "relevance_at", "updated_at"})
)


def merge_copies(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, on_portion: Callable[[int], None] | None = None
) -> CopiesResult:
    """Merge the copies among memories that are new or changed since this sleep phase last completed. Idempotent.

    Parameters
    ----------
    is_time_up : callable, optional
        Called before each portion but the first; once it returns true, the rest waits for the next run.
    on_portion : callable, optional
        Called after each portion but the last with the last journal event covered.
    """
    total = CopiesResult()
    since = last_run(store.reader, phase_key(PHASE)).get("seq", 0)
    until = store.reader.index.offset.seq
    portions = changes_after(
        store.reader, since, _WATCH.touched, until=until, most_memories=_MOST, most_events=MOST_EVENTS
    )
    for number, portion in enumerate(portions):
        if number and is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(_planned, ids=list(portion.touched))).result)
        if on_portion and not portion.is_last:
            on_portion(portion.through_seq)
    return total


def merge_copies_of(
    store: AgentMemoryStore, memory_ids: Iterable[str], *, actor: Actor = "system", may: Permits = everything
) -> dict[str, str]:
    """Merge the copies of memories that were just written, among those that their writer may have.

    Returns for each of these that is gone the one that stays.

    Parameters
    ----------
    actor : {"user", "agent", "system"}
        Who wrote them.
    """
    ids, stays = list(memory_ids), dict[str, str]()
    if ids:
        carry_out(store, partial(_planned, ids=ids, stays=stays, may=may), attempts=1, actor=actor)
    return {one: stays[one] for one in ids if one in stays}


def copies_of(store: AgentMemoryStore, memory_id: str) -> list[str]:
    """Return the copies that were merged into a memory: they would be in force again without it."""
    found: dict[str, None] = {}
    waiting = [memory_id]
    while waiting:
        one = waiting.pop()
        links = (link for link in store.links(one) if link.relation == "SUPERSEDES" and link.source_id == one)
        new = [link.target_id for link in links if link.reason == REASON and link.target_id not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return [one for one in found if one != memory_id]


def _planned(
    view: View, ids: Iterable[str], stays: dict[str, str] | None = None, may: Permits = everything
) -> Plan[CopiesResult]:
    """Plan the merges; `stays` receives for each memory that is gone the one that stays."""
    reader, now = view.reader, view.now
    current: dict[str, StoredMemory] = {}
    gone: set[str] = set()
    commits: list[Commit] = []
    looked_at = 0
    with reader.frozen():
        index, there = reader.index, comparable(reader) & may(reader)
        opposed = linked(index, "CONTRADICTS")
        for one in ids:
            slot = index.slot(one)
            if slot < 0 or one in gone or not there[slot]:
                continue
            looked_at += 1
            mask = _of_the_scope(reader, there, slot)
            mask[slot] = False
            if not mask.any():
                continue
            memory = current.get(one) or reader.read([one])[0]
            others = [current.get(found.id, found) for found in equal_memories(reader, memory.content, mask)]
            seq = index.column("seq")
            copies = [memory, *(other for other in others if other.id not in gone)]
            kept, *rest = sorted(copies, key=lambda copy: (*_rank(copy), int(seq[index.slot(copy.id)])))
            for other in rest:
                if _agree(kept, other) and may_be_one(opposed, kept, other):
                    after = _joined(kept, other, view)
                    writes = merge_writes(kept, other, after, score=1.0, reason=REASON, now=now)
                    commits.append(Commit(writes, kept.task_id))
                    gone.add(other.id)
                    if stays is not None:
                        stays |= {one: kept.id for one, by in stays.items() if by == other.id} | {other.id: kept.id}
                    current[kept.id] = kept = after
    return Plan(CopiesResult(looked_at=looked_at, merged=len(gone)), commits)


def _joined(kept: StoredMemory, other: StoredMemory, view: View) -> StoredMemory:
    after = joined(kept, other, view.now, view.config.forgetting_curve)
    is_equally_trusted = kept.trust_class == other.trust_class
    return after.model_copy(update={"tags": united(kept.tags, other.tags)}) if is_equally_trusted else after


def _of_the_scope(reader: Reader, there: Mask, slot: int) -> Mask:
    index = reader.index
    fits = there.copy()
    for name in _SCOPE:
        fits &= index.column(name) == index.column(name)[slot]
    speaker = index.column("speaker")
    if speaker[slot] >= 0:  # what two speakers say in equal words are two statements
        fits &= (speaker == speaker[slot]) | (speaker < 0)
    return np.asarray(fits, dtype=np.bool_)


def _rank(memory: StoredMemory) -> tuple[bool, int]:
    return not memory.is_pinned, TRUST.index(memory.trust_class)


def _agree(one: StoredMemory, other: StoredMemory) -> bool:
    """Return whether two outcomes are compatible: a failure is the same only as a failure."""
    return one.outcome == other.outcome or "negative" not in (one.outcome, other.outcome)
