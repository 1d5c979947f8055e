"""``rebuild``, ``verify``, ``format-age``."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from memgraph.errors import InvalidInputError
from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.output import count, emit, progress
from memgraph.model.timestamps import age, to_iso


@click.command(cls=Command)
@pass_settings
def rebuild(settings: Settings) -> None:
    """Replay the journal into a new graph and index."""
    with opened(settings) as memory:
        with progress(settings, "replaying") as bar:
            memory.store.rebuild(bar)
        total, digest = memory.commands.stats().total, memory.store.digest()
    told = f"Rebuilt graph and index from the journal: {count(total, 'memory', 'memories')}."
    emit(settings, {"memories": total, "digest": digest}, told)


@click.command(cls=Command)
@pass_settings
def verify(settings: Settings) -> None:
    """Check the journal from its first event, and graph and vectors against it."""
    with opened(settings) as memory:
        with progress(settings, "verifying") as bar:
            events = memory.store.verify(bar)
        digest = memory.store.digest()
    emit(
        settings, {"events": events, "digest": digest}, f"Verified {count(events, 'event')}, the vectors and the graph."
    )


@click.command("format-age", cls=Command)
@click.argument("time")
@pass_settings
def format_age(settings: Settings, time: str) -> None:
    """Print an age such as ``3 days ago``."""
    try:
        told = age(to_iso(time), to_iso(datetime.now(UTC)))
    except ValueError:
        raise InvalidInputError("is not an ISO 8601 time", field="TIME", value=time) from None
    emit(settings, {"time": time, "age": told}, told)
