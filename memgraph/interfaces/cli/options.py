"""Options that every command takes, before or after its name: ``--home``, ``--json``, ``--verbose``, ``--version``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click


@dataclass(slots=True)
class Settings:
    """What was asked of every command.

    Attributes
    ----------
    home : str or None
        The store's directory if it was named on the command line.
    as_json : bool
        One JSON document on standard output instead of text.
    verbosity : int
        How often ``-v`` was given.
    """

    home: str | None = None
    as_json: bool = False
    verbosity: int = 0


pass_settings = click.make_pass_decorator(Settings, ensure=True)


def shared_options() -> list[click.Option]:
    """Return new options, for the group or for one command."""
    return [
        click.Option(
            ["--home"],
            metavar="DIR",
            expose_value=False,
            callback=_home,
            help="The store's directory (else MEMGRAPH_HOME, else ~/.memgraph).",
        ),
        click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_json, help="One JSON document on standard output."
        ),
        click.Option(
            ["--verbose", "-v"],
            count=True,
            expose_value=False,
            callback=_verbose,
            help="Log on standard error what takes time; -vv: every step (or MEMGRAPH_LOG).",
        ),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        ),
    ]


class Command(click.Command):
    """A command with the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


class Subgroup(click.Group):
    """A group within the group; it and its commands have the shared options, too."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


def _home(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        raise click.BadParameter("must name a directory", ctx=ctx, param=param)
    ctx.ensure_object(Settings).home = value


def _json(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
    if value:
        ctx.ensure_object(Settings).as_json = True


def _verbose(ctx: click.Context, param: click.Parameter, value: int) -> None:  # noqa: ARG001 - click's signature
    if value:
        ctx.ensure_object(Settings).verbosity += value


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
    if value and not ctx.resilient_parsing:
        click.echo(f"memgraph {installed_version()}")
        ctx.exit()


def installed_version(package: str = "memgraph-kuzu") -> str:
    """Return a package's installed version, or a word for its absence."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "(source)" if package == "memgraph-kuzu" else "(missing)"
