"""Near-duplicates: memories that came in by different doors, or without vectors, and say the same become one (seeds 1, 3).

Of two the pinned one stays, else the one that was recorded first. It takes the text that says more or, where each says something
of its own, what was said last, but never another one for a text that is pinned. Sources and builds it unites as a merge at
consolidation does. It supersedes the other, which keeps all that it was and counts again after `unsupersede`; a pair that
was parted so is not joined again. Nothing is confirmed by it: the one that stays has the higher relevance, and the higher
confidence, of the two.

Only memories of the same project, task, domain, speaker, privacy tier, trust class, type, outcome and end of validity are
compared. Left alone are parts of longer texts, what other phases of sleep make, and episodes without a build: each is evidence
by itself, and would count no more.

What is new is looked at in portions, in the order in which it was written, each with all that came before it; so one portion
takes about a second whatever the store holds, and a run that is stopped goes on behind the last portion that it finished. Within
one the next pair is always that of the first memory, pinned ones before others and then as they were recorded, that has one,
with what is nearest to it. So what is done next follows from what the store holds, and a portion that is stopped and begun again ends
as if it had not been stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.dedup.equal_text import is_equal
from memgraph.lifecycle.dedup.merge import merge_event, merged
from memgraph.lifecycle.dedup.near_groups import Group, Near
from memgraph.lifecycle.dedup.sameness import says_the_same, stands_for_both
from memgraph.lifecycle.evidence.evidence import TimeIsUp, never
from memgraph.lifecycle.evidence.portions import Portion, matters, next_portion
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.lifecycle import phase_key
from memgraph.model.events.links import MemoryLinked
from memgraph.model.memory import MEMORY_TYPES, StoredMemory
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.sleep import MADE_BY_SLEEP, MergeResult
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.append import Write, with_vector

PHASE = "near-duplicates"
REASON = "near-duplicate"
"""Why the memory that stays supersedes the other."""
_KIN = ("type", "project", "task", "tier", "trust", "outcome", "domain", "speaker")
_BATCH = 100
"""Merges in one commit."""
_ATTEMPTS = 3
_LOOKED_AT = 64
"""Of what is near a memory, so many that say something else are passed over."""
_REMEMBERED = 5_000

Mask = NDArray[np.bool_]
Slots = NDArray[np.int64]


class _Decision(NamedTuple):
    """One memory is to become part of another one."""

    kept_id: str
    gone_id: str
    near: Near


class _Overtaken(Exception):  # noqa: N818 (no error: others wrote, and what was planned is planned anew)
    pass


def merge_near_duplicates(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, looked_through: Callable[[int], None] | None = None
) -> MergeResult:
    """Merge memories that say the same, looking at what is new or has changed since this phase of sleep last came to its end.

    Deterministic, without a model. Run again when nothing has changed, it writes nothing.

    Parameters
    ----------
    is_time_up : callable, optional
        Asked before each portion and, but for the first one, every few hundred memories: once it says so, what was found is
        written, and the rest waits for the next run.
    looked_through : callable, optional
        Is told, after each portion but the last, up to which event of the journal it has looked: to note it in the journal, so that
        a run that is stopped later goes on from there.

    Notes
    -----
    Memories with vectors are compared in blocks of matrix products within their group, what is new in a portion with what was
    there by then. The others are found by their rarest words.
    """
    looked_at = merged_count = by_words = 0
    since = (store.reader.record("LifecycleRun", phase_key(PHASE)) or {}).get("seq", 0)
    until = store.reader.index.offset.seq
    is_complete: bool | None = False
    may_stop = never  # not within the first portion: else a run that is given too little time would never come further
    while not is_time_up():
        portion = next_portion(store, since, until)
        for _ in range(_ATTEMPTS):
            run = _Run(store, portion, may_stop)
            try:
                is_complete = run.go()
            except _Overtaken:
                is_complete = None
            merged_count, by_words = merged_count + run.merged, by_words + run.by_words
            if is_complete is not None:
                break
        looked_at += run.looked_at
        if not is_complete or portion.is_last:
            break
        since, is_complete, may_stop = portion.through_seq, False, is_time_up
        if looked_through:
            looked_through(since)
    return MergeResult(looked_at=looked_at, merged=merged_count, by_words=by_words, complete=bool(is_complete))


class _Run:
    """One pass over the groups, as they were when it began: a portion with all that was recorded up to its end.

    Attributes
    ----------
    looked_at, merged, by_words : int
        As in `MergeResult`.
    """

    def __init__(self, store: AgentMemoryStore, portion: Portion, is_time_up: TimeIsUp) -> None:
        self._store = store
        self._is_time_up = is_time_up
        self.looked_at = self.merged = self.by_words = 0
        with store.reader.frozen(links=True):
            self._index = index = store.reader.index
            self._seq = index.offset.seq
            self._opposed = _linked(index, "CONTRADICTS")
            there = _comparable(store)
            if not portion.is_last:
                there &= index.column("seq") <= portion.through_seq
            self._slots = _in_order(index, np.flatnonzero(there))
            self._is_new = _is_new(index, portion.touched)[self._slots]
            self._groups = list(_kin(index, self._slots))

    def go(self) -> bool:
        """Merge what can be merged, and tell whether that was all."""
        for members in self._groups:
            if not self._is_new[members].any():
                continue
            if self._is_time_up():
                return False
            group = Group(self._store.reader, self._slots[members], self._is_new[members])
            self.looked_at += int(self._is_new[members].sum())
            merging = _Merging(self._store, group, self._may_be_one, self._is_time_up)
            waiting: list[_Decision] = []
            for decision in merging.decisions():
                waiting.append(decision)
                if len(waiting) == _BATCH:
                    self._commit(waiting)
                    waiting = []
                    merging.forget()
            self._commit(waiting)
            if merging.was_stopped:
                return False
        return True

    def _may_be_one(self, kept: StoredMemory, other: StoredMemory) -> bool:
        """Tell whether one of two memories that are near each other may become part of the other."""
        if kept.is_pinned and other.is_pinned and not is_equal(kept.content, other.content):
            return False
        if {kept.source, other.source} & MADE_BY_SLEEP:
            return False
        ours, theirs = ({memory.id, *memory.source_event_ids} for memory in (kept, other))
        if other.id in ours or kept.id in theirs:
            return False  # they were one before, and were parted
        if any(theirs & self._opposed[one] for one in ours & self._opposed.keys()):
            return False  # they, or what became part of them, contradict each other
        if kept.type == "episodic" and not (kept.evidence_build_ids and other.evidence_build_ids):
            return False
        return says_the_same(kept, other)

    def _commit(self, decisions: Sequence[_Decision]) -> None:
        if not decisions:
            return
        store = self._store
        with store.exclusive():
            if any(matters(event) for event in store.reader.events_after(self._seq)):
                raise _Overtaken
            ids = dict.fromkeys(one for decision in decisions for one in (decision.kept_id, decision.gone_id))
            now, known = store.now(), {memory.id: memory for memory in store.read_memories(list(ids))}
            writes: list[Write] = []
            for decision in decisions:
                kept, gone = known[decision.kept_id], known[decision.gone_id]
                known[decision.kept_id] = after = _joined(kept, gone, now, store.config.forgetting_curve)
                writes += _writes(kept, gone, after, decision.near.score, now)
            task_id = known[decisions[0].kept_id].task_id
            store.commit("task" if task_id else "global", writes, task_id=task_id, actor="system")
            self._seq = store.reader.index.offset.seq
        self.merged += len(decisions)
        self.by_words += sum(decision.near.is_by_words for decision in decisions)


class _Search:
    """What is near one member, from the nearest on: what was passed over stays so while the member keeps its text."""

    def __init__(self, near: Sequence[Near]) -> None:
        self._left = iter(near)
        self._rejected = 0

    def next(self, fits: Callable[[int], bool | None]) -> Near | None:
        """Return the next one that fits; of those that do not, but are there still (None: they are not), some are passed over."""
        while self._rejected < _LOOKED_AT and (near := next(self._left, None)) is not None:
            answer = fits(near.place)
            if answer:
                return near
            self._rejected += answer is not None
        return None


class _Merging:
    """Decides in one group which members become one, each decision as if those before were carried out."""

    def __init__(
        self,
        store: AgentMemoryStore,
        group: Group,
        may_be_one: Callable[[StoredMemory, StoredMemory], bool],
        is_time_up: TimeIsUp,
    ) -> None:
        self._store = store
        self._group = group
        self._may_be_one = may_be_one
        self._is_time_up = is_time_up
        self._now = store.now()
        self._gone: set[int] = set()
        self._memories: dict[int, StoredMemory] = {}
        self.was_stopped = False

    def forget(self) -> None:
        """Forget what was read: all that was decided has been written."""
        if len(self._memories) > _REMEMBERED:
            self._memories.clear()

    def decisions(self) -> Iterator[_Decision]:
        """Yield what is to be merged, in order."""
        for number, (place, later) in enumerate(self._group.pairs()):
            if number % 256 == 0 and self._is_time_up():
                self.was_stopped = True
                return
            if later and place not in self._gone:
                self._read([place, *(near.place for near in later[:_LOOKED_AT])])
                yield from self._of(place, _Search(later))

    def _of(self, place: int, search: _Search) -> Iterator[_Decision]:
        """Yield what a member takes in, and what follows where it takes a text that is near earlier members."""
        waiting, moved = [(place, search)], dict[int, list[int]]()
        while waiting:
            at, search = waiting[-1]
            if at in moved and at not in self._gone:
                if (found := self._first_of(moved[at], at)) is not None:
                    waiting.append(found)
                    continue
                del moved[at]
            near = None if at in self._gone else search.next(partial(self._fits, at))
            if near is None:
                waiting.pop()
                continue
            kept = self._memory(at)
            after = _joined(kept, self._memory(near.place), self._now, self._store.config.forgetting_curve)
            self._memories[at] = after
            self._gone.add(near.place)
            yield _Decision(self._group.ids[at], self._group.ids[near.place], near)
            if after.content != kept.content:
                self._group.take_text(at, near.place)
                anew = self._group.near(at)
                waiting[-1] = (at, _Search([one for one in anew if one.place > at]))
                moved[at] = sorted(one.place for one in anew if one.place < at)[:_LOOKED_AT]

    def _first_of(self, earlier: Sequence[int], at: int) -> tuple[int, _Search] | None:
        """Return the first of some earlier members that takes something in, now that one has another text, and its search."""
        for place in earlier:
            if self._fits(place, at):
                later = [one for one in self._group.near(place) if one.place > place]
                if _Search(later).next(partial(self._fits, place)) is not None:
                    return place, _Search(later)
        return None

    def _fits(self, place: int, other: int) -> bool | None:
        if place in self._gone or other in self._gone:
            return None
        return self._may_be_one(self._memory(place), self._memory(other))

    def _memory(self, place: int) -> StoredMemory:
        if place not in self._memories:
            self._read([place])
        return self._memories[place]

    def _read(self, places: Sequence[int]) -> None:
        lacking = [place for place in places if place not in self._memories]
        found = {memory.id: memory for memory in self._store.read_memories([self._group.ids[one] for one in lacking])}
        if len(found) < len(set(lacking)):
            raise _Overtaken  # one was deleted meanwhile
        self._memories |= {place: found[self._group.ids[place]] for place in lacking}


def _joined(kept: StoredMemory, other: StoredMemory, now: str, curve: ForgettingCurveConfig) -> StoredMemory:
    """Return what a memory becomes when a near-duplicate joins it: as at consolidation, but nothing was confirmed just now."""
    after = merged(kept, other, now, curve, takes_text=not kept.is_pinned and stands_for_both(kept, other) is other)
    higher = kept if kept.is_pinned or kept.relevance_score >= other.relevance_score else other
    sources = [*(one for one in after.source_event_ids if one != other.id), other.id]
    return after.model_copy(
        update={
            "relevance_score": higher.relevance_score,
            "relevance_anchor": higher.relevance_anchor,
            "relevance_at": higher.relevance_at,
            "confidence": max(kept.confidence, other.confidence),
            "source_event_ids": sources[-MAX_ITEMS:],
        }
    )


def _writes(kept: StoredMemory, gone: StoredMemory, after: StoredMemory, score: float, now: str) -> list[Write]:
    event = merge_event(kept, after, candidate_id=gone.id, now=now)
    ends = {"source_id": kept.id, "target_id": gone.id}
    link = MemoryLinked(relation="SUPERSEDES", score=score, reason=REASON, created_at=now, **ends)
    return [with_vector(event, after.embedding if after.content != kept.content else None), link]


def _comparable(store: AgentMemoryStore) -> Mask:
    """Return what is in force, without parts of longer texts: each says but half of it."""
    index = store.reader.index
    mask: Mask = store.reader.listed() & ~store.reader.superseded()
    is_part = (index.column("previous") >= 0) | (index.column("following") >= 0)
    mask &= ~(is_part & (index.column("type") != MEMORY_TYPES.index("episodic")))
    return mask


def _in_order(index: Index, slots: Slots) -> Slots:
    """Return slots, pinned ones first, then as they were recorded: of two the first stays."""
    return slots[np.lexsort((index.column("seq")[slots], ~index.column("is_pinned")[slots]))]


def _kin(index: Index, slots: Slots) -> Iterator[Slots]:
    """Yield the places, among the slots, of those that may be compared with each other, two or more."""
    if not len(slots):
        return
    ends = np.unique(index.column("invalid_days")[slots], return_inverse=True)[1].ravel()
    columns = [index.column(name)[slots].astype(np.int64) for name in _KIN]
    codes = np.unique(np.stack([*columns, ends], axis=1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(codes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(places) > 1:
            yield places


def _linked(index: Index, relation: str) -> dict[str, set[str]]:
    """Return the ids of what each memory with a link of this kind is linked with, whichever way."""
    sources, targets = index.links.pairs(RELATION_CODE[relation])
    found: dict[str, set[str]] = {}
    for one, other in zip(sources.tolist(), targets.tolist(), strict=True):
        for mine, its in ((one, other), (other, one)):
            found.setdefault(index.ids.names[mine], set()).add(index.ids.names[its])
    return found


def _is_new(index: Index, touched: frozenset[str]) -> Mask:
    """Return which slots are new, or have changed, and what they superseded."""
    mask = np.zeros(len(index), dtype=np.bool_)
    mask[[slot for one in touched if (slot := index.slot(one)) >= 0]] = True
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    mask[older[mask[newer]]] = True
    return mask
