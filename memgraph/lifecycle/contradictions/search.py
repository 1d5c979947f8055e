"""Search for contradictions: find conflicting memories, link them, and settle them where that is safe.

Memories that are new or have changed since the last run are compared with those of the same project, task and privacy tier that are
near by their meaning; where one has no vector, by their rarest words; and with those that name what one says has ended. A `Judge`
decides each pair if there is one, else words do where they can. Two memories that are already linked, by anyone and in any way, are
skipped.

A run consists of batches. Each is decided under the writer lock, writes its links in one commit per write scope, and
then records its progress. After an interruption the next run continues from there, with the same final result.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from memgraph.errors import BudgetSpentError, ProviderError
from memgraph.index.index import Index
from memgraph.journal.envelope import Event
from memgraph.lifecycle.contradictions.conflict import NOTED, Conflict, conflict_of, ended_by, is_question, may_conflict
from memgraph.lifecycle.contradictions.resolution import NO_CONFLICT, ended, is_decided, linked, replaces
from memgraph.lifecycle.dedup.near_duplicates import LOOKED_AT, Slots, in_force, near
from memgraph.lifecycle.episodes import COMPRESSION_SOURCE
from memgraph.lifecycle.reconcile import linked_to
from memgraph.lifecycle.run import (
    Plan,
    View,
    Watch,
    account,
    added,
    carry_out,
    changes_after,
    commits_by_task,
    last_run,
)
from memgraph.logs import logger_of
from memgraph.model.base import Seconds, checked
from memgraph.model.events.memories import (
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryReembedded,
    MemoryRevised,
    MemoryUnlinked,
    RecordPatch,
)
from memgraph.model.events.payload import Actor
from memgraph.model.events.records import (
    CONTRADICTIONS,
    AccessRecorded,
    ContradictionsSought,
    OutcomeRecorded,
    ProcedureMeasured,
)
from memgraph.model.link import EXPLICIT_RELATIONS, REPLACED, in_order, since
from memgraph.model.memory import OUTCOME_OF_WORD, StoredMemory
from memgraph.model.results.learning import COUNTING_SOURCE, ContradictionResult
from memgraph.ports import Judge, Judgement, Progress
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.commit.records import Write
from memgraph.store.query import Reader

logger = logger_of(__name__)
NEAR = 0.5
"""Minimum cosine of two memories that are compared: 50 of 60 contradictions in free wording had it, 34 a cosine of 0.6."""
_OVERLAP = 0.5
"""Minimum share of the shorter text's terms that both must contain if one has no vector."""
_BATCH = 500
_MOST_REREAD = 5_000
"""After this many irrelevant events a run still records its progress."""
_MOST_JUDGED = 64
"""Pairs that a run lets a model judge, nearest first; words and work orders do the rest."""
_SCOPE = ("project", "task", "tier")
_COMPARED = frozenset(
    "content outcome entities tags domain valid_at invalid_at is_suppressed archived_at situation action".split()
)
_WATCH = Watch(
    (AccessRecorded, MemoryReembedded, MemoryDerived, MemoryLinked, MemoryUnlinked, MemoryDeleted, ProcedureMeasured),
    frozenset(RecordPatch.model_fields) - _COMPARED,
)


class Batch(NamedTuple):
    """Memories that are compared together, up to an event that wrote or changed one, and those of them that were confirmed since."""

    memory_ids: Sequence[str]
    confirmed: frozenset[str] = frozenset()
    through_seq: int = 0


class Pair(NamedTuple):
    """Two memories that may exclude each other, their cosine, and how they are linked already."""

    older: StoredMemory
    newer: StoredMemory
    cosine: float
    relations: frozenset[str]


def find_contradictions(
    store: AgentMemoryStore,
    *,
    seconds: float | None = None,
    progress: Progress | None = None,
    actor: Actor = "system",
    judge: Judge | None = None,
) -> ContradictionResult:
    """Compare memories that are new or have changed since the last run with those in force. Idempotent.

    Parameters
    ----------
    seconds : float, optional
        No further batch begins after this time.
    progress : callable, optional
        Called with (done, total) events.
    judge : Judge, optional
        Decides of the nearest pairs of public memories, instead of their words.
    """
    seconds = checked(Seconds | None, seconds, "seconds")
    started = time.monotonic()
    before = last_run(store.reader, CONTRADICTIONS).get("seq", 0)
    total = store.reader.index.offset.seq - before
    result, left = ContradictionResult(), _MOST_JUDGED
    for step in _batches_after(store.reader, before):
        if seconds is not None and time.monotonic() - started >= seconds:
            return result.model_copy(update={"complete": False})
        until = math.inf if seconds is None else started + seconds
        said, does_answer = _judged(store.reader, step, judge, left, until) if judge and left else ({}, True)
        left = left - len(said) if does_answer else 0
        found = carry_out(store, partial(_planned, step=step, said=said), attempts=1, actor=actor)
        result = added(result, found.result)
        if progress:
            progress(min(step.through_seq - before, total), total)
    return result


def find_contradictions_of(
    store: AgentMemoryStore, memory_ids: Iterable[str], *, actor: Actor = "system", may: Permits = everything
) -> ContradictionResult:
    """Compare memories that `actor` just wrote, by their words, with those in force that it may have; a later run compares them with all."""
    if not (ids := list(memory_ids)):
        return ContradictionResult()
    return carry_out(store, partial(_planned, step=Batch(ids), may=may), attempts=1, actor=actor).result


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


# --- what has changed ---


def _batches_after(reader: Reader, since_seq: int) -> Iterator[Batch]:
    """Yield the changes after an event in batches of some hundred memories, without changes irrelevant to comparison."""
    confirmed: set[str] = set()

    def touched_by(event: Event) -> list[str]:
        payload = event.payload
        if event.actor == "system" and isinstance(payload, MemoryRevised) and payload.changed.invalid_at is not None:  # type: ignore[attr-defined]
            return []  # no longer in force, possibly because of this search: it contradicts nothing
        by_use = payload.used if isinstance(payload, OutcomeRecorded) and _confirms(event) else []
        ids = _WATCH.touched(event)[:1] or by_use
        confirmed.update(ids if _confirms(event) else ())
        if isinstance(payload, MemoryUnlinked) and payload.relation == "SUPERSEDES":
            confirmed.difference_update({payload.source_id, payload.target_id})  # someone took it back
        return ids

    for touched, after, through, _is_last in changes_after(reader, since_seq, touched_by, most_memories=_BATCH):
        if touched or through - after > _MOST_REREAD:
            yield Batch(list(touched), frozenset(confirmed), through)
        confirmed.clear()


def _confirms(event: Event) -> bool:
    """Return whether an event confirms its memory: a good outcome or a repetition. Merging copies in sleep does not."""
    payload = event.payload
    if isinstance(payload, OutcomeRecorded):
        return OUTCOME_OF_WORD.get(payload.outcome) == "positive"
    return isinstance(payload, MemoryMerged) and event.actor != "system"


# --- candidates ---


def near_pairs(reader: Reader, memories: dict[int, StoredMemory], may: Permits = everything) -> Iterator[Pair]:
    """Yield the pairs of some memories (by slot) and those in force that may exclude each other, each once, for each its nearest first.

    One matrix product for the memories of a scope: O(n · m · d) for n of them and m in force. A memory without a domain fits every one.
    """
    index = reader.index
    rivals, domains = in_force(reader) & may(reader), index.column("domain")
    scopes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for slot in memories:
        scopes[tuple(int(index.column(name)[slot]) for name in (*_SCOPE, "domain"))].append(slot)
    found: dict[int, dict[int, float]] = {}
    for (*codes, domain), group in scopes.items():
        fits = rivals & ((domains == domain) | (domains < 0) | (domain < 0))
        for name, code in zip(_SCOPE, codes, strict=True):
            fits &= index.column(name) == code
        found |= _near(reader, {slot: memories[slot] for slot in group}, np.flatnonzero(fits))
    lacking = sorted({other for nearest in found.values() for other in nearest} - memories.keys())
    known = memories | dict(zip(lacking, _read(reader, lacking), strict=True))
    seen: set[frozenset[int]] = set()
    for slot in memories:
        linked = _linked(index, slot)
        for other, cosine in sorted(found[slot].items(), key=lambda item: (-item[1], index.ids.names[item[0]])):
            pair = frozenset([slot, other])
            if pair not in seen and _is_compared(known[other]):
                seen.add(pair)
                yield Pair(*in_order(known[slot], known[other]), cosine, frozenset(linked.get(other, ())))


def open_questions(reader: Reader, memory_ids: Iterable[str]) -> Iterator[Pair]:
    """Yield the near pairs of statements of which words do not decide. A statement that only adds words to another one is no question.

    Neither numbers, names and denials of one alone nor words of change tell which of them contradict each other: of 60 and 60 pairs they put
    51 % in the right order.
    """
    for pair in near_pairs(reader, _compared(reader, memory_ids)):
        if not pair.relations and pair.cosine >= NEAR and is_question(pair.older, pair.newer):
            yield pair


def _read(reader: Reader, slots: Sequence[int]) -> list[StoredMemory]:
    return reader.read([reader.index.ids.names[slot] for slot in slots])


def _compared(reader: Reader, memory_ids: Iterable[str]) -> dict[int, StoredMemory]:
    """Return those of some memories in force that can exclude another one, by their slots."""
    told = in_force(reader)
    slots = [slot for one in dict.fromkeys(memory_ids) if (slot := reader.index.slot(one)) >= 0 and told[slot]]
    return {slot: one for slot, one in zip(slots, _read(reader, slots), strict=True) if _is_compared(one)}


def _is_compared(memory: StoredMemory) -> bool:
    return memory.source not in (COMPRESSION_SOURCE, COUNTING_SOURCE) and may_conflict(memory)


def _near(reader: Reader, memories: Mapping[int, StoredMemory], others: Slots) -> dict[int, dict[int, float]]:
    """Return for each memory the few others that are near, and how near, and with 0 those that name what it says has ended."""
    index = reader.index
    found = near(reader, list(memories), others, cosine=NEAR, share=_OVERLAP, of_smaller=True)
    for slot, memory in memories.items():
        for terms in ended_by(memory.content):
            held = others
            for code in map(index.vocabulary.find, terms):
                held = np.intersect1d(held, index.postings.get(code)[0] if code >= 0 else [])
            found[slot] = {other: 0.0 for other in held[-LOOKED_AT:].tolist() if other != slot} | found[slot]
    return found


def _linked(index: Index, slot: int) -> dict[int, set[str]]:
    """Return the links between one slot and others, in either direction."""
    found: dict[int, set[str]] = defaultdict(set)
    for other, code in zip(*(part.tolist() for part in index.links.get(slot)), strict=True):
        found[other].add(EXPLICIT_RELATIONS[abs(code) - 1])
    return found


# --- decisions ---


def _judged(
    reader: Reader, step: Batch, judge: Judge, most: int, until: float
) -> tuple[dict[tuple[str, str], Judgement], bool]:
    """Ask a judge about the nearest pairs of public memories, before the lock is taken; return also whether it may be asked on.

    A judgement holds for two texts, and no longer once a memory has changed.
    """
    with reader.frozen():
        near_ones = near_pairs(reader, _compared(reader, step.memory_ids))
        pairs = [pair for pair in near_ones if not pair.relations and pair.cosine >= NEAR]
    said: dict[tuple[str, str], Judgement] = {}
    for pair in sorted(pairs, key=lambda pair: -pair.cosine)[:most]:
        if pair.older.privacy_tier != "public":
            continue
        if time.monotonic() >= until:
            return said, False
        try:
            said[pair.older.content, pair.newer.content] = judge.judge(pair.older.content, pair.newer.content)
        except (ProviderError, BudgetSpentError) as error:
            logger.warning("near memories are compared by their words, as no model judges them: %s", error.loggable)
            return said, False
    return said, True


def _planned(
    view: View, step: Batch, said: Mapping[tuple[str, str], Judgement] | None = None, may: Permits = everything
) -> Plan[ContradictionResult]:
    """Compare some memories, and plan the links for what is found, and of a run the record of its progress."""
    reader, now, compared = view.reader, view.now, _compared(view.reader, step.memory_ids)
    writes: list[tuple[str | None, list[Write]]] = []
    contradicting: list[str] = []
    retired: set[str] = set()
    replaced = 0
    for older, newer, cosine, relations in near_pairs(reader, compared, may):
        is_known, is_confirmed = relations == {"CONTRADICTS"}, newer.id in step.confirmed
        if retired & {older.id, newer.id} or (relations and not (is_known and is_confirmed)):
            continue
        if older.invalid_at is not None and older.invalid_at <= since(newer):
            continue  # each is valid in its own period
        judgement = (said or {}).get((older.content, newer.content), "unsure")
        if judgement == "compatible":
            writes.append((newer.task_id, [linked_to(newer.id, "RELATED_TO", older.id, NO_CONFLICT, now)]))
            continue
        said_so = Conflict("judged", max(cosine, 0.01), NOTED["judged"], is_stated=judgement == "replaces")
        conflict = conflict_of(older, newer) if judgement == "unsure" else said_so
        if conflict is None:
            continue
        superseded = linked("SUPERSEDES", conflict, older, newer, now)
        events: list[Write] = []
        if not is_known and replaces(conflict, older, newer, now=now):
            events = [superseded, ended(older.id, since(newer), REPLACED, now)]
            replaced += 1
        else:
            if not is_known:
                events.append(linked("CONTRADICTS", conflict, older, newer, now))
                contradicting.append(newer.id)
            if is_decided(conflict, older, newer, is_confirmed=is_confirmed, now=now):
                events.append(superseded)
        retired.update([older.id] if superseded in events else [])
        writes.append((newer.task_id, events))
    counts = {"looked_at": len(compared), "found": len(contradicting), "superseded": len(retired) - replaced}
    result = ContradictionResult(**counts, replaced=replaced, memory_ids=list(dict.fromkeys(contradicting)))
    sought = ContradictionsSought(sought_at=now, through_seq=step.through_seq, **counts)
    return Plan(result, [*commits_by_task(writes), *([account(sought)] if step.through_seq else [])])
