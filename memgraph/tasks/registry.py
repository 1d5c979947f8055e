"""Reading tasks: the registry, and a task's state at a moment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, get_args

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.fold.tasks import HAS_ITEM, TASK, task_key
from memgraph.model.base import Name, checked
from memgraph.model.events.payload import Whole
from memgraph.model.ids import canonical_name
from memgraph.model.results.tasks import Task, TaskItem, TaskSnapshot, TaskStatus
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.past import When, moment_of

LISTS = {
    "decision": "decisions",
    "constraint": "constraints",
    "open_question": "open_questions",
    "next_action": "next_actions",
    "artifact": "artifacts",
}
"""The fields of a snapshot by kind of item."""
_LATER = frozenset({"closed_seq", "closed_at", "resolution"})
"""Fields of an item that say what happened after it held."""
_NO_WORD = re.compile(r"[^\w.]+")
_ID_CHARS = 48


def find_task(store: AgentMemoryStore, task_id: str) -> Task:
    """Return a registered task."""
    name = checked(Name, task_id, "task_id")
    row = store.reader.record(TASK, task_key(name))
    if row is None:
        raise NotFoundError("task", name, listed_by="memgraph task list")
    return _task(row)


def has_task(store: AgentMemoryStore, task_id: str) -> bool:
    """Return whether a task is registered."""
    return store.reader.record(TASK, task_key(task_id)) is not None


def list_tasks(
    store: AgentMemoryStore, *, status: TaskStatus | Iterable[TaskStatus] | None = None, project: str | None = None
) -> list[Task]:
    """Return the registered tasks, the last touched first."""
    wanted = get_args(TaskStatus) if status is None else [status] if isinstance(status, str) else list(status)
    for one in wanted:
        checked(TaskStatus, one, "status")
    checked(Name | None, project, "project")
    tasks = [_task(row) for row in store.reader.every_record(TASK)]
    chosen = [one for one in tasks if one.status in wanted and project in (None, one.project_id)]
    return sorted(sorted(chosen, key=lambda one: one.id), key=lambda one: one.touched_at, reverse=True)


def snapshot(store: AgentMemoryStore, task_id: str, *, as_of: int | When | None = None) -> TaskSnapshot:
    """Return a task's state now, or at an event or a time, by one query: each item knows from when until when it held."""
    task = find_task(store, task_id)
    moment = _moment(as_of)
    rows = store.reader.held(HAS_ITEM, task_key(task.id), moment)
    then = ({name: value for name, value in row.items() if name not in _LATER} for row in rows)
    items = [TaskItem.model_validate(row) for row in then]
    items.sort(key=lambda item: (item.seq, item.id))
    held = {item.kind: item for item in items}
    if "title" not in held:
        raise InvalidInputError(f"is before the task was created, on {task.created_at}", field="as_of", value=as_of)
    lists: dict[str, Any] = {field: [item for item in items if item.kind == kind] for kind, field in LISTS.items()}
    return TaskSnapshot(
        task_id=task.id,
        title=held["title"].content,
        status=held["status"].content,
        project_id=task.project_id,
        as_of=moment,
        through=max(item.seq for item in items),
        goal=held["goal"].content if "goal" in held else None,
        state={item.name or "": item.content for item in items if item.kind == "state"},
        links=[item.content for item in items if item.kind == "link"],
        confirmation=held.get("confirmation"),
        **lists,
    )


def id_for(store: AgentMemoryStore, title: str) -> str:
    """Return an unused id made from a title."""
    base = _NO_WORD.sub("-", canonical_name(title)).strip("-.")[:_ID_CHARS].strip("-.") or "task"
    number, candidate = 1, base
    while has_task(store, candidate):
        number += 1
        candidate = f"{base}-{number}"
    return candidate


def _task(row: Row) -> Task:
    fields = ("title", "status", "project_id", "created_at", "touched_at")
    return Task.parse({"id": row["name"], **{name: row[name] for name in fields if name in row}})


def _moment(as_of: int | When | None) -> int | str | None:
    if as_of is None:
        return None
    if isinstance(as_of, int):
        event: int = checked(Whole, as_of, "as_of")
        return event
    return moment_of(as_of, field="as_of")
