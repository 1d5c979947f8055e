"""`LazyGroup`, a command group that imports a command when it runs, and `Refused`, a failed command."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

import click

from memgraph.interfaces.cli.base.exit_codes import FAILED


class Entry(NamedTuple):
    """Where a command is defined: its ``module`` in this package, the command object's name in it, and its help."""

    module: str
    attribute: str
    help: str


class Refused(click.ClickException):
    """A command that failed or was refused: one line on stderr, exit code 1."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        """Print the reason as one line."""
        click.echo(f"memgraph: {' '.join(self.message.split())}", file=file, err=file is None)


class LazyGroup(click.Group):
    """A group that lists its commands in a table and imports a command when it runs."""

    def __init__(self, *args: Any, table: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the table's order."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command and set its help from the table."""
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(import_module(f"memgraph.interfaces.cli.{entry.module}"), entry.attribute)
        command.help = entry.help
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; suggest similar names if there is none."""
        near = get_close_matches(args[0], self._table, n=3) if args[0] not in self._table else []
        if near and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._table.items()])
