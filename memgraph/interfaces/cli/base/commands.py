"""`LazyGroup`, a command group that imports a command when it runs; `Suggesting`, which answers a mistyped name; and `Refused`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from memgraph.interfaces.cli.base.exit_codes import FAILED

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Group = Literal["use", "look", "correct", "learn", "store"]
GROUPS: dict[Group, str] = {
    "use": "Use: remember, and recall for a task",
    "look": "Look at what is stored",
    "correct": "Correct what is wrong or out of date",
    "learn": "Learn from sources and from what is stored",
    "store": "Look after the store",
}
"""The headings of the help, in order."""
OTHER_WORDS = {
    **dict.fromkeys(("add", "save", "note", "store"), "remember"),
    **dict.fromkeys(("find", "grep", "lookup"), "search"),
    **dict.fromkeys(("context", "retrieve"), "recall"),
    **dict.fromkeys(("ls", "all", "memories"), "list"),
    **dict.fromkeys(("get", "cat", "view", "open"), "show"),
    **dict.fromkeys(("status", "info", "count"), "stats"),
    **dict.fromkeys(("rm", "remove", "hide"), "forget"),
    **dict.fromkeys(("learn", "read", "load"), "ingest"),
    **dict.fromkeys(("dump", "save-all"), "export"),
    **dict.fromkeys(("check", "fsck", "validate"), "verify"),
    **dict.fromkeys(("diagnose", "health"), "doctor"),
    **dict.fromkeys(("settings", "configure", "init"), "config"),
    **dict.fromkeys(("man", "manual", "topics"), "docs"),
    **dict.fromkeys(("compaction", "vacuum", "gc"), "compact"),
    **dict.fromkeys(("consolidate", "dream"), "sleep"),
    **dict.fromkeys(("cypher", "sql"), "query"),
    **dict.fromkeys(("page", "charts", "plot"), "viz"),
    **dict.fromkeys(("install", "setup"), "connect"),
    **dict.fromkeys(("uninstall",), "disconnect"),
    **dict.fromkeys(("server", "http", "api", "rest"), "serve"),
    **dict.fromkeys(("tokens", "login"), "token"),
    **dict.fromkeys(("completions", "autocomplete"), "completion"),
}
"""Words that other tools use for a command. They are suggested, not run: some change the store."""


class Entry(NamedTuple):
    """Where a command is defined: its ``module`` in this package, the command object's name in it, its help and its group in the help."""

    module: str
    attribute: str
    help: str
    group: Group


class Refused(click.ClickException):
    """A command that failed or was refused: one line on stderr, exit code 1."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        """Print the reason as one line."""
        click.echo(f"memgraph: {' '.join(self.message.split())}", file=file, err=file is None)


class Suggesting(click.Group):
    """A group that answers an unknown command with similar names, or with its own word for it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the named command; suggest names if there is none."""
        names, given = self.list_commands(ctx), args[0]
        if given not in names and not given.startswith("-"):
            meant = OTHER_WORDS.get(given.lower())
            near = [meant] if meant in names else get_close_matches(given.lower(), names, n=3)
            if near:
                ctx.fail(f"No such command {given!r}. Did you mean {' or '.join(map(str, near))}?")
        return super().resolve_command(ctx, args)


class LazyGroup(Suggesting):
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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names in the table without importing their commands, and the options."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=entry.help) for name, entry in self._table.items() if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands by group, without importing them."""
        by_group = {
            group: [(name, entry.help) for name, entry in self._table.items() if entry.group == group]
            for group in GROUPS
        }
        shown = {GROUPS[group]: rows for group, rows in by_group.items() if rows}
        width = max(len(name) for name in self._table)
        for heading, rows in shown.items():
            with formatter.section(heading if len(shown) > 1 else "Commands"):
                formatter.write_dl([(name.ljust(width), help_) for name, help_ in rows])
