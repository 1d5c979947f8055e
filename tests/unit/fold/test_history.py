"""History from events alone, without a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.fold.history import history_of
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked
from memgraph.model.events.payload import Payload

NOW = "2026-02-01T09:00:00.000Z"


def event(seq: int, payload: Payload) -> Event:
    return Event(seq, f"c{seq}", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", NOW, NOW, "s")


def test_what_happened_is_read_from_events(added: Callable[..., Any], memory_id: Callable[[int], str]) -> None:
    one, two = memory_id(1), memory_id(2)
    link = MemoryLinked(source_id=two, relation="SUPERSEDES", target_id=one, created_at=NOW)
    payloads = [added(1), added(2), link, MemoryDeleted(id=two)]
    history = history_of((event(seq, payload) for seq, payload in enumerate(payloads, start=1)), details_of=[one, two])
    assert [(change.id, change.kind, change.other) for change in history.changes] == [
        (one, "superseded", two),
        (two, "deleted", None),
    ]
    assert (history.lives[one].is_deleted, history.lives[two].is_deleted) == (False, True)
    assert history.links == {("SUPERSEDES", two, one): [NOW]}
    assert history.relevances.keys() == {one, two}
    assert history_of([]).lives == {}
