"""Options that restrict what a command reads: session, task, privacy tier and trust."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_TRUST = ("user", "agent", "tool", "imported", "web")
_TIERS = ("public", "sensitive", "private")


def scoped(command: F) -> F:
    """Add ``--session``, ``--task``, ``--tier`` and ``--min-trust``; `scope_given` turns their values into the library's arguments."""
    for option in (
        click.option(
            "--tier",
            "--privacy",
            "tiers",
            type=click.Choice(_TIERS),
            multiple=True,
            help="Only this privacy tier; repeatable.",
        ),
        click.option(
            "--min-trust", type=click.Choice(_TRUST), help="Only memories of this trust class or a higher one."
        ),
        click.option("--task", "task_id", metavar="ID", help="Also memories of this task; with `list`, only these."),
        click.option(
            "--session",
            metavar="ID",
            help="Only memories of this session and of none; with `list`, only of this session.",
        ),
    ):
        command = option(command)
    return command


def all_tasks(command: F) -> F:
    """Add ``--all-tasks``."""
    return click.option("--all-tasks", is_flag=True, help="Also memories that belong to a task, of every task.")(
        command
    )


def scope_given(*, session: str | None, task_id: str | None, tiers: tuple[str, ...], min_trust: Any) -> dict[str, Any]:
    """Return the arguments that were given."""
    from memgraph.store.access.scope import trusted

    given: dict[str, Any] = {"session": session, "task_id": task_id}
    if tiers:
        given["privacy_tiers"] = list(tiers)
    if min_trust:
        given["trust_classes"] = trusted(min_trust)
    return {name: value for name, value in given.items() if value is not None}
