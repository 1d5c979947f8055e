"""``ledger``: where each agent is in its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, Subgroup, pass_settings, past_options
from memgraph.interfaces.cli.base.output import count, emit, emit_json, plain, print_lines
from memgraph.interfaces.cli.tasks.lines import full_ids, git_lines

if TYPE_CHECKING:
    from memgraph.model.results.tasks import Ledger

_SHORT = 8
_agent = click.argument("name", metavar="AGENT")


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def ledger(ctx: click.Context) -> None:
    """List the ledgers if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@ledger.command("checkpoint")
@_agent
@click.option("--task", "current_task", metavar="ID", help="The task that it works on.")
@click.option("--completed", metavar="ID", multiple=True, help="A task that it has completed; repeatable.")
@click.option("--goal", metavar="TEXT", help="What it wants to reach at present.")
@click.option("--stack", "tech_stack", metavar="NAME", multiple=True, help="What it works with; repeatable.")
@click.option("--learned", metavar="ID", multiple=True, help="A memory that it has learned; repeatable.")
@click.option("--work-tree", metavar="DIR", help="Record branch, commit and changed files of this git work tree.")
@pass_settings
def checkpoint(settings: Settings, /, name: str, learned: Sequence[str], **given: Any) -> None:
    """Record where an agent is. It replaces the last checkpoint, except for what was completed and learned."""
    with opened(settings) as memory:
        found = memory.tasks.ledgers.checkpoint(name, learned=full_ids(memory, learned), actor="user", **given)
    emit(settings, found, _lines(found))


@ledger.command("show", cls=ReadingCommand)
@_agent
@pass_settings
def show(settings: Settings, name: str) -> None:
    """Show the last checkpoint of an agent."""
    with opened(settings) as memory:
        found = memory.tasks.ledgers.get(name)
    emit(settings, found, _lines(found))


@ledger.command("list", cls=ReadingCommand)
@pass_settings
def list_(settings: Settings) -> None:
    """List the last checkpoint of every agent, the latest first."""
    with opened(settings) as memory:
        found = memory.tasks.ledgers.list()
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    print_lines([_lines(one)[0] for one in found] or ["There are no ledgers."])


def _lines(one: Ledger) -> list[str]:
    task = f", works on {plain(one.current_task)}" if one.current_task else ""
    completed = f", {count(one.tasks_completed, 'task')} completed" if one.tasks_completed else ""
    lines = [f"{plain(one.agent_id)}  {one.last_checkpoint[:16].replace('T', ' ')} UTC{task}{completed}"]
    if one.context.current_goal:
        lines.append(f"Goal: {plain(one.context.current_goal)}")
    if one.context.tech_stack:
        lines.append(f"Stack: {', '.join(map(plain, one.context.tech_stack))}")
    if one.context.patterns_learned:
        lines.append(f"Learned: {', '.join(memory_id[:_SHORT] for memory_id in one.context.patterns_learned)}")
    return [*lines, *(git_lines(one.state) if one.state is not None else [])]
