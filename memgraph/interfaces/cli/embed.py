"""``embed``: give memories the vectors that they await."""

from __future__ import annotations

import click

from memgraph.interfaces.cli.group import Refused
from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.output import count, emit, emit_json, progress


@click.command(cls=Command)
@pass_settings
def embed(settings: Settings) -> None:
    """Embed what has no vector yet; stopped at any moment, it goes on where it was."""
    with opened(settings) as memory:
        waiting = memory.store.awaiting_vectors()
        with progress(settings, "embedding") as bar:
            embedded = memory.store.embed_awaiting(progress=bar)
        left = memory.store.awaiting_vectors()
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
