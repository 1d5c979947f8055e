"""Collection: what has faded is put away, what must not be forgotten is kept, what was long not used is summarised (design §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.lifecycle.collection.landmarks import LANDMARK_FLOOR, Company, Mask, by_tag, is_negative
from memgraph.lifecycle.run.runner import Commit, Plan, View, account, carry_out
from memgraph.model.events.lifecycle import FADED, CollectionApplied
from memgraph.model.events.memories import MemoryDeleted, MemoryRevised, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.memory import MEMORY_TYPES
from memgraph.model.results.maintenance import CollectionResult
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import summary_of

SUMMARISED_AFTER_DAYS = 30.0
_USED_ENOUGH = 3
"""So many accesses keep a memory, however faded."""
_BORNE_OUT = 2
"""What was distilled from so many memories or builds is all that is left of them when they are gone."""
_BATCH = 1_000
"""Memories in one commit: it holds the writer lock for less than a second or so."""
_TASK = scope_name("task", "")
_COUNTED = ("archived", "deleted", "summarised", "floors_set", "floors_cleared")


def collect(store: AgentMemoryStore, *, progress: Progress | None = None) -> CollectionResult:
    """Collect once: put faded memories away, set and clear the floors of landmarks, summarise episodes long not used.

    What is put away is archived or, where the setting ``garbage_collection`` says so, deleted; what something else was
    distilled from is its evidence, and always archived. It has a relevance below the curve's threshold and was accessed
    fewer than three times; it is neither pinned nor suppressed nor a landmark, nor the last trace of what it was distilled
    from. Memories go one after the other, what is superseded first and then the most faded, so of several that tell of one
    failure the last one that is left has become a landmark, and stays.

    Each batch is decided anew under the writer lock and is one commit in one write scope. A run that was stopped is finished
    by the next one, which ends as if there had been one, if the clock stands where it stood.

    Parameters
    ----------
    progress : callable, optional
        Is told how many memories have been looked after, and of how many.
    """
    done: Counter[str] = Counter()
    for step in (_putting_away, _setting_floors, _summarising):
        while (batch := carry_out(store, step, attempts=1).result).done:
            done += batch.done
            if progress:
                progress(done.total(), done.total() + batch.left)
    return carry_out(store, partial(_concluded, done=done), attempts=1).result


class _Batch(NamedTuple):
    """What a batch changes, and how many of its kind may be left."""

    done: Counter[str]
    left: int


class Survey:
    """All memories as a collection sees them. The store is held still meanwhile.

    Attributes
    ----------
    index : Index
    relevance : ndarray, shape (n,), float64
        Now, without the floors of landmarks.
    faded : ndarray of int
        Slots of what is faded and may go, in the order in which it goes.
    is_evidence : ndarray of bool
        Whether something else was distilled from it.
    last_traces : int
        How many of the faded that `going` has come to stay, because they are what is left of their sources.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self.index = index = view.reader.index
        self._listed = view.reader.listed()
        self._tells: Mask = self._listed & ~view.reader.superseded()
        self._present: Mask = index.column("is_live") & ~index.column("is_archived")
        self._by_tag = by_tag(index)
        self._negative = is_negative(index)
        self._company = Company(index, self._tells, self._tells & self._negative)
        distilled, evidence = index.links.pairs(RELATION_CODE["DERIVED_FROM"])
        self._is_distilled = _mask(index, distilled[index.column("is_live")[evidence]])
        self.is_evidence = _mask(index, evidence[index.column("is_live")[distilled]])
        self.relevance = _relevance(view, index)
        self.faded = self._in_order(self._faded())
        self.last_traces = 0

    def going(self) -> Iterator[int]:
        """Yield the slots of what goes, in order, each counted as gone from then on."""
        for slot in self.faded.tolist():
            if self._tells[slot] and self._negative[slot] and self._company.is_alone(slot):
                continue
            if self._tells[slot] and self._is_distilled[slot] and self._is_last_trace(slot):
                self.last_traces += 1
                continue
            self._company.leave(slot)
            self._present[slot] = self._listed[slot] = self._tells[slot] = False
            yield slot

    def landmarks(self) -> Mask:
        """Return the slots of landmarks: they are listed."""
        mask: Mask = (self._listed & self._by_tag) | (self._tells & self._negative & self._company.alone())
        return mask

    def negatives(self) -> Mask:
        """Return the slots of negative memories that are listed."""
        return self._listed & self._negative

    def without_floor(self) -> list[int]:
        """Return the slots of landmarks that lack their floor."""
        return self._by_scope(self.landmarks() & (self.index.column("floor") < LANDMARK_FLOOR))

    def with_floor(self) -> list[int]:
        """Return the slots of what is no landmark and still has the floor of one."""
        return self._by_scope(self._present & ~self.landmarks() & (self.index.column("floor") == LANDMARK_FLOOR))

    def unsummarised(self) -> list[int]:
        """Return the slots of episodes that were not used for 30 days and have no summary yet."""
        index = self.index
        last = np.maximum(index.column("created_days"), index.column("accessed_days"))
        long_ago = epoch_days(self._view.now) - last >= SUMMARISED_AFTER_DAYS
        is_episode = index.column("type") == MEMORY_TYPES.index("episodic")
        return self._by_scope(self._listed & is_episode & index.column("lacks_summary") & long_ago)

    def task_of(self, slot: int) -> str | None:
        """Return the task whose memory it is."""
        code = int(self.index.column("task")[slot])
        return self.index.scopes.names[code].removeprefix(_TASK) if code >= 0 else None

    def _faded(self) -> Mask:
        index = self.index
        faded: Mask = self._present & (self.relevance < self._view.config.forgetting_curve.deletion_threshold)
        faded &= index.column("access_count") < _USED_ENOUGH
        faded &= ~index.column("is_pinned") & ~index.column("is_suppressed") & ~self._by_tag
        return faded

    def _in_order(self, mask: Mask) -> NDArray[np.int64]:
        """Return masked slots in an order that follows from the memories alone: what is the last to tell goes last.

        First goes what is superseded or not listed: it tells nothing, so nothing is lost.
        """
        slots = np.flatnonzero(mask)
        told = (self._tells[slots], self._is_distilled[slots], self._negative[slots])
        last_first = (*told, self._scopes(slots), self.relevance[slots])
        return slots[np.lexsort((self.index.column("seq")[slots], *reversed(last_first)))]

    def _by_scope(self, mask: Mask) -> list[int]:
        slots = np.flatnonzero(mask)
        ordered: list[int] = slots[np.lexsort((self.index.column("seq")[slots], self._scopes(slots)))].tolist()
        return ordered

    def _scopes(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ranks of the slots' write scopes, the global one first, by name: codes are each index's own affair."""
        names = np.array(["", *self.index.scopes.names])[self.index.column("task")[slots] + 1]
        ranks: NDArray[np.int64] = np.unique(names, return_inverse=True)[1].ravel()
        return ranks

    def _is_last_trace(self, slot: int) -> bool:
        """Tell whether nothing is listed any more of what a memory was distilled from, and that was more than one thing."""
        others, weights = self.index.links.get(slot)
        sources = others[weights == RELATION_CODE["DERIVED_FROM"]]
        if self._listed[sources].any():
            return False
        if len(sources) >= _BORNE_OUT:
            return True
        told = self._view.reader.read([self.index.ids.names[one] for one in (slot, *sources)])
        return len({build for memory in told for build in memory.evidence_build_ids}) >= _BORNE_OUT


def counted(survey: Survey, done: Counter[str]) -> CollectionResult:
    """Return what was done, with the landmarks that there are when everything that is to go has gone."""
    for _ in survey.going():
        pass
    landmarks, negatives = survey.landmarks(), survey.negatives()
    both = int((landmarks & negatives).sum())
    return CollectionResult(
        **{name: done[name] for name in _COUNTED},
        landmarks=int(landmarks.sum()),
        negatives=int(negatives.sum()),
        negative_landmarks=both,
        landmark_share=both / int(negatives.sum()) if both else 0.0,
        last_traces=survey.last_traces,
    )


def _putting_away(view: View) -> Plan[_Batch]:
    """Plan to archive or delete a batch."""
    survey = Survey(view)
    deletes = view.config.garbage_collection == "delete"
    going = _together(survey, survey.going())
    gone = [deletes and not survey.is_evidence[slot] for slot in going]
    events = [
        MemoryDeleted(id=name, reason=FADED)
        if is_gone
        else _revision(name, archived_at=view.now, archive_reason=FADED, updated_at=view.now)
        for name, is_gone in zip(_names(survey, going), gone, strict=True)
    ]
    done = Counter("deleted" if is_gone else "archived" for is_gone in gone)
    return _planned(survey, going, events, _Batch(done, len(survey.faded) - len(going)))


def _setting_floors(view: View) -> Plan[_Batch]:
    """Plan to give a batch of landmarks their floor, or to take it from a batch of what is none."""
    survey = Survey(view)
    lacking, spare = survey.without_floor(), survey.with_floor()
    name, slots, floor = ("floors_set", lacking, LANDMARK_FLOOR) if lacking else ("floors_cleared", spare, 0.0)
    some = _together(survey, slots)
    events = [_revision(one, floor=floor) for one in _names(survey, some)]
    return _planned(survey, some, events, _Batch(_count(name, some), len(lacking) + len(spare) - len(some)))


def _summarising(view: View) -> Plan[_Batch]:
    """Plan to summarise a batch of episodes."""
    survey = Survey(view)
    slots = survey.unsummarised()
    some = _together(survey, slots)
    memories = view.reader.read(_names(survey, some))
    events = [_revision(one.id, archive_summary=summary_of(one.content)) for one in memories]
    return _planned(survey, some, events, _Batch(_count("summarised", some), len(slots) - len(some)))


def _concluded(view: View, done: Counter[str]) -> Plan[CollectionResult]:
    """Plan to say what a collection has done."""
    result = counted(Survey(view), done)
    found = ("landmarks", "negatives", "negative_landmarks", "last_traces")
    counts = {name: getattr(result, name) for name in (*_COUNTED, *found)}
    threshold = view.config.forgetting_curve.deletion_threshold
    return Plan(result, [account(CollectionApplied(applied_at=view.now, threshold=threshold, **counts))])


def _together(survey: Survey, slots: Iterable[int]) -> list[int]:
    """Return the first slots, as many as share the first one's write scope, and as fit into one commit."""
    some: list[int] = []
    for slot in islice(slots, _BATCH):
        if some and survey.task_of(slot) != survey.task_of(some[0]):
            break
        some.append(slot)
    return some


def _planned(survey: Survey, slots: Sequence[int], events: Sequence[Payload], batch: _Batch) -> Plan[_Batch]:
    return Plan(batch, [Commit(events, survey.task_of(slots[0]))] if slots else [])


def _names(survey: Survey, slots: Sequence[int]) -> list[str]:
    return [survey.index.ids.names[slot] for slot in slots]


def _count(name: str, slots: Sequence[int]) -> Counter[str]:
    return Counter({name: len(slots)}) if slots else Counter()


def _revision(memory_id: str, **changed: Any) -> MemoryRevised:
    return MemoryRevised(id=memory_id, changed=RecordPatch.parse(changed))


def _relevance(view: View, index: Index) -> NDArray[np.float64]:
    """Relevance of every slot now, the floors of landmarks left out: who was one may be none any more."""
    curve = view.config.forgetting_curve
    days = np.maximum(0.0, epoch_days(view.now) - index.column("anchored_days"))
    rates = np.array([curve.rate(kind) for kind in MEMORY_TYPES])[index.column("type")]
    floor = index.column("floor")
    faded: NDArray[np.float64] = index.column("anchor") * np.exp(-rates * days)
    return np.maximum(np.where(floor == LANDMARK_FLOOR, 0.0, floor), faded)


def _mask(index: Index, slots: NDArray[Any]) -> Mask:
    mask = np.zeros(len(index), dtype=np.bool_)
    mask[slots] = True
    return mask
