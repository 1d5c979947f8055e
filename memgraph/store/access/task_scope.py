"""Which tasks a recall may read: the one that it is asked in, those that this one is linked to, or all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memgraph.fold.tasks import HAS_ITEM, ITEM, SESSION, TASK, session_key, task_key
from memgraph.ports import Row
from memgraph.store.query import Reader


def task_of(reader: Reader, task_id: str | None, *sessions: str | None, all_tasks: bool = False) -> str | None:
    """Return the task in whose scope it is asked: the one that is named, else the current one of the first session that works on one.

    Where all tasks are searched, none counts but the one that is named. Costs a look-up by key for each session; call it outside of frozen
    blocks.
    """
    if task_id is not None or all_tasks:
        return task_id
    for session in dict.fromkeys(one for one in sessions if one is not None):
        stack = (reader.record(SESSION, session_key(session)) or {}).get("stack", [])
        if stack:
            return str(stack[-1])
    return None


def is_known(reader: Reader, task_id: str) -> bool:
    """Return whether a task is registered, or a memory has named it."""
    return reader.record(TASK, task_key(task_id)) is not None


def tasks_read_by(reader: Reader, task_id: str | None, session: str | None) -> list[str]:
    """Return the tasks whose memories may be read where a session works on a task: that task, and those that it is linked to."""
    name = task_of(reader, task_id, session)
    return [] if name is None else [name, *links_in(items_of(reader, name))]


def items_of(reader: Reader, task_id: str) -> list[Row]:
    """Return what holds in a task, each with the task's project, oldest first. Costs a look-up, and one query of its items."""
    task = reader.record(TASK, task_key(task_id)) or {}
    return _in_order(reader.held(HAS_ITEM, task_key(task_id), None), {task_id: task.get("project_id")})


def every_item(reader: Reader) -> list[Row]:
    """Return what holds in any task, each with its task's project, oldest first. Costs one pass over all tasks and their items."""
    project_of = {row["name"]: row.get("project_id") for row in reader.every_record(TASK)}
    return _in_order((row for row in reader.every_record(ITEM) if "closed_seq" not in row), project_of)


def links_in(items: Iterable[Row]) -> list[str]:
    """Return the ids of the tasks to which the task of these items is linked, in the order of the links."""
    return [str(row["content"]) for row in items if row["kind"] == "link"]


def _in_order(rows: Iterable[Row], project_of: Mapping[str, str | None]) -> list[Row]:
    with_project = ({**row, "project_id": project_of.get(row["task_id"])} for row in rows)
    return sorted(with_project, key=lambda row: (row["seq"], row["id"]))
