"""Folds events about tasks and about pins.

A task's state is a set of items, each with the event that opened it (`seq`) and the one that closed it (`closed_seq`). An item is never
removed, so what held at an earlier event is a query on the present graph and needs no replay.

Items that hold one value at a time (title, status, goal, a named value, a link) have a fixed key. Before the value changes, the former
one is kept as a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.payload import sparse
from memgraph.model.events.tasks import (
    ArtifactLinked,
    ConstraintAdded,
    ConstraintRemoved,
    DecisionMade,
    DecisionReverted,
    GoalSet,
    ItemEvent,
    NextActionCompleted,
    NextActionSet,
    OpenQuestionAdded,
    OpenQuestionResolved,
    PinAdded,
    PinEdited,
    PinRemoveCancelled,
    PinRemoved,
    PinRemoveRequested,
    StatePatchApplied,
    TaskCreated,
    TaskLinked,
    TaskStatusSet,
    TaskUnlinked,
    TitleSet,
    UserConfirmed,
)
from memgraph.model.ids import natural_id
from memgraph.ports import Row

TASK, ITEM, HAS_ITEM, LINKED = "Task", "TaskItem", "HAS_ITEM", "LINKED"
PIN, REMOVAL = "Pin", "PinRemoval"


class Opening(NamedTuple):
    """What an event opens: an item of this kind with the text of this field, and with that of another as its reason."""

    kind: str
    field: str
    reason: str


OPENINGS = {
    DecisionMade.TYPE: Opening("decision", "decision", "reason"),
    ConstraintAdded.TYPE: Opening("constraint", "constraint", ""),
    OpenQuestionAdded.TYPE: Opening("open_question", "question", ""),
    NextActionSet.TYPE: Opening("next_action", "action", ""),
    ArtifactLinked.TYPE: Opening("artifact", "artifact", "title"),
}
CLOSINGS = {
    DecisionReverted.TYPE: Opening("decision", "reason", ""),
    ConstraintRemoved.TYPE: Opening("constraint", "reason", ""),
    OpenQuestionResolved.TYPE: Opening("open_question", "resolution", ""),
    NextActionCompleted.TYPE: Opening("next_action", "result", ""),
}
"""The kind of item that an event closes, and the field that says why or with what result."""


def task_key(task_id: str) -> str:
    """Return the key of a task's node. A task's id names one write scope, in whatever project its memories are."""
    return natural_id("task", task_id)


def is_registered(row: Row | None) -> bool:
    """Return whether a task was registered; otherwise memories merely name it."""
    return row is not None and "status" in row


def touch(workspace: Workspace, event: Event) -> None:
    """Record when a registered task was last written to."""
    key = task_key(event.task_id or "")
    row = workspace.get(TASK, key)
    if row is not None and is_registered(row):
        workspace.put(TASK, key, {**row, "touched_at": event.timestamp})


def created(workspace: Workspace, event: Event, payload: TaskCreated) -> None:
    """Fold ``TASK_CREATED``; a task that is registered already stays as it is."""
    key = task_key(_task(event))
    row = workspace.get(TASK, key)
    if is_registered(row):
        return
    known = {"id": key, "name": event.task_id, "title": payload.title, "status": "active", "seq": event.seq}
    times = {"created_at": event.timestamp, "touched_at": event.timestamp}
    workspace.put(TASK, key, sparse({**(row or {}), **known, **times, "project_id": payload.project_id}))
    _hold(workspace, event, "title", payload.title)
    _hold(workspace, event, "status", "active")


def titled(workspace: Workspace, event: Event, payload: TitleSet) -> None:
    """Fold ``TITLE_SET``."""
    if _changed(workspace, event, title=payload.title):
        _hold(workspace, event, "title", payload.title)


def status_set(workspace: Workspace, event: Event, payload: TaskStatusSet) -> None:
    """Fold ``task.status_set``."""
    if _changed(workspace, event, status=payload.status):
        _hold(workspace, event, "status", payload.status, reason=payload.reason)


def goal_set(workspace: Workspace, event: Event, payload: GoalSet) -> None:
    """Fold ``GOAL_SET``."""
    if _changed(workspace, event):
        _hold(workspace, event, "goal", payload.goal)


def linked(workspace: Workspace, event: Event, payload: TaskLinked) -> None:
    """Fold ``task.linked``: nothing without both tasks."""
    ends = (task_key(_task(event)), task_key(payload.target_id))
    if _changed(workspace, event) and is_registered(workspace.get(TASK, ends[1])):
        workspace.ensure(LINKED, ends, {"created_at": event.timestamp})
        _hold(workspace, event, "link", payload.target_id, name=payload.target_id)


def unlinked(workspace: Workspace, event: Event, payload: TaskUnlinked) -> None:
    """Fold ``task.unlinked``."""
    ends = (task_key(_task(event)), task_key(payload.target_id))
    if workspace.get(LINKED, ends) is not None:
        workspace.put(LINKED, ends, None)
        _close(workspace, event, held_key(_task(event), "link", payload.target_id), None)


def opened(workspace: Workspace, event: Event, payload: ItemEvent) -> None:
    """Fold an event that opens an item; one that exists stays as it is."""
    opening = OPENINGS[event.type]
    if _changed(workspace, event) and workspace.get(ITEM, payload.id) is None:
        reason = getattr(payload, opening.reason) if opening.reason else None
        _put(workspace, event, payload.id, opening.kind, getattr(payload, opening.field), reason=reason)


def closed(workspace: Workspace, event: Event, payload: ItemEvent) -> None:
    """Fold an event that closes an item; one of another task or kind stays as it is."""
    closing = CLOSINGS[event.type]
    row = workspace.get(ITEM, payload.id)
    if row is not None and row["kind"] == closing.kind and row["task_id"] == event.task_id:
        _close(workspace, event, payload.id, getattr(payload, closing.field))


def patched(workspace: Workspace, event: Event, payload: StatePatchApplied) -> None:
    """Fold ``STATE_PATCH_APPLIED``."""
    if _changed(workspace, event):
        for name, value in payload.changed.items():
            _hold(workspace, event, "state", value, name=name)
        for name in payload.removed:
            _close(workspace, event, held_key(_task(event), "state", name), None)


def confirmed(workspace: Workspace, event: Event, payload: UserConfirmed) -> None:
    """Fold ``USER_CONFIRMED``: the last one holds."""
    if _changed(workspace, event):
        _hold(workspace, event, "confirmation", payload.message, reason=payload.confirmed, again=True)


def pinned(workspace: Workspace, event: Event, payload: PinAdded) -> None:
    """Fold ``PIN_ADDED``."""
    known = {"id": payload.id, "kind": payload.kind, "task_id": event.task_id, "expires_at": payload.expires_at}
    row = {**known, "seq": event.seq, "created_at": event.timestamp}
    workspace.put(PIN, payload.id, sparse(row))


def pin_edited(workspace: Workspace, _event: Event, payload: PinEdited) -> None:
    """Fold ``pin.edited``."""
    row = workspace.get(PIN, payload.id)
    if is_pin(row):
        new = {"kind": payload.kind, "expires_at": payload.expires_at}
        workspace.put(PIN, payload.id, sparse({**(row or {}), **new}))


def removal_requested(workspace: Workspace, event: Event, payload: PinRemoveRequested) -> None:
    """Fold ``PIN_REMOVE_REQUESTED``."""
    times = {"requested_at": event.timestamp, "expires_at": payload.expires_at, "uptime_ms": payload.uptime_ms}
    row = {"id": payload.request_id, "pin_id": payload.id, "state": "open", **times}
    workspace.put(REMOVAL, payload.request_id, row)


def removal_cancelled(workspace: Workspace, event: Event, payload: PinRemoveCancelled) -> None:
    """Fold ``pin.remove_cancelled``."""
    _settle(workspace, event, payload.request_id, "cancelled")


def unpinned(workspace: Workspace, event: Event, payload: PinRemoved) -> None:
    """Fold ``PIN_REMOVED``."""
    row = workspace.get(PIN, payload.id)
    if row is not None and is_pin(row):
        workspace.put(PIN, payload.id, {**row, "closed_seq": event.seq, "closed_at": event.timestamp})
    if payload.request_id is not None:
        _settle(workspace, event, payload.request_id, "confirmed")


def is_pin(row: Row | None) -> bool:
    """Return whether a row of a pin is that of one that was not removed."""
    return row is not None and "closed_seq" not in row


def _settle(workspace: Workspace, event: Event, request_id: str, state: str) -> None:
    row = workspace.get(REMOVAL, request_id)
    if row is not None and row["state"] == "open":
        workspace.put(REMOVAL, request_id, {**row, "state": state, "closed_at": event.timestamp})


def held_key(task_id: str, kind: str, name: str = "") -> str:
    """Return the key of the item that holds a value which replaces the former one."""
    return natural_id(f"task item:{kind}", name, project_id=task_id)


def _task(event: Event) -> str:
    return event.task_id or ""


def _changed(workspace: Workspace, event: Event, **fields: str) -> bool:
    """Set fields of the event's task; return whether it is registered."""
    key = task_key(_task(event))
    row = workspace.get(TASK, key)
    if row is None or not is_registered(row):
        return False
    workspace.put(TASK, key, {**row, **fields})
    return True


def _hold(
    workspace: Workspace,
    event: Event,
    kind: str,
    content: str,
    *,
    name: str = "",
    reason: str | None = None,
    again: bool = False,
) -> None:
    """Set a value that replaces the former one, which is kept as a closed item; `again`: also an equal one."""
    key = held_key(_task(event), kind, name)
    old = workspace.get(ITEM, key)
    if old is not None:
        if not again and "closed_seq" not in old and (old["content"], old.get("reason")) == (content, reason):
            return
        if old["seq"] != event.seq:
            former = {"closed_seq": event.seq, "closed_at": event.timestamp, **old}
            kept = natural_id("task item", f"{key}\x1f{old['seq']}")
            workspace.put(ITEM, kept, {**former, "id": kept})
            workspace.put(HAS_ITEM, (task_key(_task(event)), kept), {})
    _put(workspace, event, key, kind, content, name=name, reason=reason)


def _put(
    workspace: Workspace,
    event: Event,
    key: str,
    kind: str,
    content: str,
    *,
    name: str = "",
    reason: str | None = None,
) -> None:
    row = {
        "id": key,
        "task_id": event.task_id,
        "kind": kind,
        "name": name or None,
        "content": content,
        "reason": reason or None,
        "actor": event.actor,
        "seq": event.seq,
        "created_at": event.timestamp,
    }
    workspace.put(ITEM, key, sparse(row))
    workspace.ensure(HAS_ITEM, (task_key(_task(event)), key), {})


def _close(workspace: Workspace, event: Event, key: str, why: str | None) -> None:
    row = workspace.get(ITEM, key)
    if row is not None and "closed_seq" not in row:
        closing = {"closed_seq": event.seq, "closed_at": event.timestamp, "resolution": why or None}
        workspace.put(ITEM, key, sparse({**row, **closing}))


HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    TaskCreated.TYPE: created,
    TitleSet.TYPE: titled,
    TaskStatusSet.TYPE: status_set,
    GoalSet.TYPE: goal_set,
    TaskLinked.TYPE: linked,
    TaskUnlinked.TYPE: unlinked,
    StatePatchApplied.TYPE: patched,
    UserConfirmed.TYPE: confirmed,
    PinAdded.TYPE: pinned,
    PinEdited.TYPE: pin_edited,
    PinRemoveRequested.TYPE: removal_requested,
    PinRemoveCancelled.TYPE: removal_cancelled,
    PinRemoved.TYPE: unpinned,
    **dict.fromkeys(OPENINGS, opened),
    **dict.fromkeys(CLOSINGS, closed),
}
