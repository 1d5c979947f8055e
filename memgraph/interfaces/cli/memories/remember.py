"""``remember``, ``forget``, ``ask``: the commands that a person uses directly."""

from __future__ import annotations

from typing import Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit, emit_json, plain
from memgraph.interfaces.cli.base.scoping import all_tasks, scope_given, scoped
from memgraph.model.agent_input import UNNAMED


@click.command(cls=Command)
@click.argument("text")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; repeatable.")
@click.option("--project", metavar="NAME", help="The project it belongs to.  [default: none, shared knowledge]")
@pass_settings
def remember(settings: Settings, text: str, tags: tuple[str, ...], project: str | None) -> None:
    """Store a text as a pinned memory."""
    if text == "-":
        text = standard_input("store it in parts")
    if not text.strip():
        raise Refused("there is no text to remember")
    with opened(settings) as memory:
        result = memory.commands.remember(text, list(tags) or None, project_id=project)
    undo = "; ".join(f"memgraph forget {one}" for one in dict.fromkeys(result.data["ids"]))
    emit(settings, result, plain(f"{result.message}; undo: {undo}"))


@click.command(cls=Command)
@click.argument("query")
@pass_settings
def forget(settings: Settings, query: str) -> None:
    """Suppress the most similar memory; the journal keeps it."""
    with opened(settings) as memory:
        result = memory.commands.forget(query)
    if settings.as_json:
        emit_json(result)
    if not result.success:
        raise Refused(result.message)
    if not settings.as_json:
        click.echo(plain(result.message))


@click.command(cls=ReadingCommand)
@click.argument("query")
@click.option("--project", metavar="NAME", help="Only memories of this project and of no project.")
@scoped
@all_tasks
@pass_settings
def ask(settings: Settings, /, query: str, project: str | None, all_tasks: bool, **scope: Any) -> None:
    """Print up to five episodes, the most similar first."""
    with opened(settings, asks=True) as memory:
        result = memory.commands.ask(
            query,
            agent=settings.agent or UNNAMED,
            justification=settings.justification,
            project_id=project,
            all_tasks=all_tasks,
            **scope_given(**scope),
        )
    emit(settings, result, [plain(line) for line in result.message.split("\n")])
