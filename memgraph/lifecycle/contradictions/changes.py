"""Changes: what the journal tells of since the last search for contradictions that asks for memories to be compared anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memgraph.journal.envelope import Event
from memgraph.model.events.links import MemoryUnlinked
from memgraph.model.events.memories import MemoryAdded, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.events.recalls import OutcomeRecorded
from memgraph.model.memory import OUTCOME_OF_WORD

_BATCH = 500
_MOST_REREAD = 5_000
"""After so many events without anything to look at a run still notes how far it has come."""
_TELLING = frozenset(
    "content outcome entities tags domain valid_at invalid_at is_suppressed archived_at trust_class confidence "
    "situation action".split()
)  # fmt: skip
_WEIGHING = frozenset({"trust_class", "confidence"})
"""What of a memory is weighed against another one: a rise lets a contradiction that was left open be decided."""


class Changes(NamedTuple):
    """What a batch looks at.

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


def changes_in(events: Iterable[Event]) -> Iterator[Changes]:
    """Yield what events have changed, some hundred memories at a time; nothing for what no comparison looks at."""
    touched: dict[str, None] = {}
    confirmed: set[str] = set()
    weighed: set[str] = set()
    after: int | None = None
    seq = 0
    for event in events:
        seq, payload = event.seq, event.payload
        after = seq - 1 if after is None else after
        ids = _touched(event)
        touched |= dict.fromkeys(ids)
        confirmed |= set(ids if _confirms(event) else ())
        weighed |= set(ids if isinstance(payload, MemoryRevised) and _told(event) & _WEIGHING else ())
        if isinstance(payload, MemoryUnlinked) and payload.relation == "SUPERSEDES":
            ends = {payload.source_id, payload.target_id}  # somebody has thought otherwise since
            confirmed, weighed = confirmed - ends, weighed - ends
        if len(touched) >= _BATCH:
            yield Changes(list(touched), frozenset(confirmed), frozenset(weighed), after, seq)
            touched, confirmed, weighed, after = {}, set(), set(), seq
    if touched or (after is not None and seq - after > _MOST_REREAD):
        yield Changes(list(touched), frozenset(confirmed), frozenset(weighed), after or 0, seq)


def _touched(event: Event) -> list[str]:
    """Return whose claims, or whose standing among others, an event can have changed."""
    payload = event.payload
    if isinstance(payload, MemoryRevised):
        return [payload.id] if _told(event) & _TELLING else []
    if isinstance(payload, MemoryAdded | MemoryMerged | MemoryUndeleted):
        return payload.memory_ids()[:1]
    return payload.used if isinstance(payload, OutcomeRecorded) and _confirms(event) else []


def _confirms(event: Event) -> bool:
    """Whether an event confirms what it is about: it was of use, or told again. That sleep puts copies together tells nothing."""
    payload = event.payload
    if isinstance(payload, OutcomeRecorded):
        return OUTCOME_OF_WORD.get(payload.outcome) == "positive"
    return isinstance(payload, MemoryMerged) and event.actor != "system"


def _told(event: Event) -> set[str]:
    """Return the fields that an event sets or clears."""
    return {*event.content.get("changed", ()), *event.content.get("cleared", ())}
