"""Which function folds which event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.fold import learning, memories, records
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event

_HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    "memory.added": memories.added,
    "memory.revised": memories.revised,
    "memory.merged": memories.revised,
    "memory.reembedded": memories.reembedded,
    "memory.deleted": memories.deleted,
    "memory.undeleted": memories.undeleted,
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
    "procedure.measured": learning.measured,
    "procedures.learned": learning.learned,
    "errors.analysed": learning.analysed,
}
_WITHOUT_ROWS = frozenset(
    {"store.created", "embedding.switched", "decay.applied", "collection.applied", "journal.repaired"}
)
"""Events that change no row: they are history, or (which model makes the vectors) the journal itself keeps account of them."""


def fold(workspace: Workspace, event: Event) -> None:
    """Put the rows that an event changes into the workspace. An event about a missing subject changes nothing."""
    if event.type in _WITHOUT_ROWS:
        return
    _HANDLERS[event.type](workspace, event, event.payload)
