"""``compress``: make generalisations of what was seen again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, notice

if TYPE_CHECKING:
    from memgraph.model.results.learning import CompressionResult


@click.command(cls=Command)
@pass_settings
def compress(settings: Settings) -> None:
    """Compress now, and collect what has faded; `ingest` and every tenth build do it by themselves."""
    with opened(settings) as memory:
        result = memory.maintenance.compress()
    emit(settings, result, told(result))
    if result.notice:
        notice(result.notice)


def told(result: CompressionResult) -> list[str]:
    """Return what a compression did, in words."""
    made = [
        (result.compressed, "generalisation made", "generalisations made"),
        (result.updated, "brought up", "brought up"),
        (result.superseded, "replaced", "replaced"),
        (result.retired, "taken back", "taken back"),
    ]
    said = ", ".join(count(many, one, several) for many, one, several in made if many)
    lines = [f"{said[:1].upper()}{said[1:]}." if said else "Nothing to generalise that is not generalised already."]
    if result.archived or result.deleted:
        lines.append(f"Faded: {result.archived:,} archived, {result.deleted:,} deleted.")
    return lines
