"""``remember``, ``forget``, ``ask``: the commands that a person uses directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from memgraph.errors import InvalidInputError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.lookup import looked_up, with_worker
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, emit_json, plain
from memgraph.interfaces.cli.base.scoping import asked_in_tasks, scoped
from memgraph.interfaces.cli.memories.agent_input import context, tier
from memgraph.interfaces.cli.memories.changes import report
from memgraph.interfaces.cli.memories.selection import Selection, check_named, selecting
from memgraph.text.cutting import preview


@click.command(cls=Command)
@click.argument("text")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; repeatable.")
@click.option("--project", metavar="NAME", help="The project it belongs to.  [default: none, shared knowledge]")
@click.option(
    "--fact", is_flag=True, help="Save it as a fact: recalled when it concerns the task, not a standing rule."
)
@context
@tier
@pass_settings
def remember(
    settings: Settings, /, text: str, tags: tuple[str, ...], project: str | None, context: str | None, **kept: Any
) -> None:
    """Store a text as a pinned memory: a standing rule, unless it is a --fact."""
    if text == "-":
        text = standard_input("store it in parts")
    if not text.strip():
        raise Refused("there is no text to remember")
    with opened(settings) as memory:
        result = memory.commands.remember(text, list(tags) or None, project_id=project, domain=context, **kept)
    emit(settings, result, plain(f"{result.message}{_undoing(result.data)}"))


def _undoing(done: dict[str, Any]) -> str:
    """Return how to undo a `remember`; nothing if it changed nothing."""
    if done["action"] != "created":
        return f"; undo: memgraph undo {done['event']}" if done["event"] else ""
    commands = [f"memgraph unsupersede {one}" for one in done["replaced"]]
    return f"; undo: {'; '.join([*commands, ' '.join(['memgraph forget', *dict.fromkeys(done['ids'])])])}"


@click.command(cls=Command)
@click.argument("named", nargs=-1, metavar="[ID-OR-TEXT]...")
@click.option("--dry-run", is_flag=True, help="Show what would be forgotten, and change nothing.")
@click.option("--pins", is_flag=True, help="Also remove pins (`memgraph pins`), which are refused otherwise.")
@selecting
@pass_settings
def forget(settings: Settings, named: Sequence[str], selection: Selection, dry_run: bool, pins: bool) -> None:
    """Suppress memories; the journal keeps them."""
    check_named(named, selection, what="an ID or TEXT")
    if len(named) != 1:
        _forget_several(settings, named, selection, dry_run=dry_run, pins=pins)
        return
    with opened(settings) as memory:
        result = memory.commands.forget(named[0], dry_run=dry_run, pins=pins)
    if settings.as_json:
        emit_json(result)
    if not result.success:
        raise Refused(result.message)
    if not settings.as_json:
        click.echo(plain(result.message))


def _forget_several(
    settings: Settings, named: Sequence[str], selection: Selection, *, dry_run: bool, pins: bool
) -> None:
    from memgraph.model.results.curation import MemoryCommandResult

    with opened(settings) as memory:
        try:
            chosen = selection.ids(memory, named, what="to forget them", is_preview=dry_run)
        except InvalidInputError as error:
            raise Refused(f"{error}; put a text of several words in quotes") from None
        known = memory.store.read_memories(chosen)
        if pins and not dry_run:
            memory.tasks.pins.forget(chosen)
        result = None if dry_run else memory.curation.forget(chosen)
    if result is not None:
        report(settings, "forget", "Forgot", result)
        return
    message = f"Would forget {count(len(known), 'memory', 'memories')}; nothing was changed"
    data = {"ids": [one.id for one in known], "dry_run": True}
    document = MemoryCommandResult(command="forget", success=True, message=message, data=data)
    emit(settings, document, [*(plain(f"{one.id}  {preview(one.content)}") for one in known), message])


@click.command(cls=ReadingCommand)
@click.argument("query")
@click.option("--project", metavar="NAME", help="Only memories of this project and of no project.")
@scoped
@asked_in_tasks
@with_worker
@pass_settings
def ask(
    settings: Settings,
    /,
    query: str,
    project: str | None,
    all_tasks: bool,
    task_only: bool,
    asking_session: str | None,
    worker: bool,
    **scope: Any,
) -> None:
    """Print up to five episodes, the most similar first."""
    found = looked_up(
        settings,
        "ask",
        {
            "query": query,
            "agent": settings.agent,
            "justification": settings.justification,
            "project": project,
            "tasks": {"all_tasks": all_tasks, "task_only": task_only, "asking_session": asking_session},
            "scope": scope,
        },
        uses_worker=worker,
    )
    emit(settings, found["document"], [plain(line) for line in found["message"].split("\n")])
