"""Collection: archive or delete faded memories, protect landmarks, summarise episodes long unused (seed 0; design §4).

A memory is a landmark, and never forgotten, if it bears one of four landmark tags, or if it is negative and has no company: no other listed
memory of its project shares all, or at least two, of its tags. Superseded memories are neither landmarks for lack of company nor company
for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import OUTCOMES
from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.lifecycle.dedup.near_duplicates import of_scope
from memgraph.lifecycle.run import Commit, Plan, View, account, carry_out, counts_of, reported
from memgraph.model.events.memories import MemoryDeleted, MemoryRevised, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import FADED, CollectionApplied
from memgraph.model.ids import canonical_name
from memgraph.model.memory import MEMORY_TYPES, AgentMemory
from memgraph.model.results.maintenance import CollectionPreview, CollectionResult, FadedMemory
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import preview, summary_of

LANDMARK_TAGS = frozenset({"critical-failure", "data-loss", "security-incident", "user-escalation"})
LANDMARK_FLOOR = 0.1
"""Relevance floor of a landmark."""
_SHARED = 2
"""Memories that share this many tags are company for each other."""
_MOST_TAGS = 24
"""Only the rarest tags of a memory are compared, this many at most: it bounds the number of counted tag pairs."""

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]


def is_landmark(store: AgentMemoryStore, memory: AgentMemory) -> bool:
    """Return whether a memory, stored or not, is a landmark among the listed ones. Costs one pass over the index."""
    tags = set(map(canonical_name, memory.tags))
    if tags & LANDMARK_TAGS:
        return True
    if memory.outcome != "negative":
        return False
    with store.reader.frozen():
        index = store.reader.index
        superseded = store.reader.superseded()
        listed = store.reader.listed() & ~superseded
        others = listed & of_scope(store, "project", memory.project_id)
        if memory.id is not None and (own := index.slot(memory.id)) >= 0:
            if not listed[own]:
                return False
            others[own] = False
        shared = np.zeros(len(index), dtype=np.int64)
        for slots in _tagged(index, tags):
            shared[slots] += 1
        return not bool((others & (shared >= min(len(tags), _SHARED))).any())


class Company:
    """Tells which of the `asking` memories have company among the members: others of their project that share enough of their tags.

    Memories are counted per project, per tag and per pair of tags instead of being compared. So the cost is linear in a
    tag's frequency, and removing a memory costs no more than its own tags.
    """

    def __init__(self, index: Index, members: Mask, asking: Mask) -> None:
        self._is_member = members.copy()
        slots, keys, needed = _traits(index, members | asking)
        _, keys = np.unique(keys, return_inverse=True)
        order = np.argsort(slots, kind="stable")
        self._slots, self._keys, self._needed = slots[order], keys.ravel()[order], needed[order]
        self._starts = np.searchsorted(self._slots, np.arange(len(index) + 1))
        self._counts = np.bincount(self._keys, weights=members[self._slots], minlength=1).astype(np.int64)

    def alone(self) -> Mask:
        """Return which of the slots that may be queried have no company."""
        with_others = self._needed & (self._counts[self._keys] > self._is_member[self._slots])
        mask: Mask = np.bincount(self._slots[with_others], minlength=len(self._is_member)) == 0
        return mask

    def is_alone(self, slot: int) -> bool:
        """Return whether one slot has no company."""
        part = slice(self._starts[slot], self._starts[slot + 1])
        counts = self._counts[self._keys[part][self._needed[part]]]
        return not bool((counts > self._is_member[slot]).any())

    def leave(self, slot: int) -> None:
        """Remove a slot from the counts."""
        if self._is_member[slot]:
            self._counts[self._keys[self._starts[slot] : self._starts[slot + 1]]] -= 1
            self._is_member[slot] = False


def _tagged(index: Index, tags: Iterable[str]) -> Iterator[NDArray[Any]]:
    """Yield the slots that bear each of these tags."""
    return (index.tags.get(code)[0] for code in map(index.tag_names.find, tags) if code >= 0)


def _traits(index: Index, wanted: Mask) -> tuple[Codes, Codes, Mask]:
    """Return (slot, trait, whether company must share it) of the wanted slots, as three equally long arrays.

    Traits are a slot's project, its tags there, and the pairs of these tags. Company must share a pair of tags, the
    only tag if the memory has just one, or the project alone if it has none.
    """
    projects = index.column("project").astype(np.int64) + 1
    tags, slots = (part.astype(np.int64) for part in index.tags.pairs(1))
    tags, slots = tags[wanted[slots]], slots[wanted[slots]]
    scoped = projects[slots] * len(index.tag_names) + tags
    _, tags, frequency = np.unique(scoped, return_inverse=True, return_counts=True)
    order = np.lexsort((tags.ravel(), frequency[tags.ravel()], slots))
    slots, tags = slots[order], tags.ravel()[order] + 1
    numbers, everyone = np.bincount(slots, minlength=len(index)), np.flatnonzero(wanted)
    parts = [(everyone, -projects[everyone], numbers[everyone] == 0), (slots, tags, numbers[slots] == 1)]
    is_rare = np.arange(len(slots)) - (np.cumsum(numbers) - numbers)[slots] < _MOST_TAGS
    slots, tags = slots[is_rare], tags[is_rare]
    for ahead in range(1, min(_MOST_TAGS, int(numbers.max(initial=0)))):  # each tag with the one so far behind it
        one = np.flatnonzero(slots[ahead:] == slots[:-ahead])
        pairs = tags[one] * (len(frequency) + 1) + tags[one + ahead]
        parts.append((slots[one], pairs, np.ones(len(one), dtype=np.bool_)))
    slots, traits, needed = (np.concatenate(column) for column in zip(*parts, strict=True))
    return slots, traits, needed


_SHOWN = 100
SUMMARISED_AFTER_DAYS = 30.0
_USED_ENOUGH = 3
"""A memory with this many accesses is kept, however faded."""
_BORNE_OUT = 2
"""A memory distilled from this many memories or builds is kept once all of its sources are gone."""
_BATCH = 1_000
"""Memories in one commit, so that it holds the writer lock for about a second at most."""
_TASK = scope_name("task", "")
_COUNTED = ("archived", "deleted", "summarised", "floors_set", "floors_cleared")


def collect(store: AgentMemoryStore, *, progress: Progress | None = None) -> CollectionResult:
    """Run one collection: remove faded memories, set and clear the floors of landmarks, summarise long unused episodes.

    A memory goes (the evidence of another is always archived, the others as ``garbage_collection`` says) if its relevance is below the curve's
    threshold and it was accessed fewer than three times, unless it is pinned, suppressed, a landmark, or the last trace of what it was
    distilled from. Memories go one by one, superseded ones first and then the most faded, so the last of several memories of one failure
    becomes a landmark and stays.

    Each batch is decided under the writer lock and committed at once. The run after an interrupted one completes it, with the same result if
    the clock has not moved.
    """
    with reported(store, "collect") as notes:
        done: Counter[str] = Counter()
        while (batch := carry_out(store, _planned, attempts=1).result).done:
            done += batch.done
            if progress:
                progress(done.total(), done.total() + batch.left)
        result = carry_out(store, partial(_concluded, done=done), attempts=1).result
        notes.counts = counts_of(result)
    return result


class _Batch(NamedTuple):
    done: Counter[str]
    left: int
    """How many faded memories may remain."""


class Survey:
    """All memories as a collection sees them. The store must be frozen meanwhile."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.index = index = view.reader.index
        self._listed = view.reader.listed()
        self._tells: Mask = self._listed & ~view.reader.superseded()
        self._present: Mask = index.column("is_live") & ~index.column("is_archived")
        self._negative: Mask = index.column("outcome") == OUTCOMES.index("negative")
        self._by_tag = _mask(index, *_tagged(index, LANDMARK_TAGS))
        self._company = Company(index, self._tells, self._tells & self._negative)
        distilled, evidence = index.links.pairs(RELATION_CODE["DERIVED_FROM"])
        self._is_distilled = _mask(index, distilled[index.column("is_live")[evidence]])
        self.is_evidence = _mask(index, evidence[index.column("is_live")[distilled]])
        self.relevance = view.reader.relevance(without_floor=LANDMARK_FLOOR)  # a landmark may have ceased to be one
        faded: Mask = self._present & (self.relevance < view.config.forgetting_curve.deletion_threshold)
        faded &= index.column("access_count") < _USED_ENOUGH
        faded &= ~index.column("is_pinned") & ~index.column("is_suppressed") & ~self._by_tag
        self.faded = self._in_order(faded)
        self._last_traces = 0

    def going(self) -> Iterator[int]:
        """Yield the slots of the memories that go, in order, each counted as gone once it is yielded."""
        for slot in self.faded.tolist():
            if self._tells[slot] and self._negative[slot] and self._company.is_alone(slot):
                continue
            if self._tells[slot] and self._is_distilled[slot] and self._is_last_trace(slot):
                self._last_traces += 1
                continue
            self._company.leave(slot)
            self._present[slot] = self._listed[slot] = self._tells[slot] = False
            yield slot

    def landmarks(self) -> Mask:
        """Return the slots of listed landmarks."""
        mask: Mask = (self._listed & self._by_tag) | (self._tells & self._negative & self._company.alone())
        return mask

    def without_floor(self) -> list[int]:
        """Return the slots of landmarks that lack their floor."""
        return self._by_scope(self.landmarks() & (self.index.column("floor") < LANDMARK_FLOOR))

    def with_floor(self) -> list[int]:
        """Return the slots of memories that have a landmark's floor but are no longer landmarks."""
        return self._by_scope(self._present & ~self.landmarks() & (self.index.column("floor") == LANDMARK_FLOOR))

    def unsummarised(self) -> list[int]:
        """Return the slots of episodes that were unused for 30 days and have no summary yet."""
        index = self.index
        last = np.maximum(index.column("created_days"), index.column("accessed_days"))
        long_ago = epoch_days(self._view.now) - last >= SUMMARISED_AFTER_DAYS
        is_episode = index.column("type") == MEMORY_TYPES.index("episodic")
        return self._by_scope(self._listed & is_episode & index.column("lacks_summary") & long_ago)

    def name_of(self, slot: int) -> str:
        """Return the id of the memory."""
        return self.index.ids.names[slot]

    def task_of(self, slot: int) -> str | None:
        """Return the task that the memory belongs to."""
        code = int(self.index.column("task")[slot])
        return self.index.scopes.names[code].removeprefix(_TASK) if code >= 0 else None

    def _in_order(self, mask: Mask) -> NDArray[np.int64]:
        """Return the slots in an order that depends on the memories alone: superseded and unlisted ones first, as nothing is lost with them."""
        slots = np.flatnonzero(mask)
        criteria = (self._tells[slots], self._is_distilled[slots], self._negative[slots])
        last_first = (*criteria, self._scopes(slots), self.relevance[slots])
        return slots[np.lexsort((self.index.column("seq")[slots], *reversed(last_first)))]

    def _by_scope(self, mask: Mask) -> list[int]:
        slots = np.flatnonzero(mask)
        ordered: list[int] = slots[np.lexsort((self.index.column("seq")[slots], self._scopes(slots)))].tolist()
        return ordered

    def _scopes(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rank of each slot's write scope by name, the global scope first: codes differ between indexes."""
        names = np.array(["", *self.index.scopes.names])[self.index.column("task")[slots] + 1]
        ranks: NDArray[np.int64] = np.unique(names, return_inverse=True)[1].ravel()
        return ranks

    def _is_last_trace(self, slot: int) -> bool:
        """Return whether a memory was distilled from more than one source, none of which is listed any more."""
        others, weights = self.index.links.get(slot)
        sources = others[weights == RELATION_CODE["DERIVED_FROM"]]
        if (self._listed | (self.index.column("is_record") & self._present))[sources].any():
            return False
        if len(sources) >= _BORNE_OUT:
            return True
        memories = self._view.reader.read([self.index.ids.names[one] for one in (slot, *sources)])
        return len({build for memory in memories for build in memory.evidence_build_ids}) >= _BORNE_OUT

    def result(self, done: Counter[str]) -> CollectionResult:
        """Return the result, with the number of landmarks that remain after everything due has gone."""
        for _ in self.going():
            pass
        landmarks, negatives = self.landmarks(), self._listed & self._negative
        both = int((landmarks & negatives).sum())
        return CollectionResult(
            **{name: done[name] for name in _COUNTED},
            landmarks=int(landmarks.sum()),
            negatives=int(negatives.sum()),
            negative_landmarks=both,
            landmark_share=both / int(negatives.sum()) if both else 0.0,
            last_traces=self._last_traces,
        )


def _planned(view: View) -> Plan[_Batch]:
    """Plan the leading changes that share the first one's write scope and fit into one commit."""
    survey, some = Survey(view), list[tuple[int, str, Payload]]()
    for change in islice(_changes(view, survey), _BATCH):
        if some and survey.task_of(change[0]) != survey.task_of(some[0][0]):
            break
        some.append(change)
    commits = [Commit([event for *_, event in some], survey.task_of(some[0][0]))] if some else []
    return Plan(_Batch(Counter(name for _, name, _ in some), max(len(survey.faded) - len(some), 0)), commits)


def _changes(view: View, survey: Survey) -> Iterator[tuple[int, str, Payload]]:
    """Yield the slots of the memories to change, each with what it counts as and the event."""
    deletes = view.config.garbage_collection == "delete"
    for slot in survey.going():
        name = survey.name_of(slot)
        if deletes and not survey.is_evidence[slot]:
            yield slot, "deleted", MemoryDeleted(id=name, reason=FADED)
        else:
            away = {"archived_at": view.now, "archive_reason": FADED, "updated_at": view.now}
            yield slot, "archived", _revision(name, **away)
    for slot in survey.without_floor():
        yield slot, "floors_set", _revision(survey.name_of(slot), floor=LANDMARK_FLOOR)
    for slot in survey.with_floor():
        yield slot, "floors_cleared", _revision(survey.name_of(slot), floor=0.0)
    for slot in survey.unsummarised():
        (memory,) = view.reader.read([survey.name_of(slot)])
        yield slot, "summarised", _revision(memory.id, archive_summary=summary_of(memory.content))


def _concluded(view: View, done: Counter[str]) -> Plan[CollectionResult]:
    """Plan the event that records what the collection did."""
    result = Survey(view).result(done)
    found = ("landmarks", "negatives", "negative_landmarks", "last_traces")
    counts = {name: getattr(result, name) for name in (*_COUNTED, *found)}
    threshold = view.config.forgetting_curve.deletion_threshold
    return Plan(result, [account(CollectionApplied(applied_at=view.now, threshold=threshold, **counts))])


def _revision(memory_id: str, **changed: Any) -> MemoryRevised:
    return MemoryRevised(id=memory_id, changed=RecordPatch.parse(changed))


def _mask(index: Index, *slots: NDArray[Any]) -> Mask:
    mask = np.zeros(len(index), dtype=np.bool_)
    for some in slots:
        mask[some] = True
    return mask


def preview_collection(store: AgentMemoryStore) -> CollectionPreview:
    """Return what `collect` would do now, and the memories it would remove."""
    with store.reader.frozen():
        survey = Survey(View(store.reader, store.config, store.now()))
        going = list(survey.going())
        names = [survey.name_of(slot) for slot in going]
        deletes = store.config.garbage_collection == "delete"
        deleted = sum(deletes and not survey.is_evidence[slot] for slot in going)
        done = Counter(
            archived=len(going) - deleted,
            deleted=deleted,
            floors_set=len(survey.without_floor()),
            floors_cleared=len(survey.with_floor()),
            summarised=len(survey.unsummarised()),
        )
        result = survey.result(done)
        relevance = dict(zip(names, survey.relevance[going].tolist(), strict=True))
        shown = [
            FadedMemory(
                content=preview(memory.content),
                relevance=relevance[memory.id],
                **memory.model_dump(include={"id", "type", "access_count", "last_accessed_at"}),
            )
            for memory in store.read_memories(names[:_SHOWN])
        ]
    return CollectionPreview(**result.model_dump(), memory_ids=names, memories=shown)
