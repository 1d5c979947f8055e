"""``compress``: generalise what at least three builds have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, notice, progress

if TYPE_CHECKING:
    from memgraph.model.results.learning import CompressionResult


@click.command(cls=Command)
@pass_settings
def compress(settings: Settings) -> None:
    """Generalise now, and archive faded memories; `ingest` and every tenth build do this automatically."""
    with opened(settings) as memory, progress(settings, "generalising"):
        result = memory.maintenance.compress()
    emit(settings, result, _lines(result))
    if result.notice:
        notice(result.notice)


def _lines(result: CompressionResult) -> list[str]:
    made = [
        (result.compressed, "generalisation added", "generalisations added"),
        (result.updated, "updated", "updated"),
        (result.superseded, "replaced", "replaced"),
        (result.retired, "withdrawn", "withdrawn"),
    ]
    done = ", ".join(count(many, one, several) for many, one, several in made if many)
    lines = [f"{done[:1].upper()}{done[1:]}." if done else "Nothing new to generalise."]
    if result.archived or result.deleted:
        lines.append(f"Faded: {result.archived:,} archived, {result.deleted:,} deleted.")
    return lines
