"""Folds events about agents' ledgers and about handoffs.

The memories of a handoff or ledger are edges, not fields: one that is deleted leaves nothing behind there, and does not come back with its
undeletion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.fold.edges import node_of
from memgraph.fold.tasks.tasks import is_registered, task_key
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.payload import sparse
from memgraph.model.events.tasks import (
    HandoffAccepted,
    HandoffCreated,
    HandoffWithdrawn,
    LedgerCheckpointed,
    WorkTree,
)
from memgraph.model.ids import natural_id
from memgraph.ports import Row

LEDGER, HANDOFF = "Ledger", "Handoff"
KEPT_BY, WORKS_ON, COMPLETED_BY, LEARNED_BY = "KEPT_BY", "WORKS_ON", "COMPLETED_BY", "LEARNED_BY"
HANDED_BY, HANDED_TO, ACCEPTED_BY, HANDS_OVER, CARRIED_BY = (
    "HANDED_BY",
    "HANDED_TO",
    "ACCEPTED_BY",
    "HANDS_OVER",
    "CARRIED_BY",
)


def ledger_key(agent: str) -> str:
    """Return the key of an agent's ledger."""
    return natural_id("ledger", agent)


def checkpointed(workspace: Workspace, event: Event, payload: LedgerCheckpointed) -> None:
    """Fold ``ledger.checkpointed``: it replaces the former one, except for what was completed and learned."""
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


def created(workspace: Workspace, event: Event, payload: HandoffCreated) -> None:
    """Fold ``handoff.created``: nothing without the task; one that exists stays as it is."""
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


def accepted(workspace: Workspace, event: Event, payload: HandoffAccepted) -> None:
    """Fold ``handoff.accepted``: nothing unless it is open, and for this agent."""
    row = _open(workspace, event, payload.id)
    if row is None or row.get("to_agent", payload.agent) != payload.agent or row["from_agent"] == payload.agent:
        return
    taken = {"state": "accepted", "accepted_by": payload.agent, "accepted_at": event.timestamp}
    workspace.put(HANDOFF, payload.id, {**row, **taken})
    workspace.put(ACCEPTED_BY, (payload.id, _agent(workspace, event, payload.agent)), {})


def withdrawn(workspace: Workspace, event: Event, payload: HandoffWithdrawn) -> None:
    """Fold ``handoff.withdrawn``: nothing unless it is open."""
    row = _open(workspace, event, payload.id)
    if row is not None:
        ended = {"state": "withdrawn", "withdrawn_at": event.timestamp, "reason": payload.reason or None}
        workspace.put(HANDOFF, payload.id, sparse({**row, **ended}))


def _open(workspace: Workspace, event: Event, handoff_id: str) -> Row | None:
    row = workspace.get(HANDOFF, handoff_id)
    return row if row is not None and (row["state"], row["task_id"]) == ("open", event.task_id) else None


def _has_task(workspace: Workspace, task_id: str) -> bool:
    return is_registered(workspace.get("Task", task_key(task_id)))


def _agent(workspace: Workspace, event: Event, name: str) -> str:
    """Ensure the node of an agent, which stays without memories from now on; return its key."""
    node = node_of("Agent", name)
    row = workspace.get(node.table, node.key) or node.row
    if "known_at" not in row:
        workspace.put(node.table, node.key, {**row, "known_at": event.timestamp})
    return node.key


def _git(git: WorkTree | None) -> Row:
    return {} if git is None else git.model_dump()


HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    LedgerCheckpointed.TYPE: checkpointed,
    HandoffCreated.TYPE: created,
    HandoffAccepted.TYPE: accepted,
    HandoffWithdrawn.TYPE: withdrawn,
}
