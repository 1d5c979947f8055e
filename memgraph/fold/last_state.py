"""What a memory was: the last state of a deleted one, and wordings that merges replaced, from the events that name it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memgraph.fold.fold import fold
from memgraph.fold.workspace import EmptyRows, Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded, MemoryMerged, MemoryRevised, MemoryUndeleted
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
    """Return a memory's last state, ignoring its deletions; None if it never existed."""
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


def other_wordings(events: Iterable[Event], memory_id: str) -> list[str]:
    """Return the texts of the duplicates that were merged into a memory, and its own texts that were replaced by theirs.

    Oldest first, without the current text. A text that the user replaced is no evidence of the new one, so the list
    starts again there.
    """
    text = ""
    found: dict[str, None] = {}
    for event in events:
        payload = event.payload
        if isinstance(payload, MemoryAdded) and payload.memory.id == memory_id:
            text, found = payload.memory.content, {}
        elif isinstance(payload, MemoryMerged | MemoryRevised) and payload.id == memory_id:
            now = event.content.get("changed", {}).get("content", text)
            if isinstance(payload, MemoryMerged):
                found |= dict.fromkeys(filter(None, (text, payload.candidate_content)))
            elif now != text:
                found = {}
            text = now
    return [one for one in found if one != text]
