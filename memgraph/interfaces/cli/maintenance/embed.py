"""``embed``: give memories the vectors that they await, or make damaged ones again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, emit_json, progress

if TYPE_CHECKING:
    from memgraph.facade import MemGraph


@click.command(cls=Command)
@click.option("--repair", is_flag=True, help="Make vectors again that are damaged or missing in their file.")
@pass_settings
def embed(settings: Settings, repair: bool) -> None:
    """Embed what has no vector yet; stopped at any moment, it goes on where it was."""
    with opened(settings) as memory:
        if repair:
            _repair(settings, memory)
        else:
            _embed(settings, memory)


def _embed(settings: Settings, memory: MemGraph) -> None:
    waiting = memory.store.awaiting_vectors()
    with progress(settings, "embedding") as bar:
        embedded = memory.store.embed_awaiting(progress=bar)
    left = memory.store.awaiting_vectors()
    memory.store.damaged_vectors()  # a notice tells of them
    document = {"embedded": embedded, "awaiting": left}
    if not waiting:
        emit(settings, document, "Nothing awaits a vector.")
    elif not embedded and left:
        if settings.as_json:
            emit_json(document)
        raise Refused(f"none of them could be embedded; left without a vector: {left:,}")
    else:
        told = f"Embedded {count(embedded, 'memory', 'memories')}"
        emit(settings, document, f"{told}; left without a vector: {left:,}." if left else f"{told}.")


def _repair(settings: Settings, memory: MemGraph) -> None:
    with progress(settings, "repairing") as bar:
        result = memory.store.repair_vectors(progress=bar)
    compared = f"Compared {count(result.checked, 'vector')} with the journal"
    lines = [f"{compared}: {result.damaged:,} damaged or missing." if result.damaged else f"{compared}: all are sound."]
    if result.restored:
        lines.append(f"  {count(result.restored, 'vector')} made again as before")
    if result.replaced:
        lines.append(
            f"  {count(result.replaced, 'memory', 'memories')} given a new vector: the model does not make the old one"
        )
    if result.lost:
        lines.append(f"  {count(result.lost, 'vector')} that no memory uses recorded as lost")
    if result.failed:
        lines.append(f"  {count(result.failed, 'memory', 'memories')} left: the model fails on the text")
    emit(settings, result, lines)
    if result.failed and not result.restored + result.replaced:
        raise Refused("none of them could be embedded")
