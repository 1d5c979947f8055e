"""Tasks as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memgraph.extraction.components import abbreviated
from memgraph.interfaces.cli.base.output import plain

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.tasks import GitState, Task, TaskItem, TaskSnapshot

_SHORT = 8
_NOTES = {"decision": "because", "artifact": "title:"}


def task_line(one: Task, *, is_current: bool = False) -> str:
    """Return a task as one line."""
    project = f"  {plain(one.project_id)}" if one.project_id else ""
    return (
        f"{'* ' if is_current else ''}{plain(one.id)}  {one.status}  {one.touched_at[:10]}{project}  {plain(one.title)}"
    )


def snapshot_lines(one: TaskSnapshot) -> list[str]:
    """Return a task's state as lines."""
    as_of = f", as of {one.as_of}" if one.as_of is not None else ""
    lines = [f"{plain(one.task_id)} ({one.status}{as_of}): {plain(one.title)}"]
    if one.goal:
        lines.append(f"Goal: {plain(one.goal)}")
    sections = (
        ("Decisions", one.decisions),
        ("Constraints", one.constraints),
        ("Open questions", one.open_questions),
        ("Next actions", one.next_actions),
        ("Artifacts", one.artifacts),
    )
    for heading, items in sections:
        if items:
            lines += [f"{heading}:", *map(_item_line, items)]
    if one.state:
        lines += ["State:", *(f"  {plain(name)} = {plain(value)}" for name, value in sorted(one.state.items()))]
    if one.links:
        lines.append(f"May read: {', '.join(map(plain, one.links))}")
    if one.confirmation:
        what = f" to {plain(one.confirmation.reason)!r}" if one.confirmation.reason else ""
        lines.append(f"Last confirmed: {plain(one.confirmation.content)!r}{what}, {one.confirmation.created_at[:10]}")
    return lines


def git_lines(one: GitState) -> list[str]:
    """Return the state of a git work tree as lines."""
    commit = f"commit {plain(abbreviated(one.last_git_commit))}" if one.last_git_commit else "no commit yet"
    branch = f" on {plain(one.branch)}" if one.branch else ""
    changes = "uncommitted changes" if one.uncommitted_changes else "no uncommitted changes"
    more = [*one.files_modified, *(["and more"] if one.has_more_files else [])]
    return [f"Git: {commit}{branch}, {changes}", *(f"  {plain(name)}" for name in more)]


def full_ids(memory: MemGraph, beginnings: Sequence[str]) -> list[str]:
    """Return the ids of memories that are named by their ids or by beginnings of these."""
    from memgraph.store.listing import only_id

    return [only_id(one, memory.store.reader.ids_from) for one in beginnings]


def _item_line(item: TaskItem) -> str:
    note = f" ({_NOTES.get(item.kind, '')} {plain(item.reason)})" if item.reason else ""
    return f"  {item.id[:_SHORT]}  {plain(item.content)}{note}"
