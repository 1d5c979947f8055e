"""Near-duplicates: merge memories that say the same but came from different sources, or without vectors (seeds 1, 3).

Of two memories the pinned one stays, otherwise the one recorded first. It takes the more complete text or, if each says
something of its own, the newer text; a pinned text is never replaced. Sources and builds are united as in a merge at
consolidation. The memory that stays supersedes the other, which is kept unchanged and counts again after `unsupersede`;
a pair that was separated so is not merged again. A merge confirms nothing: the result has the higher relevance and the
higher confidence of the two.

Only memories of the same project, task, domain, speaker, privacy tier, trust class, type, outcome and end of validity
are compared. Excluded are parts of longer texts, the results of other sleep phases, and episodes without a build: each
of those is evidence by itself, and would no longer count as such.

New memories are processed in portions, in the order in which they were written, each portion against everything before
it; so a portion takes about a second whatever the size of the store, and an interrupted run continues after its last
complete portion. Within a portion the next merge is always that of the first memory that has a near-duplicate (pinned
ones first, then in order of recording) with its nearest one. So each step depends on the store's content alone, and a
portion that is interrupted and repeated gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.dedup.merge import joined, merge_writes
from memgraph.lifecycle.dedup.same_fact import is_equal
from memgraph.lifecycle.dedup.sameness import says_the_same
from memgraph.lifecycle.dedup.thresholds import SLEEP_COSINE, SLEEP_OVERLAP
from memgraph.lifecycle.dedup.word_index import WordIndex
from memgraph.lifecycle.evidence.evidence import TimeIsUp, never
from memgraph.lifecycle.run.changes import MOST_EVENTS, Changes, Watch, changes_after, last_run
from memgraph.lifecycle.run.runner import Commit, Plan, View, added, carry_out
from memgraph.model.events.records import AccessRecorded, phase_key
from memgraph.model.memory import MEMORY_TYPES, StoredMemory
from memgraph.model.results.learning import MADE_FROM_OTHERS, MergeResult
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.store.query import Reader

_BLOCK = 256
_FEW = 0.25
"""Up to this share of new members, only the new ones are compared with the rest."""
_READ = 2_000


class Near(NamedTuple):
    """A member by its place in the group, and its similarity: the share of common terms if `is_by_words`, else the cosine."""

    place: int
    score: float
    is_by_words: bool


class Group:
    """Members by their place in the given order.

    Parameters
    ----------
    slots : ndarray of int
        Index slots of the members.
    is_new : ndarray of bool
        Which members are new; the others were compared with each other before.
    """

    def __init__(self, reader: Reader, slots: Slots, is_new: Mask) -> None:
        index = reader.index
        self.ids = [index.ids.names[slot] for slot in slots.tolist()]
        self._has_vector = reader.has_vector(slots)
        few = is_new.sum() <= _FEW * len(slots)
        self._is_new: Mask = is_new if few else np.ones(len(slots), dtype=np.bool_)
        self._units = _units(reader, slots, self._has_vector)
        self._words = None if self._has_vector.all() else WordIndex(_terms(reader, self.ids), least=SLEEP_OVERLAP)

    def __len__(self) -> int:
        return len(self.ids)

    def pairs(self) -> Iterator[tuple[int, list[Near]]]:
        """Yield each member with neighbours, in order, with the later members that are near it, nearest first.

        One of the two is new. Each place is evaluated when it is reached, so `take_text` on an earlier member has
        effect.
        """
        everyone = np.arange(len(self))
        new = everyone[self._is_new]
        for start in range(0, len(self), _BLOCK):
            others = everyone[start:] if self._is_new.all() else new[new > start]
            block = slice(start, min(start + _BLOCK, len(self)))
            cosines = self._units[block] @ self._units[others].T
            hits = cosines >= SLEEP_COSINE - 1e-6
            has_any: Mask = np.asarray(hits.any(axis=1))
            for place in range(block.start, block.stop):
                if self._is_new[place] and len(others) < len(self) - start:
                    found = self._by_vector(place)
                elif has_any[place - start]:
                    at = np.flatnonzero(hits[place - start])
                    found = _nears(others[at], cosines[place - start, at])
                else:
                    found = []
                later = [near for near in [*found, *self._by_words(place)] if near.place > place]
                yield place, self._sorted(later)

    def near(self, place: int) -> list[Near]:
        """Return all members that are near one, nearest first, ties in id order."""
        return self._sorted([*self._by_vector(place), *self._by_words(place)])

    def take_text(self, place: int, of: int) -> None:
        """Replace a member's text with that of another one."""
        self._units[place] = self._units[of]
        self._has_vector[place] = self._has_vector[of]
        self._is_new[place] = True
        if self._words is not None:
            self._words.replace(place, of)

    def _by_vector(self, place: int) -> list[Near]:
        if not self._has_vector[place]:
            return []
        cosines = self._units @ self._units[place]
        found = np.flatnonzero(cosines >= SLEEP_COSINE - 1e-6)
        found = found[found != place]
        return _nears(found, cosines[found])

    def _by_words(self, place: int) -> list[Near]:
        if self._words is None:
            return []
        return [
            Near(other, round(share, 6), is_by_words=True)
            for other, share in self._words.like(place)
            if not (self._has_vector[place] and self._has_vector[other])
            and (self._is_new[place] or self._is_new[other])
        ]

    def _sorted(self, found: list[Near]) -> list[Near]:
        return sorted(found, key=lambda near: (-near.score, self.ids[near.place]))


def _nears(places: NDArray[np.int64], cosines: NDArray[np.float32]) -> list[Near]:
    """Return neighbours by vector with rounded cosines: the last digit of equal vectors may differ between products."""
    rounded = np.round(cosines.astype(np.float64), 6)
    near = rounded >= SLEEP_COSINE
    return [
        Near(place, score, is_by_words=False)
        for place, score in zip(places[near].tolist(), rounded[near].tolist(), strict=True)
    ]


def _units(reader: Reader, slots: Slots, has_vector: Mask) -> NDArray[np.float32]:
    """Return the members' vectors, L2-normalised, shape (n, d), float32; zero where a member has none."""
    kept = reader.vectors(slots[has_vector])
    norms = np.linalg.norm(kept, axis=1, keepdims=True)
    units = np.zeros((len(slots), kept.shape[1]), dtype=np.float32)
    units[has_vector] = kept / np.where(norms == 0, 1.0, norms)
    return units


def _terms(reader: Reader, ids: Sequence[str]) -> list[frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for start in range(0, len(ids), _READ):
        rows = reader.rows(ids[start : start + _READ])
        found |= {row["id"]: frozenset(analyse(row["content"])) for row in rows}
    return [found.get(one, frozenset()) for one in ids]


PHASE = "near-duplicates"
REASON = "near-duplicate"
"""Reason of the SUPERSEDES link from the memory that stays."""
_GROUP_COLUMNS = ("type", "project", "task", "tier", "trust", "outcome", "domain", "speaker")
_BATCH = 100
"""Merges per commit."""
_LOOKED_AT = 64
"""Nearby memories with a different meaning that are skipped before the search gives up."""
_REMEMBERED = 5_000
_COMPARED = 2_000_000
_FEWEST, _MOST = 64, 1_000
"""Minimum and maximum size of a portion; in between, a portion is sized for about `_COMPARED` compared pairs."""
_WATCH = Watch(
    (AccessRecorded,), frozenset({"floor", "archive_summary", "relevance_anchor", "relevance_at", "updated_at"})
)
"""Events that can change which memories say the same."""

Mask = NDArray[np.bool_]
Slots = NDArray[np.int64]


class _Decision(NamedTuple):
    """A planned merge: the memory that is merged, the target before and after, and their similarity."""

    before: StoredMemory
    gone: StoredMemory
    after: StoredMemory
    near: Near

    def writes(self, now: str) -> list[Write]:
        return merge_writes(self.before, self.gone, self.after, score=self.near.score, reason=REASON, now=now)


def merge_near_duplicates(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, on_portion: Callable[[int], None] | None = None
) -> MergeResult:
    """Merge memories that say the same, comparing those that are new or changed since this sleep phase last completed.

    Deterministic, without a model. Idempotent.

    Parameters
    ----------
    is_time_up : callable, optional
        Called before each portion and, except in the first one, every few hundred memories. Once it returns true, the
        merges found are written, and the rest waits for the next run.
    on_portion : callable, optional
        Called after each portion but the last with the last journal event covered, so that the caller can record the
        progress and a later run can continue from there.

    Notes
    -----
    Memories with vectors are compared by blocked matrix products within their group, the new ones of a portion with all
    that existed by then. The others are found by their rarest words.
    """
    total = MergeResult(complete=False)
    since = last_run(store.reader, phase_key(PHASE)).get("seq", 0)
    portions = changes_after(
        store.reader,
        since,
        _WATCH.touched,
        until=store.reader.index.offset.seq,
        most_memories=_portion_size(store.reader),
        most_events=MOST_EVENTS,
    )
    may_stop = never  # the first portion always completes: otherwise runs with too little time would make no progress
    for portion in portions:
        if is_time_up():
            break
        found = carry_out(
            store, partial(_planned, portion=portion, is_time_up=may_stop), rests_on=_WATCH.touched
        ).result
        is_complete = found.complete and portion.is_last
        total = added(total, found).model_copy(update={"complete": is_complete})
        if not found.complete or portion.is_last:
            break
        may_stop = is_time_up
        if on_portion:
            on_portion(portion.through_seq)
    return total


def _portion_size(reader: Reader) -> int:
    return min(max(_FEWEST, _COMPARED // max(1, len(reader.index))), _MOST)


def _planned(view: View, portion: Changes, is_time_up: TimeIsUp) -> Plan[MergeResult]:
    """Plan the merges of a portion with everything recorded up to its end."""
    reader = view.reader
    with reader.frozen():
        index = reader.index
        may_be_merged = partial(may_be_one, linked(index, "CONTRADICTS"))
        there = comparable(reader)
        if not portion.is_last:
            there &= index.column("seq") <= portion.through_seq
        slots = _in_order(index, np.flatnonzero(there))
        is_new = _is_new(index, portion.touched)[slots]
        compared = list(groups(index, slots))
    looked_at, decisions, commits = 0, list[_Decision](), list[Commit]()
    was_stopped = False
    for members in compared:
        if not is_new[members].any():
            continue
        if was_stopped := was_stopped or is_time_up():
            break
        looked_at += int(is_new[members].sum())
        merging = _Merging(view, Group(reader, slots[members], is_new[members]), may_be_merged, is_time_up)
        found = list(merging.decisions())
        was_stopped = merging.was_stopped
        decisions += found
        for start in range(0, len(found), _BATCH):
            writes = [write for one in found[start : start + _BATCH] for write in one.writes(view.now)]
            commits.append(Commit(writes, found[start].before.task_id))
    by_words = sum(one.near.is_by_words for one in decisions)
    result = MergeResult(looked_at=looked_at, merged=len(decisions), by_words=by_words, complete=not was_stopped)
    return Plan(result, commits)


def may_be_one(opposed: Mapping[str, set[str]], kept: StoredMemory, other: StoredMemory) -> bool:
    """Return whether one of two nearby memories may be merged into the other.

    Parameters
    ----------
    opposed : mapping
        The contradicting memories by memory id.
    """
    if kept.is_pinned and other.is_pinned and not is_equal(kept.content, other.content):
        return False
    if {kept.source, other.source} & MADE_FROM_OTHERS:
        return False
    ours, theirs = ({memory.id, *memory.source_event_ids} for memory in (kept, other))
    if other.id in ours or kept.id in theirs:
        return False  # they were merged before, and were separated
    if any(theirs & opposed[one] for one in ours & opposed.keys()):
        return False  # they, or memories merged into them, contradict each other
    if any(one.type == "episodic" and not one.evidence_build_ids for one in (kept, other)):
        return False
    return says_the_same(kept, other)


class _Search:
    """Iterator over the neighbours of one member, nearest first: skipped ones stay skipped while its text is unchanged."""

    def __init__(self, near: Sequence[Near]) -> None:
        self._left = iter(near)
        self._rejected = 0

    def next(self, fits: Callable[[int], bool | None]) -> Near | None:
        """Return the next neighbour that fits; skip a limited number that do not fit but still exist (None: gone)."""
        while self._rejected < _LOOKED_AT and (near := next(self._left, None)) is not None:
            answer = fits(near.place)
            if answer:
                return near
            self._rejected += answer is not None
        return None


class _Merging:
    """Decide the merges within one group, each as if the earlier ones had been carried out."""

    def __init__(
        self,
        view: View,
        group: Group,
        may_be_one: Callable[[StoredMemory, StoredMemory], bool],
        is_time_up: TimeIsUp,
    ) -> None:
        self._view = view
        self._group = group
        self._may_be_one = may_be_one
        self._is_time_up = is_time_up
        self._gone: set[int] = set()
        self._joined: dict[int, StoredMemory] = {}
        self._memories: dict[int, StoredMemory] = {}
        self.was_stopped = False

    def decisions(self) -> Iterator[_Decision]:
        """Yield the merges in order."""
        for number, (place, later) in enumerate(self._group.pairs()):
            if number % 256 == 0 and self._is_time_up():
                self.was_stopped = True
                return
            if later and place not in self._gone:
                self._read([place, *(near.place for near in later[:_LOOKED_AT])])
                yield from self._of(place, _Search(later))

    def _of(self, place: int, search: _Search) -> Iterator[_Decision]:
        """Yield the merges into one member, and those that follow if it takes a text that is near earlier members."""
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
            kept, other = self._memories[at], self._memories[near.place]
            after = joined(kept, other, self._view.now, self._view.config.forgetting_curve)
            self._memories[at] = self._joined[at] = after
            self._gone.add(near.place)
            yield _Decision(kept, other, after, near)
            if after.content != kept.content:
                self._group.take_text(at, near.place)
                anew = self._group.near(at)
                waiting[-1] = (at, _Search([one for one in anew if one.place > at]))
                moved[at] = sorted(one.place for one in anew if one.place < at)[:_LOOKED_AT]

    def _first_of(self, earlier: Sequence[int], at: int) -> tuple[int, _Search] | None:
        """Return the first of some earlier members that has a merge after this member's text changed, and its search."""
        for place in earlier:
            if self._fits(place, at):
                later = [one for one in self._group.near(place) if one.place > place]
                if _Search(later).next(partial(self._fits, place)) is not None:
                    return place, _Search(later)
        return None

    def _fits(self, place: int, other: int) -> bool | None:
        self._read([place, other])
        if place in self._gone or other in self._gone:
            return None
        return self._may_be_one(self._memories[place], self._memories[other])

    def _read(self, places: Sequence[int]) -> None:
        """Read memories not yet cached. If one was deleted meanwhile, the caller plans again."""
        if len(self._memories) > _REMEMBERED:
            self._memories = dict(self._joined)
        lacking = [place for place in places if place not in self._memories]
        found = {memory.id: memory for memory in self._view.reader.read([self._group.ids[one] for one in lacking])}
        self._memories |= {place: found[one] for place in lacking if (one := self._group.ids[place]) in found}
        self._gone.update(place for place in lacking if place not in self._memories)


def comparable(reader: Reader) -> Mask:
    """Return the memories in force, without those told in one session only and without parts of longer texts, which hold part of a meaning."""
    told = ~reader.index.column("is_session_bound")
    return without_parts(reader.index, reader.listed() & ~reader.superseded() & told)


def without_parts(index: Index, mask: Mask) -> Mask:
    """Return a mask without parts of longer texts."""
    is_part = (index.column("previous") >= 0) | (index.column("following") >= 0)
    whole: Mask = mask & ~(is_part & (index.column("type") != MEMORY_TYPES.index("episodic")))
    return whole


def _in_order(index: Index, slots: Slots) -> Slots:
    """Return slots with pinned ones first, then in order of recording: of two memories the first one stays."""
    return slots[np.lexsort((index.column("seq")[slots], ~index.column("is_pinned")[slots]))]


def groups(index: Index, slots: Slots) -> Iterator[Slots]:
    """Yield groups of at least two places among the slots that may be compared with each other."""
    if not len(slots):
        return
    ends = np.unique(index.column("invalid_days")[slots], return_inverse=True)[1].ravel()
    columns = [index.column(name)[slots].astype(np.int64) for name in _GROUP_COLUMNS]
    codes = np.unique(np.stack([*columns, ends], axis=1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(codes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(places) > 1:
            yield places


def linked(index: Index, relation: str) -> dict[str, set[str]]:
    """Return the ids at the other end of each memory's links of this kind, in either direction."""
    sources, targets = index.links.pairs(RELATION_CODE[relation])
    found: dict[str, set[str]] = {}
    for one, other in zip(sources.tolist(), targets.tolist(), strict=True):
        for mine, its in ((one, other), (other, one)):
            found.setdefault(index.ids.names[mine], set()).add(index.ids.names[its])
    return found


def _is_new(index: Index, touched: Iterable[str]) -> Mask:
    """Return which slots are new, have changed, or were superseded by such a memory."""
    mask = np.zeros(len(index), dtype=np.bool_)
    mask[[slot for one in touched if (slot := index.slot(one)) >= 0]] = True
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    mask[older[mask[newer]]] = True
    return mask
