"""Rejects events of tasks that do not fit the present state, before anything is written, whichever door they come through."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.errors import DuplicateIdError, InvalidInputError, NotFoundError
from memgraph.fold.tasks import CLOSINGS, ITEM, OPENINGS, TASK, is_registered, task_key
from memgraph.model.events.payload import Payload
from memgraph.model.events.tasks import ItemEvent, SessionTasksSet, TaskCreated, TaskLinked, TaskPayload, TaskStatusSet
from memgraph.ports import Row

Rows = Callable[[str, str], Row | None]
WRITABLE = frozenset({"active", "suspended"})


def check_task_events(task_id: str | None, payloads: Sequence[Payload], rows: Rows) -> None:
    """Check the events of one commit.

    Raises
    ------
    NotFoundError
        The task, a linked task, or the item to close does not exist in this task.
    InvalidInputError
        The task exists already, or its status admits no changes; it is linked to itself; or the item is closed already.
    DuplicateIdError
        An item has the id already.
    """
    events = [payload for payload in payloads if isinstance(payload, TaskPayload | SessionTasksSet)]
    if events:
        gate = _Gate(task_id or "", rows)
        for payload in events:
            gate.check(payload)


def known_task(rows: Rows, task_id: str) -> Row:
    """Return the row of a registered task."""
    row = rows(TASK, task_key(task_id))
    if row is None or not is_registered(row):
        raise NotFoundError("task", task_id, listed_by="memgraph task list")
    return row


def check_writable(task_id: str, status: str) -> None:
    """Reject a task that is archived or closed."""
    if status not in WRITABLE:
        problem = (
            f"names a task that is {status}, so it does not change; `memgraph task status ID active` opens it again"
        )
        raise InvalidInputError(problem, field="task_id", value=task_id)


class _Gate:
    """The state of one task during a commit."""

    def __init__(self, task_id: str, rows: Rows) -> None:
        self._task_id = task_id
        self._rows = rows
        self._status = (rows(TASK, task_key(task_id)) or {}).get("status") if task_id else None
        self._open: dict[str, str] = {}
        self._closed: set[str] = set()

    def check(self, payload: Payload) -> None:
        if isinstance(payload, SessionTasksSet):
            known = [known_task(self._rows, task_id) for task_id in payload.stack]
            if known:
                check_writable(known[-1]["name"], known[-1]["status"])
            return
        if isinstance(payload, TaskCreated):
            if self._status is not None:
                raise InvalidInputError("names a task that exists already", field="task_id", value=self._task_id)
            self._status = "active"
            return
        if self._status is None:
            raise NotFoundError("task", self._task_id, listed_by="memgraph task list")
        if isinstance(payload, TaskStatusSet):
            self._status = payload.status
            return
        check_writable(self._task_id, self._status)
        if isinstance(payload, TaskLinked):
            if payload.target_id == self._task_id:
                raise InvalidInputError("is the task itself", field="target_id", value=payload.target_id)
            if known_task(self._rows, payload.target_id)["status"] == "closed":
                raise InvalidInputError("names a task that is closed", field="target_id", value=payload.target_id)
        elif isinstance(payload, ItemEvent):
            self._check_item(payload)

    def _check_item(self, payload: ItemEvent) -> None:
        row = self._rows(ITEM, payload.id)
        if payload.TYPE in OPENINGS:
            if row is not None or payload.id in self._open:
                raise DuplicateIdError(payload.id)
            self._open[payload.id] = OPENINGS[payload.TYPE].kind
            return
        kind = CLOSINGS[payload.TYPE].kind
        mine = row if row is not None and row["task_id"] == self._task_id else {"kind": self._open.get(payload.id)}
        if mine["kind"] != kind:
            raise NotFoundError(kind.replace("_", " "), payload.id, listed_by=f"memgraph task show {self._task_id}")
        if "closed_seq" in mine or payload.id in self._closed:
            raise InvalidInputError(
                f"names a {kind.replace('_', ' ')} that is closed already", field="id", value=payload.id
            )
        self._closed.add(payload.id)
