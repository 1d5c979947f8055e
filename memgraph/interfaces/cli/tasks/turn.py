"""``turn``: which task a message belongs to, and what to ask before it is answered."""

from __future__ import annotations

import click

from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, of_session, pass_settings
from memgraph.interfaces.cli.base.output import emit

_TOO_LONG = "its beginning decides, so pass that"


@click.command(cls=Command)
@click.argument("message")
@of_session
@click.option("--asked", metavar="TEXT", help="What the user was asked instead of what the last turn asked.")
@click.option("--project", metavar="NAME", help="Only tasks of this project and of none.")
@pass_settings
def turn(settings: Settings, message: str, session: str, asked: str | None, project: str | None) -> None:
    """Print the task that MESSAGE belongs to, and what to ask; '-' reads standard input, up to 1,000,000 characters."""
    from memgraph.tasks.turns import turn_lines

    text = standard_input(_TOO_LONG) if message == "-" else message
    with opened(settings) as memory:
        found = memory.tasks.begin_turn(session, text, asked=asked, project=project)
    emit(settings, found, turn_lines(found))
