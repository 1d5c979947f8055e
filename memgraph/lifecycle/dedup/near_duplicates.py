"""Merging in sleep: memories that say the same but came from different sources, through different doors, or without vectors (seeds 1, 3).

*Near-duplicates* are near each other, by their vectors or by the words that they share, and say the same (`same`): only memories of
equal project, task, domain, speaker, privacy tier, trust class, type, outcome and end of validity are compared. *Copies* have equal
texts (`is_equal`); they may differ in type, trust and source, since what the user asked to remember, an agent observed and a history
says in equal words is one fact. Excluded are parts of longer texts, the results of other sleep phases, and episodes without a build:
each of those is evidence by itself, and would no longer count as such.

Pairs are united, the nearest first (union-find); one text stands for each union: the pinned one, or the one that says most, the newer of
two that say as much. Two unions become one if these texts are near and say the same, so that no chain of small differences joins two
facts, and a union is never compared again. Of its memories the pinned one stays, then the one that is trusted most, then the one
recorded first. It takes the text of the union, unless it is pinned, and the sources and builds of all. It supersedes the others, which
are kept unchanged and count again after `unsupersede`; a pair that was separated so is not merged again. A merge confirms nothing: the
result has the higher relevance and the higher confidence, but nothing from a memory that is trusted less.

New memories are processed in portions, in the order in which they were written, each portion against everything before it; so a
portion depends on the store's content alone, and an interrupted run continues after its last complete portion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from memgraph.index.analyser import analyse
from memgraph.index.columns import TRUST
from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.dedup.duplicates import equal_memories
from memgraph.lifecycle.dedup.facts import is_equal
from memgraph.lifecycle.dedup.merge import NEAR_DUPLICATE, SAME_TEXT, joined, merge_writes
from memgraph.lifecycle.dedup.near import Slots, near
from memgraph.lifecycle.dedup.same import same, stands_for_both
from memgraph.lifecycle.run import (
    MOST_EVENTS,
    Changes,
    Commit,
    Plan,
    TimeIsUp,
    View,
    Watch,
    added,
    carry_out,
    changes_after,
    commits_by_task,
    last_run,
    never,
)
from memgraph.model.events.payload import Actor
from memgraph.model.events.records import AccessRecorded, phase_key
from memgraph.model.memory import MEMORY_TYPES, StoredMemory
from memgraph.model.results.learning import MADE_FROM_OTHERS, CopiesResult, MergeResult
from memgraph.model.similarity import cosine_similarity
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.commit.records import Write
from memgraph.store.query import Mask, Reader
from memgraph.text.words import overlap

PHASE, COPIES = "near-duplicates", "copies"
SLEEP_COSINE = 0.9
"""Minimum cosine: the strictest, because here each memory is compared with all of its group, whatever their sources."""
SLEEP_OVERLAP = 0.7
"""Texts without vectors are compared if they share at least this fraction of their terms (seed 1)."""
_GROUP_COLUMNS = ("type", "project", "task", "tier", "trust", "outcome", "domain", "speaker")
_COPY_COLUMNS = ("project", "task", "tier", "domain")
_LOOKED_AT = 16
"""Of the memories that are near one, this many are compared with it."""
_PORTION = 500
_WATCH = Watch(
    (AccessRecorded,), frozenset({"floor", "archive_summary", "relevance_anchor", "relevance_at", "updated_at"})
)
"""Events that can change which memories say the same."""

R = TypeVar("R", MergeResult, CopiesResult)


def merge_near_duplicates(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, on_portion: Callable[[int], None] | None = None
) -> MergeResult:
    """Merge memories that say the same, comparing those that are new or changed since this sleep phase last completed.

    Deterministic, without a model. Idempotent.

    Parameters
    ----------
    is_time_up : callable, optional
        Called before each portion but the first; once it returns true, the rest waits for the next run.
    on_portion : callable, optional
        Called after each portion but the last with the last journal event covered, so that the caller can record the
        progress and a later run can continue from there.
    """
    return _in_portions(store, PHASE, MergeResult(), _near_duplicates, is_time_up, on_portion)


def merge_copies(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, on_portion: Callable[[int], None] | None = None
) -> CopiesResult:
    """Merge the copies among memories that are new or changed since this sleep phase last completed. Idempotent.

    Parameters
    ----------
    is_time_up, on_portion : callable, optional
        As for `merge_near_duplicates`.
    """

    def plan(view: View, portion: Changes) -> Plan[CopiesResult]:
        return _copies(view, portion.touched)

    return _in_portions(store, COPIES, CopiesResult(), plan, is_time_up, on_portion)


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
        carry_out(store, partial(_copies, ids=ids, stays=stays, may=may), attempts=1, actor=actor)
    return {one: stays[one] for one in ids if one in stays}


def copies_of(store: AgentMemoryStore, memory_id: str) -> list[str]:
    """Return the copies that were merged into a memory: they would be in force again without it."""
    found: dict[str, None] = {}
    waiting = [memory_id]
    while waiting:
        one = waiting.pop()
        links = (link for link in store.links(one) if link.relation == "SUPERSEDES" and link.source_id == one)
        new = [link.target_id for link in links if link.reason == SAME_TEXT and link.target_id not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return [one for one in found if one != memory_id]


def _in_portions(
    store: AgentMemoryStore,
    phase: str,
    total: R,
    plan: Callable[..., Plan[R]],
    is_time_up: TimeIsUp,
    on_portion: Callable[[int], None] | None,
) -> R:
    since, until = last_run(store.reader, phase_key(phase)).get("seq", 0), store.reader.index.offset.seq
    portions = changes_after(
        store.reader, since, _WATCH.touched, until=until, most_memories=_PORTION, most_events=MOST_EVENTS
    )
    for number, portion in enumerate(portions):
        if number and is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(plan, portion=portion), rests_on=_WATCH.touched).result)
        if on_portion and not portion.is_last:
            on_portion(portion.through_seq)
    return total


class Near(NamedTuple):
    """Two near memories: ids, and their similarity: the share of common terms if `is_by_words`, else the cosine."""

    score: float
    one: str
    other: str
    is_by_words: bool = False


@dataclass(slots=True, eq=False)
class _Union:
    """Memories that become one.

    Attributes
    ----------
    kept, text : StoredMemory
        The one that stays, and the one whose text stands for all.
    others : list of (StoredMemory, Near)
        Those that are merged into it, each with the pair that united them.
    known : set of str
        Ids of all, and of what was merged into them before.
    """

    kept: StoredMemory
    text: StoredMemory
    known: set[str]
    others: list[tuple[StoredMemory, Near]] = field(default_factory=list)

    @classmethod
    def of(cls, memory: StoredMemory) -> _Union:
        return cls(memory, memory, {memory.id, *memory.source_event_ids})

    @property
    def ids(self) -> set[str]:
        return {self.kept.id, *(one.id for one, _ in self.others)}

    def fits(self, other: _Union, opposed: Mapping[str, set[str]]) -> bool:
        """Return whether another union may become one with this one."""
        if not self.known.isdisjoint(other.ids) or not other.known.isdisjoint(self.ids):
            return False  # some were merged before, and were separated
        if any(other.known & opposed[one] for one in self.known & opposed.keys()):
            return False  # they, or memories merged into them, contradict each other
        both = (self.kept, other.kept)
        if all(one.is_pinned for one in both) and not is_equal(*(one.content for one in both)):
            return False
        every = [one for union in (self, other) for one in (union.kept, *(gone for gone, _ in union.others))]
        outcomes = {one.outcome for one in every}
        if len(outcomes) > 1 and "negative" in outcomes:
            return False  # a failure is the same only as a failure
        if len({one.speaker for one in every} - {None}) > 1:
            return False  # what two speakers say in equal words are two statements
        return _are_near(self.text, other.text) and same(self.text, other.text)

    def take(self, other: _Union, near: Near) -> None:
        """Unite with another union, whose memories are gone."""
        self.text = self.kept if self.kept.is_pinned else stands_for_both(self.text, other.text)
        self.known |= other.known
        self.others += [(other.kept, near), *other.others]


def may_be_one(opposed: Mapping[str, set[str]], kept: StoredMemory, other: StoredMemory) -> bool:
    """Return whether one of two nearby memories may be merged into the other.

    Parameters
    ----------
    opposed : mapping
        The contradicting memories by memory id.
    """
    return _is_mergeable(kept) and _is_mergeable(other) and _Union.of(kept).fits(_Union.of(other), opposed)


def _are_near(one: StoredMemory, other: StoredMemory) -> bool:
    if is_equal(one.content, other.content):
        return True
    if one.embedding is not None and other.embedding is not None:
        return round(cosine_similarity(one.embedding, other.embedding), 6) >= SLEEP_COSINE
    return overlap(set(analyse(one.content)), set(analyse(other.content))) >= SLEEP_OVERLAP


def _is_mergeable(memory: StoredMemory) -> bool:
    is_evidence = memory.type == "episodic" and not memory.evidence_build_ids
    return memory.source not in MADE_FROM_OTHERS and not is_evidence


def _united(reader: Reader, pairs: Iterable[Near], opposed: Mapping[str, set[str]]) -> list[_Union]:
    """Return the unions of at least two memories. The nearest pairs come first.

    Parameters
    ----------
    opposed : mapping
        The contradicting memories by memory id.
    """
    ordered = sorted(pairs, key=lambda pair: (-pair.score, pair.one, pair.other))
    ids = dict.fromkeys(one for pair in ordered for one in (pair.one, pair.other))
    unions = {one.id: _Union.of(one) for one in reader.read([*ids]) if _is_mergeable(one)}
    for pair in ordered:
        found = {unions.get(pair.one), unions.get(pair.other)} - {None}
        if len(found) == 2:
            first, second = sorted((one for one in found if one), key=lambda union: _rank(union.kept))
            if first.fits(second, opposed):
                first.take(second, pair)
                unions |= dict.fromkeys(second.ids, first)
    return [one for one in dict.fromkeys(unions.values()) if one.others]


def _rank(memory: StoredMemory) -> tuple[bool, int, str, str]:
    return not memory.is_pinned, TRUST.index(memory.trust_class), memory.created_at, memory.id


def _commits(view: View, unions: Sequence[_Union], reason: str) -> list[Commit]:
    """Return the merges into the memories that stay: a union is committed as a whole, so that an interrupted run comes to the same ones."""
    merges = list[tuple[str | None, list[Write]]]()
    for union in unions:
        kept, writes = union.kept, list[Write]()
        for other, pair in union.others:
            after = joined(kept, other, view.now, view.config.forgetting_curve, takes_text=other is union.text)
            writes += merge_writes(kept, other, after, score=pair.score, reason=reason, now=view.now)
            kept = after
        merges.append((kept.task_id, writes))
    return commits_by_task(merges)


def _copies(
    view: View, ids: Iterable[str], stays: dict[str, str] | None = None, may: Permits = everything
) -> Plan[CopiesResult]:
    """Plan the merges of copies; `stays` receives for each memory that is gone the one that stays."""
    reader, pairs, looked_at = view.reader, set[Near](), 0
    with reader.frozen():
        index, there = reader.index, comparable(reader) & may(reader)
        for one in ids:
            slot = index.slot(one)
            if slot < 0 or not there[slot]:
                continue
            looked_at += 1
            mask = there.copy()
            for name in _COPY_COLUMNS:
                mask &= index.column(name) == index.column(name)[slot]
            speaker = index.column("speaker")
            if speaker[slot] >= 0:  # what two speakers say in equal words are two statements
                mask &= (speaker == speaker[slot]) | (speaker < 0)
            mask[slot] = False
            if mask.any() and (memory := next(iter(reader.read([one])), None)) is not None:
                first, *rest = sorted([memory, *equal_memories(reader, memory.content, mask)], key=_rank)
                pairs |= {Near(1.0, first.id, other.id) for other in rest}  # the rest may have been separated from it
        unions = _united(reader, pairs, linked(index, "CONTRADICTS"))
    if stays is not None:
        stays |= {gone.id: one.kept.id for one in unions for gone, _ in one.others}
    result = CopiesResult(looked_at=looked_at, merged=sum(len(one.others) for one in unions))
    return Plan(result, _commits(view, unions, SAME_TEXT))


def _near_duplicates(view: View, portion: Changes) -> Plan[MergeResult]:
    """Plan the merges of a portion with everything recorded up to its end."""
    reader, pairs, looked_at = view.reader, list[Near](), 0
    with reader.frozen():
        index, there, has_vector = reader.index, comparable(reader), reader.has_vector()
        if not portion.is_last:
            there &= index.column("seq") <= portion.through_seq
        slots, is_new, names = np.flatnonzero(there), _is_new(index, portion.touched), index.ids.names
        for members in (slots[places] for places in groups(index, slots)):
            new = members[is_new[members]].tolist()
            looked_at += len(new)
            found = near(
                reader, new, members, cosine=SLEEP_COSINE, share=SLEEP_OVERLAP, of_smaller=False, most=_LOOKED_AT
            )
            for slot, others in found.items():
                for other, score in others.items():
                    one, its = sorted((names[slot], names[other]))
                    pairs.append(Near(score, one, its, not (has_vector[slot] and has_vector[other])))
        opposed = linked(index, "CONTRADICTS")
    unions = _united(reader, pairs, opposed)
    merged = [pair for union in unions for _, pair in union.others]
    by_words = sum(pair.is_by_words for pair in merged)
    result = MergeResult(looked_at=looked_at, merged=len(merged), by_words=by_words)
    return Plan(result, _commits(view, unions, NEAR_DUPLICATE))


def comparable(reader: Reader) -> Mask:
    """Return the memories in force, without those told in one session only and without parts of longer texts, which hold part of a meaning."""
    told = ~reader.index.column("is_session_bound")
    return without_parts(reader.index, reader.listed() & ~reader.superseded() & told)


def without_parts(index: Index, mask: Mask) -> Mask:
    """Return a mask without parts of longer texts."""
    is_part = (index.column("previous") >= 0) | (index.column("following") >= 0)
    whole: Mask = mask & ~(is_part & (index.column("type") != MEMORY_TYPES.index("episodic")))
    return whole


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
