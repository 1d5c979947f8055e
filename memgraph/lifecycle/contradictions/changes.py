"""Changes: what the journal tells of since the last search for contradictions that asks for memories to be compared anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memgraph.journal.envelope import Event
from memgraph.lifecycle.run.changes import Watch, changes_after, revised_fields
from memgraph.model.events.lifecycle import ProcedureMeasured
from memgraph.model.events.links import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryDeleted, MemoryMerged, MemoryRevised, RecordPatch
from memgraph.model.events.recalls import AccessRecorded, OutcomeRecorded
from memgraph.model.events.reembedding import MemoryReembedded
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.store.query import Reader

_BATCH = 500
_MOST_REREAD = 5_000
"""After so many events without anything to look at a run still notes how far it has come."""
_COMPARED = frozenset(
    "content outcome entities tags domain valid_at invalid_at is_suppressed archived_at trust_class confidence "
    "situation action".split()
)  # fmt: skip
_WEIGHED = frozenset({"trust_class", "confidence"})
"""What of a memory is weighed against another one: a rise lets a contradiction that was left open be decided."""
_WATCH = Watch(
    (AccessRecorded, MemoryReembedded, MemoryDerived, MemoryLinked, MemoryUnlinked, MemoryDeleted, ProcedureMeasured),
    frozenset(RecordPatch.model_fields) - _COMPARED,
)


class Batch(NamedTuple):
    """What is looked at together.

    Attributes
    ----------
    memory_ids : list of str
        What was written or changed after one event and through another.
    confirmed, weighed : frozenset of str
        Those among them that were confirmed since; those whose confidence or trust somebody has changed.
    after_seq, through_seq : int
    """

    memory_ids: list[str]
    confirmed: frozenset[str]
    weighed: frozenset[str]
    after_seq: int
    through_seq: int


def batches_after(reader: Reader, since: int) -> Iterator[Batch]:
    """Yield what has changed after an event, some hundred memories at a time; nothing for what no comparison looks at."""
    confirmed: set[str] = set()
    weighed: set[str] = set()

    def touched_by(event: Event) -> list[str]:
        payload = event.payload
        by_use = payload.used if isinstance(payload, OutcomeRecorded) and _confirms(event) else []
        ids = _WATCH.touched(event)[:1] or by_use
        confirmed.update(ids if _confirms(event) else ())
        weighed.update(ids if isinstance(payload, MemoryRevised) and revised_fields(event) & _WEIGHED else ())
        if isinstance(payload, MemoryUnlinked) and payload.relation == "SUPERSEDES":
            ends = {payload.source_id, payload.target_id}  # somebody has thought otherwise since
            confirmed.difference_update(ends)
            weighed.difference_update(ends)
        return ids

    for touched, after, through, _is_last in changes_after(reader, since, touched_by, most_memories=_BATCH):
        if touched or through - after > _MOST_REREAD:
            yield Batch(list(touched), frozenset(confirmed), frozenset(weighed), after, through)
        confirmed.clear()
        weighed.clear()


def _confirms(event: Event) -> bool:
    """Whether an event confirms what it is about: it was of use, or told again. That sleep puts copies together tells nothing."""
    payload = event.payload
    if isinstance(payload, OutcomeRecorded):
        return OUTCOME_OF_WORD.get(payload.outcome) == "positive"
    return isinstance(payload, MemoryMerged) and event.actor != "system"
