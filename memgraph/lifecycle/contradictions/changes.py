"""Changes since the last search for contradictions after which memories must be compared again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memgraph.journal.envelope import Event
from memgraph.lifecycle.run.changes import Watch, changes_after, revised_fields
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
from memgraph.model.events.records import AccessRecorded, OutcomeRecorded, ProcedureMeasured
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.store.query import Reader

_BATCH = 500
_MOST_REREAD = 5_000
"""After this many irrelevant events a run still records its progress."""
_COMPARED = frozenset(
    "content outcome entities tags domain valid_at invalid_at is_suppressed archived_at trust_class confidence "
    "situation action".split()
)  # fmt: skip
_WEIGHED = frozenset({"trust_class", "confidence"})
"""Fields that decide between two memories: a rise can settle a contradiction that was left open."""
_WATCH = Watch(
    (AccessRecorded, MemoryReembedded, MemoryDerived, MemoryLinked, MemoryUnlinked, MemoryDeleted, ProcedureMeasured),
    frozenset(RecordPatch.model_fields) - _COMPARED,
)


class Batch(NamedTuple):
    """Memories that are compared together.

    Attributes
    ----------
    memory_ids : list of str
        Memories written or changed after one event, up to and including another.
    confirmed, weighed : frozenset of str
        Those that were confirmed since; those whose confidence or trust was changed.
    after_seq, through_seq : int
    """

    memory_ids: list[str]
    confirmed: frozenset[str]
    weighed: frozenset[str]
    after_seq: int
    through_seq: int


def batches_after(reader: Reader, since: int) -> Iterator[Batch]:
    """Yield the changes after an event in batches of some hundred memories, without changes irrelevant to comparison."""
    confirmed: set[str] = set()
    weighed: set[str] = set()

    def touched_by(event: Event) -> list[str]:
        payload = event.payload
        if event.actor == "system" and isinstance(payload, MemoryRevised) and payload.changed.invalid_at is not None:  # type: ignore[attr-defined]
            return []  # no longer in force, possibly because of this search: it contradicts nothing
        by_use = payload.used if isinstance(payload, OutcomeRecorded) and _confirms(event) else []
        ids = _WATCH.touched(event)[:1] or by_use
        confirmed.update(ids if _confirms(event) else ())
        weighed.update(ids if isinstance(payload, MemoryRevised) and revised_fields(event) & _WEIGHED else ())
        if isinstance(payload, MemoryUnlinked) and payload.relation == "SUPERSEDES":
            ends = {payload.source_id, payload.target_id}  # the relation was changed by someone
            confirmed.difference_update(ends)
            weighed.difference_update(ends)
        return ids

    for touched, after, through, _is_last in changes_after(reader, since, touched_by, most_memories=_BATCH):
        if touched or through - after > _MOST_REREAD:
            yield Batch(list(touched), frozenset(confirmed), frozenset(weighed), after, through)
        confirmed.clear()
        weighed.clear()


def _confirms(event: Event) -> bool:
    """Return whether an event confirms its memory: a good outcome or a repetition. Merging copies in sleep does not."""
    payload = event.payload
    if isinstance(payload, OutcomeRecorded):
        return OUTCOME_OF_WORD.get(payload.outcome) == "positive"
    return isinstance(payload, MemoryMerged) and event.actor != "system"
