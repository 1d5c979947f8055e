"""Folds the reset of a store.

Every table is named here, so that a new one cannot be forgotten: its rows are removed by a reset, and by which, or they follow from
memories. What an event removed is stated in the event, so a later change of these lists changes no replay.
"""

from __future__ import annotations

from memgraph.fold.edges import bare
from memgraph.fold.memories import remove
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.store import StoreReset
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.results.maintenance import ResetScope

CLEARED: dict[str, ResetScope] = {
    "WorkingMemory": "memory",
    "ChatContext": "memory",
    "TransientItem": "memory",
    "SessionTasks": "memory",
    "Recall": "memory",
    "RECALLED": "memory",
    "Build": "memory",
    "Source": "memory",
    "WorkOrder": "memory",
    "PinRemoval": "memory",
    "Pin": "all",
    "Task": "all",
    "TaskItem": "all",
    "HAS_ITEM": "all",
    "LINKED": "all",
    "Ledger": "all",
    "Handoff": "all",
    "Agent": "all",
    **dict.fromkeys(("KEPT_BY", "WORKS_ON", "COMPLETED_BY", "LEARNED_BY"), "all"),
    **dict.fromkeys(("HANDS_OVER", "HANDED_BY", "HANDED_TO", "ACCEPTED_BY", "CARRIED_BY"), "all"),
    "LifecycleRun": "all",
}
"""The tables that are cleared: by every reset ("memory"), or only by one that keeps nothing ("all")."""
OF_MEMORIES = frozenset(
    {
        "Memory",
        "Practice",
        "Project",
        "Session",
        "Tag",
        "Entity",
        "NEXT",
        "TAGGED",
        "MENTIONS",
        "INVOLVES",
        "IN_PROJECT",
        "FROM_BUILD",
        "IN_SESSION",
        "IN_TASK",
        *EXPLICIT_RELATIONS,
    }
)
"""Tables whose rows go with the memories that they belong to."""
_UNDER_ITS_ID = ("Practice", "Pin")


def tables_of(scope: ResetScope) -> list[str]:
    """Return the tables that a reset clears."""
    return [table for table, least in CLEARED.items() if least == "memory" or scope == "all"]


def reset(workspace: Workspace, _event: Event, payload: StoreReset) -> None:
    """Fold ``store.reset``. A build that a kept memory names stays, as one that was never read."""
    for memory_id in payload.removed:
        remove(workspace, memory_id)
        for table in _UNDER_ITS_ID:
            if workspace.get(table, memory_id) is not None:
                workspace.put(table, memory_id, None)
    for table in payload.cleared:
        for key in workspace.keys(table):
            is_named = table == "Build" and workspace.is_attached("FROM_BUILD", str(key))
            workspace.put(table, key, bare(workspace.get(table, key) or {}) if is_named else None)
