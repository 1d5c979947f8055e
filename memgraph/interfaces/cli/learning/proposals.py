"""``proposals``: list learned procedures, and let the user approve or reject them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, Subgroup, pass_settings, past_options
from memgraph.interfaces.cli.base.output import count, emit, emit_json, plain, print_lines, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from memgraph.facade import MemGraph
    from memgraph.model.results.learning import Proposal

_id = click.argument("id_", metavar="ID")
_SHORT = 8


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def proposals(ctx: click.Context) -> None:
    """List the proposals if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@proposals.command("list", cls=ReadingCommand)
@click.option("--project", metavar="NAME", help="Only proposals of this project.")
@click.option("--all", "all_", is_flag=True, help="Include approved and rejected ones.")
@pass_settings
def list_(settings: Settings, project: str | None = None, all_: bool = False) -> None:
    """List the procedures that await approval, the best supported first."""
    with opened(settings) as memory:
        found = memory.procedures.proposals(state=None if all_ else "proposed", project=project)
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    nothing = "No procedure was learned." if all_ else "No procedure awaits approval."
    print_lines([line for one in found for line in _lines(one)] or [nothing])


@proposals.command()
@_id
@pass_settings
def approve(settings: Settings, id_: str) -> None:
    """Bring a procedure into force: from now on it is recalled."""
    _decide(settings, id_, lambda memory, found: memory.procedures.approve(found), "Approved", "reopen")


@proposals.command()
@_id
@pass_settings
def reject(settings: Settings, id_: str) -> None:
    """Reject a procedure: it is proposed again only if three more builds bear it out."""
    _decide(settings, id_, lambda memory, found: memory.procedures.reject(found), "Rejected", "reopen")


@proposals.command()
@_id
@pass_settings
def reopen(settings: Settings, id_: str) -> None:
    """Take an approval or a rejection back: it waits again."""
    _decide(settings, id_, lambda memory, found: memory.procedures.reopen(found), "Awaits approval again", "approve")


def _decide(settings: Settings, id_: str, decide: Callable[[MemGraph, str], Proposal], done: str, undo: str) -> None:
    with opened(settings) as memory:
        found = decide(memory, memory.store.find_id(id_))
    emit(settings, found, f"{done}: when {plain(found.trigger)}. `memgraph proposals {undo} {found.id}` undoes this.")


def _lines(one: Proposal) -> list[str]:
    """Return a proposal as text: trigger, evidence, steps and common errors."""
    rate = "" if one.success_rate is None else f", it worked in {one.success_rate:.0%}"
    state = "" if one.state == "proposed" else f" ({one.state})"
    steps = [wrapped(step, indent="      ", first=f"  {number:>2}. ") for number, step in enumerate(one.steps, start=1)]
    errors = [wrapped(error, indent="      ", first="   !  ") for error in one.common_errors]
    head = f"{one.id[:_SHORT]}{state}  When {plain(one.trigger)}: seen in {count(one.builds, 'build')}{rate}"
    return [head, *steps, *errors]
