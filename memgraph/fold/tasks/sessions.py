"""Folds events about sessions: the tasks that they work on, their working memory, and what is kept for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.payload import sparse
from memgraph.model.events.tasks import (
    ChatContextSet,
    SessionControlSet,
    SessionTasksSet,
    TransientRemoved,
    TransientSet,
    TurnControlled,
    WorkingMemorySet,
)
from memgraph.model.ids import natural_id
from memgraph.model.timestamps import days_between
from memgraph.ports import Row

SESSION = "SessionTasks"
WORKING, CONTEXT, TRANSIENT = "WorkingMemory", "ChatContext", "TransientItem"
BACK_AND_FORTH_MINUTES = 10
"""A switch back to the task that was left no longer ago than this counts as going to and fro."""
_UNASKED: Row = {"asked_kind": None, "asked_about": []}


def session_set(workspace: Workspace, event: Event, payload: SessionTasksSet) -> None:
    """Fold ``session.tasks_set``: another current task is a switch, which answers what was asked and ends the mismatches."""
    row = _session(workspace, payload.session_id)
    former, current = _current(row), payload.stack[-1] if payload.stack else None
    fields: Row = {"stack": payload.stack}
    if former != current:
        fields |= {"switched_from": former, "switched_to": current, "switched_at": event.timestamp}
        fields |= {"switches_back": _switches_back(row, current, event.timestamp), "mismatches": 0, **_UNASKED}
    _change(workspace, row, fields)


def control_set(workspace: Workspace, _event: Event, payload: SessionControlSet) -> None:
    """Fold ``session.control_set``."""
    row = _session(workspace, payload.session_id)
    cleared = {"switches_back": 0, "mismatches": 0} if payload.autoswitch else {}
    _change(workspace, row, {"autoswitch": payload.autoswitch, "guidance": payload.guidance, **cleared})


def turn_controlled(workspace: Workspace, _event: Event, payload: TurnControlled) -> None:
    """Fold ``memory.turn-control``: count the turns in a row whose message belongs to another task, and keep what was asked."""
    row = _session(workspace, payload.session_id)
    fields: Row = {"asked_kind": payload.asked_kind, "asked_about": payload.asked_about}
    fields["mismatches"] = mismatches_after(row, payload.inferred_task)
    _change(workspace, row, fields)


def mismatches_after(row: Row, inferred_task: str | None) -> int:
    """Return the turns in a row whose message belongs to another task than the current one, after a turn that inferred this one."""
    former: int = row.get("mismatches", 0)
    current = _current(row)
    if inferred_task is None or current is None:
        return former
    return 0 if inferred_task == current else former + 1


def retrieval_rejected(workspace: Workspace, session_id: str, query_id: str, rejected_at: str) -> None:
    """Keep the last recall of a session of which memories were deliberately not followed."""
    row = _session(workspace, session_id)
    _change(workspace, row, {"rejected_query_id": query_id, "rejected_at": rejected_at})


def is_recent_switch(switched_at: str, now: str) -> bool:
    """Return whether a switch is so recent that switching straight back goes to and fro."""
    return days_between(switched_at, now) * 1_440 <= BACK_AND_FORTH_MINUTES


def _switches_back(row: Row, current: str | None, now: str) -> int:
    """Return how often in close succession the session went back to the task that it had just left."""
    if "switched_at" not in row or not is_recent_switch(row["switched_at"], now):
        return 0
    former: int = row.get("switches_back", 0)
    return former + (current is not None and current == row.get("switched_from"))


def _session(workspace: Workspace, session_id: str) -> Row:
    key = session_key(session_id)
    return workspace.get(SESSION, key) or {"id": key, "name": session_id}


def _change(workspace: Workspace, row: Row, fields: Row) -> None:
    workspace.put(SESSION, row["id"], sparse({**row, **fields}))


def _current(row: Row) -> str | None:
    stack = row.get("stack")
    return stack[-1] if stack else None


def working_set(workspace: Workspace, event: Event, payload: WorkingMemorySet) -> None:
    """Fold ``session.working_memory_set``."""
    fields = sparse(payload.model_dump(exclude={"session_id"}))
    _set(workspace, WORKING, payload.session_id, {**fields, "updated_at": event.timestamp} if fields else None)


def context_set(workspace: Workspace, event: Event, payload: ChatContextSet) -> None:
    """Fold ``session.context_set``."""
    fields = {"context": payload.context, "updated_at": event.timestamp} if payload.context else None
    _set(workspace, CONTEXT, payload.session_id, fields)


def transient_set(workspace: Workspace, event: Event, payload: TransientSet) -> None:
    """Fold ``transient.set``."""
    fields = payload.model_dump(exclude={"item_id"})
    _set(workspace, TRANSIENT, payload.item_id, {**sparse(fields), "created_at": event.timestamp})


def transient_removed(workspace: Workspace, _event: Event, payload: TransientRemoved) -> None:
    """Fold ``transient.removed``."""
    for item_id in payload.item_ids:
        _set(workspace, TRANSIENT, item_id, None)


def note_key(table: str, name: str) -> str:
    """Return the key of a session's note or of a transient item."""
    return natural_id(table, name)


def _set(workspace: Workspace, table: str, name: str, fields: Row | None) -> None:
    key = note_key(table, name)
    if fields is not None or workspace.get(table, key) is not None:
        workspace.put(table, key, None if fields is None else {"id": key, "name": name, **fields})


def session_key(session_id: str) -> str:
    """Return the key of the row that holds a session's tasks."""
    return natural_id("session tasks", session_id)


HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    SessionTasksSet.TYPE: session_set,
    SessionControlSet.TYPE: control_set,
    TurnControlled.TYPE: turn_controlled,
    WorkingMemorySet.TYPE: working_set,
    ChatContextSet.TYPE: context_set,
    TransientSet.TYPE: transient_set,
    TransientRemoved.TYPE: transient_removed,
}
