"""What each event changes, and what may not be recorded: (rows, event) → changed rows, or a refusal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from memgraph.fold import memories, records, tasks
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.model.events.memories import MemoryAdded, MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.payload import Payload
from memgraph.model.events.registry import POLICIES
from memgraph.ports import Key

_HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    **memories.HANDLERS,
    **records.HANDLERS,
    **tasks.HANDLERS,
}


def links_named(events: Iterable[Event]) -> dict[str, set[Key]]:
    """Return the links between memories that folding these events looks up, by table, so that they can be read at once."""
    found: dict[str, set[Key]] = defaultdict(set)
    new: set[str] = set()
    for event in events:
        payload = event.payload
        if isinstance(payload, MemoryAdded):
            new.add(payload.memory.id)
        elif isinstance(payload, MemoryLinked | MemoryUnlinked):
            found[payload.relation].add((payload.source_id, payload.target_id))
        elif isinstance(payload, MemoryDerived) and payload.id not in new:  # a new memory has no links
            found["DERIVED_FROM"] |= {(payload.id, source_id) for source_id in payload.source_ids}
            found["SUPPORTS"] |= {(source_id, payload.id) for source_id in payload.source_ids}
    return found


def fold(workspace: Workspace, event: Event) -> None:
    """Put the rows that an event changes into the workspace. An event about a missing memory or record changes nothing."""
    if event.task_id is not None:
        tasks.touch(workspace, event)
    if POLICIES[event.type].has_rows:
        _HANDLERS[event.type](workspace, event, event.payload)


def check(rows: Workspace, drafts: Sequence[CommitDraft], now: str) -> None:
    """Refuse events that do not fit the rows and the events before them; the workspace is used up by it."""
    for draft in drafts:
        for payload in draft.payloads:
            memories.check(rows, draft, payload)
            for refuse in _checks_of(type(payload)):
                refuse(rows, draft, payload)
            memories.propose(rows, payload)
            if payload.TYPE in tasks.HANDLERS:
                proposed = Event(
                    0, "", True, payload.TYPE, payload, {}, draft.write_scope, draft.task_id, draft.actor, now, now, ""
                )
                tasks.HANDLERS[payload.TYPE](rows, proposed, payload)


@cache
def _checks_of(kind: type[Payload]) -> tuple[Callable[[Workspace, CommitDraft, Any], None], ...]:
    return tuple(refuse for kinds, refuse in tasks.CHECKS if issubclass(kind, kinds))
