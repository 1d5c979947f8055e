"""The wordings of a memory that merges replaced or left out."""

from __future__ import annotations

from collections.abc import Iterable

from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded, MemoryMerged, MemoryRevised


def other_wordings(events: Iterable[Event], memory_id: str) -> list[str]:
    """Return the texts of the duplicates that were merged into a memory, and its own texts that were replaced by theirs.

    Oldest first, without the current text. A text that the user replaced is no evidence of the new one, so the list
    starts again there.

    Parameters
    ----------
    events : iterable of Event
        In order; at least all events that name the memory.
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
