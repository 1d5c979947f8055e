"""Folds and checks events of tasks, pins, the sessions that work on tasks, and the agents that hand them over.

A task's state is a set of items, each with the event that opened it (`seq`) and the one that closed it (`closed_seq`). An item is never
removed, so what held at an earlier event is a query on the present graph and needs no replay.

Items that hold one value at a time (title, status, goal, a named value, a link) have a fixed key. Before the value changes, the former
one is kept as a row of its own. The memories of a handoff or ledger are edges, not fields: one that is deleted leaves nothing behind
there, and does not come back with its undeletion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Any, NamedTuple, TypeGuard

from memgraph.errors import DuplicateIdError, InvalidInputError, NotFoundError, ScopeError
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.model.events import tasks as events
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked, MemoryMerged, MemoryRevised
from memgraph.model.events.payload import Payload, sparse
from memgraph.model.ids import natural_id
from memgraph.model.memory import Role, fields_with
from memgraph.model.timestamps import days_between
from memgraph.ports import Row

WRITABLE = frozenset({"active", "suspended"})
"""The statuses in which a task changes."""
PROTECTED = fields_with(Role.PIN)
"""Fields of a pin's memory that decide what it says, and whether, where and by whom it is recalled."""
TASK, ITEM, HAS_ITEM, LINKED = "Task", "TaskItem", "HAS_ITEM", "LINKED"
PIN, REMOVAL = "Pin", "PinRemoval"
SESSION = "SessionTasks"
WORKING, CONTEXT, TRANSIENT = "WorkingMemory", "ChatContext", "TransientItem"
LEDGER, HANDOFF = "Ledger", "Handoff"
KEPT_BY, WORKS_ON, COMPLETED_BY, LEARNED_BY = "KEPT_BY", "WORKS_ON", "COMPLETED_BY", "LEARNED_BY"
HANDED_BY, HANDED_TO, ACCEPTED_BY = "HANDED_BY", "HANDED_TO", "ACCEPTED_BY"
HANDS_OVER, CARRIED_BY = "HANDS_OVER", "CARRIED_BY"
BACK_AND_FORTH_MINUTES = 10
"""A switch back to the task that was left no longer ago than this counts as going to and fro."""
_UNASKED: Row = {"asked_kind": None, "asked_about": []}


class Opening(NamedTuple):
    """What an event opens: an item of this kind with the text of this field, and with that of another as its reason."""

    kind: str
    field: str
    reason: str


OPENINGS = {
    events.DecisionMade.TYPE: Opening("decision", "decision", "reason"),
    events.ConstraintAdded.TYPE: Opening("constraint", "constraint", ""),
    events.OpenQuestionAdded.TYPE: Opening("open_question", "question", ""),
    events.NextActionSet.TYPE: Opening("next_action", "action", ""),
    events.ArtifactLinked.TYPE: Opening("artifact", "artifact", "title"),
}
CLOSINGS = {
    events.DecisionReverted.TYPE: Opening("decision", "reason", ""),
    events.ConstraintRemoved.TYPE: Opening("constraint", "reason", ""),
    events.OpenQuestionResolved.TYPE: Opening("open_question", "resolution", ""),
    events.NextActionCompleted.TYPE: Opening("next_action", "result", ""),
}
"""The kind of item that an event closes, and the field that says why or with what result."""


def task_key(task_id: str) -> str:
    """Return the key of a task's node. A task's id names one write scope, in whatever project its memories are."""
    return natural_id("task", task_id)


def touch(workspace: Workspace, event: Event) -> None:
    """Record when a registered task was last written to."""
    key = task_key(event.task_id or "")
    row = workspace.get(TASK, key)
    if row is not None:
        workspace.put(TASK, key, {**row, "touched_at": event.timestamp})


def _created(workspace: Workspace, event: Event, payload: events.TaskCreated) -> None:
    """Register a task unless it is registered."""
    key = task_key(_task(event))
    if workspace.has(TASK, key):
        return
    known = {"id": key, "name": event.task_id, "title": payload.title, "status": "active", "seq": event.seq}
    times = {"created_at": event.timestamp, "touched_at": event.timestamp}
    workspace.put(TASK, key, sparse({**known, **times, "project_id": payload.project_id}))
    _hold(workspace, event, "title", payload.title)
    _hold(workspace, event, "status", "active")


def _titled(workspace: Workspace, event: Event, payload: events.TitleSet) -> None:
    if _changed(workspace, event, title=payload.title):
        _hold(workspace, event, "title", payload.title)


def _status_set(workspace: Workspace, event: Event, payload: events.TaskStatusSet) -> None:
    if _changed(workspace, event, status=payload.status):
        _hold(workspace, event, "status", payload.status, reason=payload.reason)


def _goal_set(workspace: Workspace, event: Event, payload: events.GoalSet) -> None:
    if _changed(workspace, event):
        _hold(workspace, event, "goal", payload.goal)


def _linked(workspace: Workspace, event: Event, payload: events.TaskLinked) -> None:
    """Nothing without both tasks."""
    ends = (task_key(_task(event)), task_key(payload.target_id))
    if _changed(workspace, event) and workspace.has(TASK, ends[1]):
        workspace.ensure(LINKED, ends, {"created_at": event.timestamp})
        _hold(workspace, event, "link", payload.target_id, name=payload.target_id)


def _unlinked(workspace: Workspace, event: Event, payload: events.TaskUnlinked) -> None:
    ends = (task_key(_task(event)), task_key(payload.target_id))
    if workspace.get(LINKED, ends) is not None:
        workspace.put(LINKED, ends, None)
        _close(workspace, event, held_key(_task(event), "link", payload.target_id), None)


def _opened(workspace: Workspace, event: Event, payload: events.ItemEvent) -> None:
    """Fold an event that opens an item; one that exists stays as it is."""
    opening = OPENINGS[event.type]
    if _changed(workspace, event) and workspace.get(ITEM, payload.id) is None:
        reason = getattr(payload, opening.reason) if opening.reason else None
        _put(workspace, event, payload.id, opening.kind, getattr(payload, opening.field), reason=reason)


def _closed(workspace: Workspace, event: Event, payload: events.ItemEvent) -> None:
    """Fold an event that closes an item; one of another task or kind stays as it is."""
    closing = CLOSINGS[event.type]
    row = workspace.get(ITEM, payload.id)
    if row is not None and row["kind"] == closing.kind and row["task_id"] == event.task_id:
        _close(workspace, event, payload.id, getattr(payload, closing.field))


def _patched(workspace: Workspace, event: Event, payload: events.StatePatchApplied) -> None:
    if _changed(workspace, event):
        for name, value in payload.changed.items():
            _hold(workspace, event, "state", value, name=name)
        for name in payload.removed:
            _close(workspace, event, held_key(_task(event), "state", name), None)


def _confirmed(workspace: Workspace, event: Event, payload: events.UserConfirmed) -> None:
    """Hold the last confirmation."""
    if _changed(workspace, event):
        _hold(workspace, event, "confirmation", payload.message, reason=payload.confirmed, again=True)


def _pinned(workspace: Workspace, event: Event, payload: events.PinAdded) -> None:
    known = {"id": payload.id, "kind": payload.kind, "task_id": event.task_id, "expires_at": payload.expires_at}
    row = {**known, "seq": event.seq, "created_at": event.timestamp}
    workspace.put(PIN, payload.id, sparse(row))


def _pin_edited(workspace: Workspace, _event: Event, payload: events.PinEdited) -> None:
    row = workspace.get(PIN, payload.id)
    if is_pin(row):
        workspace.put(PIN, payload.id, sparse({**row, "kind": payload.kind, "expires_at": payload.expires_at}))


def _removal_requested(workspace: Workspace, event: Event, payload: events.PinRemoveRequested) -> None:
    times = {"requested_at": event.timestamp, "expires_at": payload.expires_at, "uptime_ms": payload.uptime_ms}
    row = {"id": payload.request_id, "pin_id": payload.id, "state": "open", **times}
    workspace.put(REMOVAL, payload.request_id, row)


def _removal_cancelled(workspace: Workspace, event: Event, payload: events.PinRemoveCancelled) -> None:
    _settle(workspace, event, payload.request_id, "cancelled")


def _unpinned(workspace: Workspace, event: Event, payload: events.PinRemoved) -> None:
    row = workspace.get(PIN, payload.id)
    if is_pin(row):
        workspace.put(PIN, payload.id, {**row, "closed_seq": event.seq, "closed_at": event.timestamp})
    if payload.request_id is not None:
        _settle(workspace, event, payload.request_id, "confirmed")


def is_pin(row: Row | None) -> TypeGuard[Row]:
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
    if row is None:
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
    workspace: Workspace, event: Event, key: str, kind: str, content: str, *, name: str = "", reason: str | None = None
) -> None:
    known = {"id": key, "task_id": event.task_id, "kind": kind, "name": name or None, "content": content}
    stated = {"reason": reason or None, "actor": event.actor, "seq": event.seq, "created_at": event.timestamp}
    workspace.put(ITEM, key, sparse({**known, **stated}))
    workspace.ensure(HAS_ITEM, (task_key(_task(event)), key), {})


def _close(workspace: Workspace, event: Event, key: str, why: str | None) -> None:
    row = workspace.get(ITEM, key)
    if row is not None and "closed_seq" not in row:
        closing = {"closed_seq": event.seq, "closed_at": event.timestamp, "resolution": why or None}
        workspace.put(ITEM, key, sparse({**row, **closing}))


def _session_set(workspace: Workspace, event: Event, payload: events.SessionTasksSet) -> None:
    """Another current task is a switch, which answers what was asked and ends the mismatches."""
    row = _session(workspace, payload.session_id)
    former, current = _current(row), payload.stack[-1] if payload.stack else None
    fields: Row = {"stack": payload.stack}
    if former != current:
        fields |= {"switched_from": former, "switched_to": current, "switched_at": event.timestamp}
        fields |= {"switches_back": _switches_back(row, current, event.timestamp), "mismatches": 0, **_UNASKED}
    _change(workspace, row, fields)


def _control_set(workspace: Workspace, _event: Event, payload: events.SessionControlSet) -> None:
    row = _session(workspace, payload.session_id)
    cleared = {"switches_back": 0, "mismatches": 0} if payload.autoswitch else {}
    _change(workspace, row, {"autoswitch": payload.autoswitch, "guidance": payload.guidance, **cleared})


def _turn_controlled(workspace: Workspace, _event: Event, payload: events.TurnControlled) -> None:
    """Count the turns in a row whose message belongs to another task, and keep what was asked."""
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


def _working_set(workspace: Workspace, event: Event, payload: events.WorkingMemorySet) -> None:
    fields = sparse(payload.model_dump(exclude={"session_id"}))
    _set(workspace, WORKING, payload.session_id, {**fields, "updated_at": event.timestamp} if fields else None)


def _context_set(workspace: Workspace, event: Event, payload: events.ChatContextSet) -> None:
    fields = {"context": payload.context, "updated_at": event.timestamp} if payload.context else None
    _set(workspace, CONTEXT, payload.session_id, fields)


def _transient_set(workspace: Workspace, event: Event, payload: events.TransientSet) -> None:
    fields = payload.model_dump(exclude={"item_id"})
    _set(workspace, TRANSIENT, payload.item_id, {**sparse(fields), "created_at": event.timestamp})


def _transient_removed(workspace: Workspace, _event: Event, payload: events.TransientRemoved) -> None:
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


def ledger_key(agent: str) -> str:
    """Return the key of an agent's ledger."""
    return natural_id("ledger", agent)


def _checkpointed(workspace: Workspace, event: Event, payload: events.LedgerCheckpointed) -> None:
    """Replace the former checkpoint, except for what was completed and learned."""
    key = ledger_key(payload.agent)
    old = workspace.get(LEDGER, key)
    if old is not None and "current_task" in old:
        workspace.put(WORKS_ON, (key, task_key(old["current_task"])), None)
    stated = payload.model_dump(include={"agent", "current_task", "goal", "tech_stack"})
    times = {"seq": event.seq, "checkpoint_at": event.timestamp}
    workspace.put(LEDGER, key, sparse({"id": key, **stated, **_git(payload.git), **times}))
    workspace.ensure(KEPT_BY, (key, _agent(workspace, event, payload.agent)), {})
    if payload.current_task is not None and _has_task(workspace, payload.current_task):
        workspace.put(WORKS_ON, (key, task_key(payload.current_task)), {})
    for task_id in payload.completed:
        if _has_task(workspace, task_id):
            workspace.ensure(COMPLETED_BY, (task_key(task_id), key), {"created_at": event.timestamp})
    for memory_id in payload.learned:
        if workspace.has("Memory", memory_id):
            workspace.ensure(LEARNED_BY, (memory_id, key), {"created_at": event.timestamp})


def _handed_over(workspace: Workspace, event: Event, payload: events.HandoffCreated) -> None:
    """Nothing without the task; one that exists stays as it is."""
    task_id = event.task_id or ""
    if workspace.get(HANDOFF, payload.id) is not None or not _has_task(workspace, task_id):
        return
    stated = payload.model_dump(exclude={"git", "memories"})
    known = {"task_id": task_id, "state": "open", "seq": event.seq, "created_at": event.timestamp}
    workspace.put(HANDOFF, payload.id, sparse({**stated, **known, **_git(payload.git)}))
    workspace.put(HANDS_OVER, (payload.id, task_key(task_id)), {})
    workspace.put(HANDED_BY, (payload.id, _agent(workspace, event, payload.from_agent)), {})
    if payload.to_agent is not None:
        workspace.put(HANDED_TO, (payload.id, _agent(workspace, event, payload.to_agent)), {})
    for rank, memory_id in enumerate(dict.fromkeys(payload.memories), start=1):
        if workspace.has("Memory", memory_id):
            workspace.put(CARRIED_BY, (memory_id, payload.id), {"rank": rank})


def _accepted(workspace: Workspace, event: Event, payload: events.HandoffAccepted) -> None:
    """Nothing unless it is open, and for this agent."""
    row = _open(workspace, event, payload.id)
    if row is None or row.get("to_agent", payload.agent) != payload.agent or row["from_agent"] == payload.agent:
        return
    taken = {"state": "accepted", "accepted_by": payload.agent, "accepted_at": event.timestamp}
    workspace.put(HANDOFF, payload.id, {**row, **taken})
    workspace.put(ACCEPTED_BY, (payload.id, _agent(workspace, event, payload.agent)), {})


def _withdrawn(workspace: Workspace, event: Event, payload: events.HandoffWithdrawn) -> None:
    """Nothing unless it is open."""
    row = _open(workspace, event, payload.id)
    if row is not None:
        ended = {"state": "withdrawn", "withdrawn_at": event.timestamp, "reason": payload.reason or None}
        workspace.put(HANDOFF, payload.id, sparse({**row, **ended}))


def _open(workspace: Workspace, event: Event, handoff_id: str) -> Row | None:
    row = workspace.get(HANDOFF, handoff_id)
    return row if row is not None and (row["state"], row["task_id"]) == ("open", event.task_id) else None


def _has_task(workspace: Workspace, task_id: str) -> bool:
    return workspace.has(TASK, task_key(task_id))


def _agent(workspace: Workspace, event: Event, name: str) -> str:
    """Ensure the node of an agent, which stays without memories from now on; return its key."""
    key = natural_id("agent", name)
    workspace.ensure("Agent", key, {"id": key, "name": name, "known_at": event.timestamp})
    return key


def _git(git: events.WorkTree | None) -> Row:
    return {} if git is None else git.model_dump()


def known_task(rows: Workspace, task_id: str) -> Row:
    """Return the row of a registered task."""
    row = rows.get(TASK, task_key(task_id))
    if row is None:
        raise NotFoundError("task", task_id, listed_by="memgraph task list")
    return row


def check_writable(task_id: str, status: str) -> None:
    """Refuse a task that is archived or closed."""
    if status not in WRITABLE:
        problem = (
            f"names a task that is {status}, so it does not change; `memgraph task status ID active` opens it again"
        )
        raise InvalidInputError(problem, field="task_id", value=task_id)


def _check_task(rows: Workspace, draft: CommitDraft, payload: events.TaskPayload) -> None:
    """Refuse an event of a task that does not exist, exists already, or is archived or closed."""
    task_id = draft.task_id or ""
    if isinstance(payload, events.TaskCreated):
        if rows.has(TASK, task_key(task_id)):
            raise InvalidInputError("names a task that exists already", field="task_id", value=task_id)
        return
    status = known_task(rows, task_id)["status"]
    if not isinstance(payload, events.TaskStatusSet):
        check_writable(task_id, status)


def _check_link(rows: Workspace, draft: CommitDraft, payload: events.TaskLinked) -> None:
    """Refuse a link to the task itself, or to one that does not exist or is closed."""
    if payload.target_id == draft.task_id:
        raise InvalidInputError("is the task itself", field="target_id", value=payload.target_id)
    if known_task(rows, payload.target_id)["status"] == "closed":
        raise InvalidInputError("names a task that is closed", field="target_id", value=payload.target_id)


def _check_item(rows: Workspace, draft: CommitDraft, payload: events.ItemEvent) -> None:
    """Refuse to open an item that exists, and to close one that does not hold in the task."""
    row = rows.get(ITEM, payload.id)
    if payload.TYPE in OPENINGS:
        if row is not None:
            raise DuplicateIdError(payload.id)
        return
    kind = CLOSINGS[payload.TYPE].kind
    what = kind.replace("_", " ")
    if row is None or (row["task_id"], row["kind"]) != (draft.task_id, kind):
        raise NotFoundError(what, payload.id, listed_by=f"memgraph task show {draft.task_id}")
    if "closed_seq" in row:
        raise InvalidInputError(f"names a {what} that is closed already", field="id", value=payload.id)


def _check_pin(rows: Workspace, draft: CommitDraft, payload: events.PinPayload) -> None:
    """Refuse to pin what is no new pinned memory, and to change what is no pin of this scope or not asked for."""
    task_id = draft.task_id
    if task_id is not None and not isinstance(payload, events.PinRemoveCancelled):  # who cancels keeps the pin as it is
        check_writable(task_id, known_task(rows, task_id)["status"])
    if isinstance(payload, events.PinAdded):
        if not (rows.is_new("Memory", payload.id) and (rows.get("Memory", payload.id) or {}).get("is_pinned")):
            raise InvalidInputError("must be a pinned memory of the same commit", field="id", value=payload.id)
        return
    row = rows.get(PIN, payload.id)
    if not is_pin(row):
        raise NotFoundError("pin", payload.id, listed_by="memgraph pins")
    if row.get("task_id") != task_id:
        problem = f"pin {payload.id} belongs to task {row.get('task_id')!r}, the commit to {task_id!r}"
        raise ScopeError(f"{problem}: one commit has one write scope")
    request_id = None if isinstance(payload, events.PinRemoveRequested) else getattr(payload, "request_id", None)
    if request_id is not None:
        request = rows.get(REMOVAL, request_id) or {}
        if (request.get("pin_id"), request.get("state")) != (payload.id, "open"):
            raise NotFoundError("open request to remove the pin", request_id, listed_by="memgraph pins")


def _check_immutable(
    rows: Workspace, draft: CommitDraft, payload: MemoryRevised | MemoryMerged | MemoryDeleted | MemoryLinked
) -> None:
    """Refuse to change, replace or delete the memory of a pin, unless an event of the commit edits or removes the pin."""
    if isinstance(payload, MemoryLinked) and payload.relation != "SUPERSEDES":
        return
    memory_id = payload.target_id if isinstance(payload, MemoryLinked) else payload.id
    pin = rows.get(PIN, memory_id)
    if not is_pin(pin):
        return
    if isinstance(payload, MemoryRevised | MemoryMerged):
        fields = {*payload.changed.model_fields_set, *payload.cleared}  # type: ignore[attr-defined]
        tags = {tag.casefold() for tag in payload.changed.tags or ()}  # type: ignore[attr-defined]
        if fields.isdisjoint(PROTECTED) and ("tags" not in fields or pin["kind"] in tags):
            return
    if not any(isinstance(one, events.PinEdited | events.PinRemoved) and one.id == memory_id for one in draft.payloads):
        problem = (
            "is a pin, which only `memgraph pins edit` changes; `memgraph pins remove` or `memgraph forget --pins` "
            "removes it"
        )
        raise InvalidInputError(problem, field="id", value=memory_id)


def _check_session(rows: Workspace, _draft: CommitDraft, payload: events.SessionTasksSet) -> None:
    """Refuse tasks that do not exist, and to work on one that is archived or closed."""
    known = [known_task(rows, task_id) for task_id in payload.stack]
    if known:
        check_writable(known[-1]["name"], known[-1]["status"])


def _check_transient(rows: Workspace, _draft: CommitDraft, payload: events.TransientSet) -> None:
    if payload.task_id is not None:
        known_task(rows, payload.task_id)


def _check_ledger(rows: Workspace, _draft: CommitDraft, payload: events.LedgerCheckpointed) -> None:
    """Refuse tasks and memories that do not exist, and memories of other tasks."""
    named = filter(None, (payload.current_task, *payload.completed))
    _check_memories(rows, payload.learned, {None, *(known_task(rows, one)["name"] for one in named)})


def _check_handoff(
    rows: Workspace,
    draft: CommitDraft,
    payload: events.HandoffCreated | events.HandoffAccepted | events.HandoffWithdrawn,
) -> None:
    """Refuse a handoff to the agent itself or of unknown memories, and to end one that is not open or for another agent."""
    if rows.is_changed(HANDOFF, payload.id):
        raise InvalidInputError("names a handoff that this commit changes already", field="id", value=payload.id)
    row = rows.get(HANDOFF, payload.id)
    if isinstance(payload, events.HandoffCreated):
        if row is not None:
            raise DuplicateIdError(payload.id)
        if payload.from_agent == payload.to_agent:
            problem = "is the agent that hands over; name another one, or none so that any other agent may accept"
            raise InvalidInputError(problem, field="to_agent", value=payload.to_agent)
        _check_memories(rows, payload.memories, {None, draft.task_id})
        return
    if row is None or row["task_id"] != draft.task_id:
        raise NotFoundError("handoff", payload.id, listed_by="memgraph handoff list")
    if isinstance(payload, events.HandoffAccepted):
        if payload.agent == row["from_agent"]:
            problem = "is the agent that hands over; another one accepts it, or `memgraph handoff withdraw` ends it"
            raise InvalidInputError(problem, field="agent", value=payload.agent)
        if (wanted := row.get("to_agent")) not in (None, payload.agent):
            raise InvalidInputError(f"is not {wanted!r}, for whom the handoff is", field="agent", value=payload.agent)
    if row["state"] != "open":
        raise InvalidInputError(f"names a handoff that was {row['state']} already", field="id", value=payload.id)


def _check_memories(rows: Workspace, ids: Iterable[str], tasks: Collection[str | None]) -> None:
    """Refuse memories that do not exist, or that belong to a task other than these."""
    for memory_id in ids:
        row = rows.get("Memory", memory_id)
        if row is None:
            raise NotFoundError("memory", memory_id)
        if row.get("task_id") not in tasks:
            raise ScopeError(f"memory {memory_id} belongs to another task, {row['task_id']!r}, and stays there")


_CHECKS: tuple[tuple[Any, Callable[[Workspace, CommitDraft, Any], None]], ...] = (
    (events.TaskPayload, _check_task),
    (events.TaskLinked, _check_link),
    (events.ItemEvent, _check_item),
    (events.PinPayload, _check_pin),
    (MemoryRevised | MemoryMerged | MemoryDeleted | MemoryLinked, _check_immutable),
    (events.SessionTasksSet, _check_session),
    (events.TransientSet, _check_transient),
    (events.LedgerCheckpointed, _check_ledger),
    (events.HandoffCreated | events.HandoffAccepted | events.HandoffWithdrawn, _check_handoff),
)
"""What is refused of which events."""
HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    events.TaskCreated.TYPE: _created,
    events.TitleSet.TYPE: _titled,
    events.TaskStatusSet.TYPE: _status_set,
    events.GoalSet.TYPE: _goal_set,
    events.TaskLinked.TYPE: _linked,
    events.TaskUnlinked.TYPE: _unlinked,
    events.StatePatchApplied.TYPE: _patched,
    events.UserConfirmed.TYPE: _confirmed,
    events.PinAdded.TYPE: _pinned,
    events.PinEdited.TYPE: _pin_edited,
    events.PinRemoveRequested.TYPE: _removal_requested,
    events.PinRemoveCancelled.TYPE: _removal_cancelled,
    events.PinRemoved.TYPE: _unpinned,
    **dict.fromkeys(OPENINGS, _opened),
    **dict.fromkeys(CLOSINGS, _closed),
    events.SessionTasksSet.TYPE: _session_set,
    events.SessionControlSet.TYPE: _control_set,
    events.TurnControlled.TYPE: _turn_controlled,
    events.WorkingMemorySet.TYPE: _working_set,
    events.ChatContextSet.TYPE: _context_set,
    events.TransientSet.TYPE: _transient_set,
    events.TransientRemoved.TYPE: _transient_removed,
    events.LedgerCheckpointed.TYPE: _checkpointed,
    events.HandoffCreated.TYPE: _handed_over,
    events.HandoffAccepted.TYPE: _accepted,
    events.HandoffWithdrawn.TYPE: _withdrawn,
}


def check(rows: Workspace, draft: CommitDraft, payload: Payload, now: str) -> None:
    """Refuse an event that does not fit the rows; fold one that is not refused, for the later ones of the call."""
    for refuse in _checks_of(type(payload)):
        refuse(rows, draft, payload)
    if payload.TYPE in HANDLERS:
        scope = draft.write_scope, draft.task_id, draft.actor
        HANDLERS[payload.TYPE](rows, Event(0, "", True, payload.TYPE, payload, {}, *scope, now, now, ""), payload)


@cache
def _checks_of(kind: type[Payload]) -> tuple[Callable[[Workspace, CommitDraft, Any], None], ...]:
    return tuple(refuse for kinds, refuse in _CHECKS if issubclass(kind, kinds))
