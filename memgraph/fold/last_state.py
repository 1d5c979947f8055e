"""The last state of a deleted memory, from the events that name it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memgraph.fold.fold import fold
from memgraph.fold.workspace import EmptyRows, Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded, MemoryUndeleted
from memgraph.model.events.records import OutcomeRecorded, RetrievalRecorded
from memgraph.ports import Key, Row


class LastState(NamedTuple):
    """A memory's last row, and every edge that was created at it and not removed, whether or not its other end still exists."""

    row: Row
    edges: list[tuple[str, Key, Row]]


class OtherMemories(EmptyRows):
    """A source in which every memory but some exists. Callers check whether it still does."""

    def __init__(self, memory_ids: Iterable[str]) -> None:
        self._memory_ids = frozenset(memory_ids)

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row with an id and a type for every other memory."""
        return {"id": key, "type": "episodic"} if table == "Memory" and key not in self._memory_ids else None


def last_known(events: Iterable[Event], memory_id: str) -> LastState | None:
    """Return a memory's last state, ignoring its deletions; None if it never existed.

    Parameters
    ----------
    events : iterable of Event
        In order; at least all events that name the memory.
    """
    workspace: Workspace | None = None
    for event in events:
        payload = event.payload
        begins = isinstance(payload, MemoryAdded) or (isinstance(payload, MemoryUndeleted) and workspace is None)
        if begins and payload.memory.id == memory_id:  # type: ignore[attr-defined]
            workspace = Workspace(
                OtherMemories([memory_id])
            )  # a memory that is added again keeps nothing of its former state
        is_about = memory_id in payload.memory_ids() or isinstance(payload, RetrievalRecorded | OutcomeRecorded)
        if workspace is not None and is_about and not payload.removed_ids():
            fold(workspace, event)
    row = workspace.get("Memory", memory_id) if workspace else None
    return LastState(row, list(workspace.edges_at(memory_id))) if workspace and row else None
