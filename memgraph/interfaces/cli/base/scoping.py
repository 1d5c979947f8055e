"""Options that restrict what a command reads: session, task, privacy tier and trust; and the notice about an unknown project."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memgraph.interfaces.cli.base.options import TIERS, TRUST
from memgraph.interfaces.cli.base.output import notice
from memgraph.interfaces.lookups import project_hint

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

F = TypeVar("F", bound=Callable[..., Any])


def scoped(command: F) -> F:
    """Add ``--session``, ``--task``, ``--tier`` and ``--min-trust``; `lookups.scope_given` turns their values into the library's arguments."""
    for option in (
        click.option(
            "--tier",
            "--privacy",
            "tiers",
            type=click.Choice(TIERS),
            multiple=True,
            help="Only this privacy tier; repeatable.",
        ),
        click.option(
            "--min-trust", type=click.Choice(TRUST), help="Only memories of this trust class or a higher one."
        ),
        click.option(
            "--task",
            "task_id",
            metavar="ID",
            help="Also memories of this task (default: the session's); with `list`, only these.",
        ),
        click.option(
            "--session",
            metavar="ID",
            help="Only memories of this session and of none; with `list`, only of this session.",
        ),
    ):
        command = option(command)
    return command


def asked_in_tasks(command: F) -> F:
    """Add ``--all-tasks``, ``--task-only`` and the session of the environment; `lookups.tasks_given` turns their values into arguments."""
    for option in (
        click.option(
            "--all-tasks", is_flag=True, help="Also what belongs to a task, of every task; each line says which."
        ),
        click.option("--task-only", is_flag=True, help="Of the task alone, without memories of no task."),
        click.option("--asking-session", envvar="MEMGRAPH_SESSION", hidden=True),
    ):
        command = option(command)
    return command


def hint_at_projects(memory: MemGraph, project: str | None) -> None:
    """Print the known projects if `project` has no memory."""
    is_known(memory, project)


def is_known(memory: MemGraph, project: str | None) -> bool:
    """Return whether `project` is None or has memories; print the known projects if it has none."""
    hint = project_hint(memory, project)
    if hint is not None:
        notice(hint)
    return hint is None
