"""``rebuild``, ``verify``, ``format-age``."""

from __future__ import annotations

import click

from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.output import count, emit, progress


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
    with opened(settings) as memory:
        age = memory.commands.format_age(time)
    emit(settings, {"time": time, "age": age}, age)
