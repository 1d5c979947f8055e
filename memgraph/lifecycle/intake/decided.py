"""Decisions of the user stand: an agent that says again what the user has replaced does not reopen it.

What was superseded by the user (a resolved contradiction, a newer version, a merge, or a later statement of the user) is hidden
from deduplication, so a repetition would be added as a new memory, newer than the one that the user kept.
"""

from __future__ import annotations

from memgraph.lifecycle.dedup.duplicates import duplicate_of, of_scope, told_with
from memgraph.model.events.links import MemoryLinked
from memgraph.model.memory import AgentMemory
from memgraph.store import AgentMemoryStore
from memgraph.store.access.permitted import Permits, everything


def decided_against(
    store: AgentMemoryStore, memory: AgentMemory, *, threshold: float, may: Permits = everything
) -> tuple[str, str] | None:
    """Return the ids of the memory that one says again and of the one by which the user replaced it; None if there is no such decision.

    Of what the writer may not have (`may`) nothing is named. Reads the journal, if there is a superseded memory of the same meaning.
    """
    if memory.trust_class == "user":
        return None
    reader = store.reader
    index = reader.index
    visible = may(reader)
    mask = (
        visible
        & index.column("is_live")
        & ~index.column("is_suppressed")
        & ~index.column("is_archived")
        & reader.superseded()
    )
    mask &= of_scope(store, "project", memory.project_id) & of_scope(store, "task", memory.task_id)
    mask &= told_with(store, memory)
    if not mask.any():
        return None
    _, known = duplicate_of(store, memory, mask, threshold=threshold)
    if known is None:
        return None
    newer = {
        link.source_id
        for link in store.links(known.id)
        if link.relation == "SUPERSEDES" and link.target_id == known.id and visible[index.slot(link.source_id)]
    }
    links = (event.payload for event in reader.history(known.id) if event.actor == "user")
    decisions = (made for made in links if isinstance(made, MemoryLinked) and made.relation == "SUPERSEDES")
    by = next((made.source_id for made in decisions if made.target_id == known.id and made.source_id in newer), None)
    return None if by is None else (known.id, by)
