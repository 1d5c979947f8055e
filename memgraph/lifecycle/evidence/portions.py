"""Portions: what was written or changed since, so much of it at a time that looking at it takes about a second."""

from __future__ import annotations

from typing import NamedTuple

from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.recalls import AccessRecorded
from memgraph.store import AgentMemoryStore

_COMPARED = 2_000_000
_FEWEST, _MOST = 64, 1_000
"""A portion has at least and at most so many memories, between these so many that about `_COMPARED` pairs with others are looked at."""
_MOST_READ = 20_000
"""Events that a portion reads."""
_BESIDE_THE_POINT = frozenset({"floor", "archive_summary", "relevance_anchor", "relevance_at", "updated_at"})


class Portion(NamedTuple):
    """Memories that were written or changed after one event and up to another; whether they are the last there are."""

    touched: frozenset[str]
    through_seq: int
    is_last: bool


def next_portion(store: AgentMemoryStore, since: int, until: int) -> Portion:
    """Return what comes first after an event; it follows from the journal up to another event, and from how many memories there are."""
    touched: set[str] = set()
    most = min(max(_FEWEST, _COMPARED // max(1, len(store.reader.index))), _MOST)
    for event in store.reader.events_after(since):
        if event.seq > until:
            break
        if matters(event):
            touched.update(event.payload.memory_ids())
        if len(touched) >= most or event.seq - since >= _MOST_READ:
            return Portion(frozenset(touched), event.seq, event.seq >= until)
    return Portion(frozenset(touched), until, is_last=True)


def matters(event: Event) -> bool:
    """Whether an event can change which memories say the same."""
    if isinstance(event.payload, MemoryRevised):
        told = event.content
        return not {*told.get("changed", ()), *told.get("cleared", ())} <= _BESIDE_THE_POINT
    return bool(event.payload.memory_ids()) and not isinstance(event.payload, AccessRecorded)
