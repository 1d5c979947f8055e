"""``embed``: embed memories that have no vector, or recompute damaged vectors."""

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
@click.option("--repair", is_flag=True, help="Recompute vectors that are damaged or missing in their file.")
@pass_settings
def embed(settings: Settings, repair: bool) -> None:
    """Embed memories that have no vector; an interrupted run resumes where it stopped."""
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
    memory.store.damaged_vectors()  # logs a notice if there are any
    document = {"embedded": embedded, "awaiting": left}
    if not waiting:
        emit(settings, document, "Every memory has a vector.")
    elif not embedded and left:
        if settings.as_json:
            emit_json(document)
        raise Refused(f"no memory could be embedded; still without a vector: {left:,}")
    else:
        done = f"Embedded {count(embedded, 'memory', 'memories')}"
        emit(settings, document, f"{done}; still without a vector: {left:,}." if left else f"{done}.")


def _repair(settings: Settings, memory: MemGraph) -> None:
    with progress(settings, "repairing") as bar:
        result = memory.store.repair_vectors(progress=bar)
    compared = f"Compared {count(result.checked, 'vector')} with the journal"
    lines = [
        f"{compared}: {result.damaged:,} damaged or missing." if result.damaged else f"{compared}: all are intact."
    ]
    if result.restored:
        lines.append(f"  {count(result.restored, 'vector')} recomputed, identical to the original")
    if result.replaced:
        lines.append(
            f"  {count(result.replaced, 'memory', 'memories')} given a new vector: the model no longer computes the original one"
        )
    if result.lost:
        lines.append(f"  {count(result.lost, 'vector')} that no memory uses recorded as lost")
    if result.failed:
        lines.append(f"  {count(result.failed, 'memory', 'memories')} not repaired: the model fails on the text")
    emit(settings, result, lines)
    if result.failed and not result.restored + result.replaced:
        raise Refused("no memory could be embedded")
