"""Maps each event type to the function that folds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from memgraph.fold import distillation, memories, records, resets
from memgraph.fold.tasks import handoffs, sessions, tasks
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded, MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.registry import POLICIES
from memgraph.ports import Key

_HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    "memory.added": memories.added,
    "memory.revised": memories.revised,
    "memory.merged": memories.revised,
    "memory.reembedded": memories.reembedded,
    "memory.deleted": memories.deleted,
    "memory.undeleted": memories.undeleted,
    "memory.purged": memories.purged,
    "memory.linked": memories.linked,
    "memory.unlinked": memories.unlinked,
    "memory.derived": memories.derived,
    "access.recorded": memories.accessed,
    "retrieval.recorded": records.retrieved,
    "outcome.recorded": records.outcome,
    "build.consolidated": records.consolidated,
    "source.read": records.source_read,
    "compression.applied": records.compressed,
    "contradictions.sought": records.sought,
    "sleep.advanced": records.slept,
    "sleep.failed": records.sleep_failed,
    "procedure.measured": records.measured,
    "procedures.learned": records.learned,
    "errors.analysed": records.analysed,
    "distil.requested": distillation.requested,
    "distil.answered": distillation.answered,
    "distil.attempted": distillation.attempted,
    "distil.skipped": distillation.skipped,
    "store.reset": resets.reset,
    **tasks.HANDLERS,
    **sessions.HANDLERS,
    **handoffs.HANDLERS,
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
