"""``reset``: remove what was learned, or everything, after listing it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import ResetResult

_BACK = (
    "`memgraph undelete ID` restores one memory; only a copy of the store's directory made before restores everything."
)
_TYPES = ("episodic", "semantic", "procedural")


@click.command(cls=Command)
@click.option("--memory", "of_memory", is_flag=True, help="Keep facts that were saved, pins, and tasks.")
@click.option("--all", "of_all", is_flag=True, help="Keep none of these either.")
@click.option("--yes", is_flag=True, help="Remove it; without this option it is only listed.")
@pass_settings
def reset(settings: Settings, of_memory: bool, of_all: bool, yes: bool) -> None:
    """List what a reset removes; with --yes, remove it. Settings, keys and the journal's history stay."""
    if of_memory == of_all:
        raise click.UsageError("give either --memory or --all")
    with opened(settings, reads=not yes) as memory:
        result = memory.maintenance.reset("all" if of_all else "memory", preview=not yes)
    document = {**result.model_dump(mode="json"), "done": result.event is not None}
    emit(settings, document, _lines(result, yes))
    if result.removed and not yes and not is_interactive():
        raise Refused(f"nothing was removed: repeat it with --yes, as `memgraph reset --{result.scope} --yes`")


def is_interactive() -> bool:
    """Return whether a person reads the answer and can repeat the command."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _lines(result: ResetResult, yes: bool) -> list[str]:
    kept = [f"{'Kept' if yes else 'Keeps'}: {_listed(result.kept)}."] if result.kept else []
    if not result.removed:
        return ["There is nothing to remove.", *kept]
    if yes:
        return [f"Removed: {_listed(result.removed)}.", *kept, _BACK]
    advice = f"`memgraph reset --{result.scope} --yes` does it. {_BACK}"
    return [f"Would remove: {_listed(result.removed)}.", *kept, advice]


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')}{' memories' * (name in _TYPES)}: {number:,}" for name, number in counts.items()
    )
