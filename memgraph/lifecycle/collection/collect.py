"""Collection: archive or delete faded memories, protect landmarks, summarise episodes long unused (design §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.lifecycle.collection.landmarks import LANDMARK_FLOOR, Company, Mask, by_tag, is_negative
from memgraph.lifecycle.run.reporting import counts_of, reported
from memgraph.lifecycle.run.runner import Commit, Plan, View, account, carry_out
from memgraph.model.events.memories import MemoryDeleted, MemoryRevised, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import FADED, CollectionApplied
from memgraph.model.memory import MEMORY_TYPES
from memgraph.model.results.maintenance import ChangedRecall, CollectionPreview, CollectionResult, FadedMemory
from memgraph.model.timestamps import epoch_days, from_iso, to_iso
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import preview, summary_of

RECENT_DAYS = 90
_SHOWN = 100

_RECALLS = "MATCH (r:Recall) WHERE r.retrieved_at >= timestamp($since) RETURN count(*) AS number"
_RETURNED = """
MATCH (r:Recall)-[e:RECALLED]->(m:Memory) WHERE r.retrieved_at >= timestamp($since) AND m.id IN $ids
RETURN r.id AS query_id, r.retrieved_at AS retrieved_at, r.agent_name AS agent_name, r.project_id AS project_id,
       m.id AS memory_id, e.score AS score
ORDER BY retrieved_at DESC, query_id, e.rank
"""
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

    A faded memory is archived or, if the setting ``garbage_collection`` says so, deleted. The evidence of another
    memory is always archived. A memory goes if its relevance is below the curve's threshold and it was accessed fewer
    than three times, unless it is pinned, suppressed, a landmark, or the last trace of what it was distilled from.
    Memories go one by one, superseded ones first and then the most faded, so the last of several memories of one
    failure becomes a landmark and stays.

    Each batch is decided under the writer lock and committed at once, within one write scope. The run after an
    interrupted one completes it, with the same result if the clock has not moved.

    Parameters
    ----------
    progress : callable, optional
        Called with (done, total) memories.
    """
    with reported(store, "collect") as notes:
        done: Counter[str] = Counter()
        for step in (_putting_away, _setting_floors, _summarising):
            while (batch := carry_out(store, step, attempts=1).result).done:
                done += batch.done
                if progress:
                    progress(done.total(), done.total() + batch.left)
        result = carry_out(store, partial(_concluded, done=done), attempts=1).result
        notes.counts = counts_of(result)
    return result


class _Batch(NamedTuple):
    """The changes of a batch, and how many changes of its kind may remain."""

    done: Counter[str]
    left: int


class Survey:
    """All memories as a collection sees them. The store must be frozen meanwhile.

    Attributes
    ----------
    index : Index
    relevance : ndarray, shape (n,), float64
        Current relevance, without the floors of landmarks.
    faded : ndarray of int
        Slots of faded memories that may go, in the order in which they go.
    is_evidence : ndarray of bool
        Whether another memory was distilled from it.
    last_traces : int
        How many faded memories `going` has kept so far because they are the last trace of their sources.
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
        """Yield the slots of the memories that go, in order, each counted as gone once it is yielded."""
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
        """Return the slots of listed landmarks."""
        mask: Mask = (self._listed & self._by_tag) | (self._tells & self._negative & self._company.alone())
        return mask

    def negatives(self) -> Mask:
        """Return the slots of listed negative memories."""
        return self._listed & self._negative

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

    def task_of(self, slot: int) -> str | None:
        """Return the task that the memory belongs to."""
        code = int(self.index.column("task")[slot])
        return self.index.scopes.names[code].removeprefix(_TASK) if code >= 0 else None

    def _faded(self) -> Mask:
        index = self.index
        faded: Mask = self._present & (self.relevance < self._view.config.forgetting_curve.deletion_threshold)
        faded &= index.column("access_count") < _USED_ENOUGH
        faded &= ~index.column("is_pinned") & ~index.column("is_suppressed") & ~self._by_tag
        return faded

    def _in_order(self, mask: Mask) -> NDArray[np.int64]:
        """Return the masked slots in an order that depends on the memories alone.

        Superseded and unlisted memories come first: removing them loses nothing.
        """
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


def counted(survey: Survey, done: Counter[str]) -> CollectionResult:
    """Return the result, with the number of landmarks that remain after everything due has gone."""
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
    """Plan to set the floor of a batch of landmarks, or to clear it for memories that are no longer landmarks."""
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
    """Plan the event that records what the collection did."""
    result = counted(Survey(view), done)
    found = ("landmarks", "negatives", "negative_landmarks", "last_traces")
    counts = {name: getattr(result, name) for name in (*_COUNTED, *found)}
    threshold = view.config.forgetting_curve.deletion_threshold
    return Plan(result, [account(CollectionApplied(applied_at=view.now, threshold=threshold, **counts))])


def _together(survey: Survey, slots: Iterable[int]) -> list[int]:
    """Return the leading slots that share the first one's write scope and fit into one commit."""
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
    """Return the current relevance of every slot without landmark floors, since a landmark may have ceased to be one."""
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


def preview_collection(store: AgentMemoryStore) -> CollectionPreview:
    """Return what `collect` would do now, and the recalls of the last 90 days that returned memories it would remove."""
    with store.reader.frozen():
        survey = Survey(View(store.reader, store.config, store.now(), is_locked=False))
        index, going = survey.index, list(survey.going())
        names = [index.ids.names[slot] for slot in going]
        was_used = index.column("access_count")[going] > 0 if going else np.zeros(0, dtype=np.bool_)
        done = Counter(
            floors_set=len(survey.without_floor()),
            floors_cleared=len(survey.with_floor()),
            summarised=len(survey.unsummarised()),
        )
        deletes = store.config.garbage_collection == "delete"
        done["deleted"] = int((~survey.is_evidence[going]).sum()) if deletes and going else 0
        done["archived"] = len(going) - done["deleted"]
        result = counted(survey, done)
        relevance = dict(zip(names, survey.relevance[going].tolist(), strict=True))
        shown = [
            FadedMemory(
                id=memory.id,
                type=memory.type,
                content=preview(memory.content),
                relevance=relevance[memory.id],
                access_count=memory.access_count,
                last_accessed_at=memory.last_accessed_at,
            )
            for memory in store.read_memories(names[:_SHOWN])
        ]
    since = to_iso(from_iso(store.now()) - timedelta(days=RECENT_DAYS))
    used = [name for name, was in zip(names, was_used.tolist(), strict=True) if was]
    return CollectionPreview(
        **result.model_dump(),
        memory_ids=names,
        memories=shown,
        recalls=_changed_recalls(store, used, since),
        recalls_since=since,
        recalls_in_all=store.cypher(_RECALLS, since=since)[0]["number"],
    )


def _changed_recalls(store: AgentMemoryStore, memory_ids: list[str], since: str) -> list[ChangedRecall]:
    """Return the retrievals since then that returned one of these memories, newest first."""
    if not memory_ids:
        return []
    found: dict[str, ChangedRecall] = {}
    for row in store.cypher(_RETURNED, since=since, ids=memory_ids):
        recall = ChangedRecall(
            query_id=row["query_id"],
            retrieved_at=row["retrieved_at"],
            agent_name=row["agent_name"],
            project_id=row["project_id"],
            scores={row["memory_id"]: row["score"]},
        )
        known = found.setdefault(recall.query_id, recall)
        known.scores.update(recall.scores)
    return list(found.values())
