"""Rejects events of ledgers and handoffs that do not fit the present state, whichever door they come through."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from memgraph.errors import DuplicateIdError, InvalidInputError, NotFoundError, ScopeError
from memgraph.fold.tasks import HANDOFF
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.payload import Payload
from memgraph.model.events.tasks import HandoffAccepted, HandoffCreated, HandoffWithdrawn, LedgerCheckpointed
from memgraph.ports import Row
from memgraph.store.commit.task_gate import Rows, known_task

_Event = LedgerCheckpointed | HandoffCreated | HandoffAccepted | HandoffWithdrawn


def check_handoffs(task_id: str | None, payloads: Sequence[Payload], rows: Rows) -> None:
    """Check the events of one commit. `check_task_events` has checked that the task exists and can be changed.

    Raises
    ------
    NotFoundError
        A task, memory or handoff does not exist, or the handoff is of another task.
    InvalidInputError, DuplicateIdError
        An agent hands over to itself; a handoff has the id already, is not open any more, or is for another agent.
    ScopeError
        A memory belongs to another task.
    """
    events = [payload for payload in payloads if isinstance(payload, _Event)]
    new = {one.memory.id: one.memory.task_id for one in payloads if isinstance(one, MemoryAdded)} if events else {}
    done = set[str]()
    for payload in events:
        if isinstance(payload, LedgerCheckpointed):
            named = filter(None, (payload.current_task, *payload.completed))
            tasks = {None, *(known_task(rows, one)["name"] for one in named)}
            _check_memories(payload.learned, tasks, lambda one: rows("Memory", one))
            continue
        if payload.id in done:
            raise InvalidInputError("names a handoff that this commit changes already", field="id", value=payload.id)
        done.add(payload.id)
        if isinstance(payload, HandoffCreated):
            if rows(HANDOFF, payload.id) is not None:
                raise DuplicateIdError(payload.id)
            if payload.from_agent == payload.to_agent:
                problem = "is the agent that hands over; name another one, or none so that any other agent may accept"
                raise InvalidInputError(problem, field="to_agent", value=payload.to_agent)
            _check_memories(
                payload.memories,
                {None, task_id},
                lambda one: {"task_id": new[one]} if one in new else rows("Memory", one),
            )
            continue
        row = rows(HANDOFF, payload.id)
        if row is None or row["task_id"] != task_id:
            raise NotFoundError("handoff", payload.id, listed_by="memgraph handoff list")
        if row["state"] != "open":
            raise InvalidInputError(f"names a handoff that was {row['state']} already", field="id", value=payload.id)
        if isinstance(payload, HandoffAccepted):
            check_addressee(row, payload.agent)


def check_addressee(handoff: Row, agent: str) -> None:
    """Reject an agent for which a handoff is not.

    Raises
    ------
    InvalidInputError
    """
    if agent == handoff["from_agent"]:
        problem = "is the agent that hands over; another one accepts it, or `memgraph handoff withdraw` ends it"
        raise InvalidInputError(problem, field="agent", value=agent)
    if (wanted := handoff.get("to_agent")) not in (None, agent):
        raise InvalidInputError(f"is not {wanted!r}, for whom the handoff is", field="agent", value=agent)


def _check_memories(ids: Iterable[str], tasks: Collection[str | None], row_of: Callable[[str], Row | None]) -> None:
    """Reject memories that do not exist, or that belong to a task other than these."""
    for memory_id in ids:
        row = row_of(memory_id)
        if row is None:
            raise NotFoundError("memory", memory_id)
        if row.get("task_id") not in tasks:
            raise ScopeError(f"memory {memory_id} belongs to another task, {row['task_id']!r}, and stays there")
