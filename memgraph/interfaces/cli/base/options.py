"""Options that every command takes, before or after its name: ``--home``, ``--json``, ``--verbose``, ``--no-pager``, ``--version``.

Commands that only read also take ``--as-of`` and ``--recorded``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Suggesting

if TYPE_CHECKING:
    from memgraph.ports import Embedder


@dataclass(slots=True)
class Settings:
    """The values of the shared options.

    Attributes
    ----------
    home : str or None
        The store's directory if the command line names it.
    as_json : bool
        One JSON document on standard output instead of text.
    verbosity : int
        How often ``-v`` was given.
    pages : bool
        On a terminal, what is longer than the screen goes through the pager.
    as_of : str or None
        A time: the store is read as it was then.
    is_recorded : bool
        As what had been recorded by that moment, not as what had happened.
    agent, justification : str or None
        The agent that asks, and why it needs sensitive memories.
    embedder : Embedder or None
        For who runs commands from Python: what embeds instead of the configured model.
    """

    home: str | None = None
    as_json: bool = False
    verbosity: int = 0
    pages: bool = True
    as_of: str | None = None
    is_recorded: bool = False
    agent: str | None = None
    justification: str | None = None
    embedder: Embedder | None = None


Callback = Callable[[click.Context, click.Parameter, Any], None]
OPTION_OF = {"when": "--as-of", "since": "--since", "until": "--until"}
"""The command-line options of the library's arguments, for error messages."""
WORD_OF = {
    "as_of": ("at", "moment"),
    "expires_at": ("until", "end"),
    "handoff_id": ("handoff_id", "handoff"),
    "item_id": ("item", "item"),
    "pin_id": ("id_", "pin"),
    "session_id": ("session", "session"),
    "target_id": ("other", "target"),
    "task_id": ("task_id", "task"),
    "ttl_s": ("duration", "time"),
}
"""Arguments of the library with the parameter of a command that states them, and the word where a command has no such option."""

TIERS = ("public", "sensitive", "private")
TRUST = ("user", "agent", "tool", "imported", "web")
"""Privacy tiers and trust classes, repeated here so that help imports only click."""

pass_settings = click.make_pass_decorator(Settings, ensure=True)
of_session = click.option(
    "--session", metavar="NAME", default="shell", envvar="MEMGRAPH_SESSION", show_default=True, help="The session."
)
with_reason = click.option("--reason", metavar="TEXT", help="Why; stored with the change.")


def shared_options() -> list[click.Option]:
    """Return new instances of the shared options, for a group or a command."""
    return [
        _option(
            "--home",
            metavar="DIR",
            callback=_home,
            help="The store's directory (default: MEMGRAPH_HOME, else ~/.memgraph).",
        ),
        _option("--json", is_flag=True, callback=_sets("as_json"), help="Print one JSON document on standard output."),
        _option(
            "--verbose",
            "-v",
            count=True,
            callback=_verbose,
            help="Log slow operations on standard error; -vv logs every step (see also MEMGRAPH_LOG).",
        ),
        _option(
            "--no-pager",
            is_flag=True,
            callback=_sets("pages", to=False),
            help="On a terminal, do not page what is longer than the screen (see also PAGER).",
        ),
        _option("--version", is_flag=True, is_eager=True, callback=_version, help="Show the version and exit."),
    ]


def past_options() -> list[click.Option]:
    """Return new instances of ``--as-of`` and ``--recorded``, for a command that only reads."""
    return [
        _option(
            "--as-of",
            metavar="WHEN",
            callback=_sets("as_of"),
            help="Read the store as it was at a time, such as 2024-06-01 (the end of that day, UTC).",
        ),
        _option(
            "--recorded",
            is_flag=True,
            callback=_sets("is_recorded"),
            help="With --as-of: read what had been recorded by then instead of what had happened.",
        ),
    ]


def agent_options() -> list[click.Option]:
    """Return new instances of ``--agent`` and ``--justification``."""
    return [
        _option(
            "--agent",
            metavar="NAME",
            callback=_sets("agent"),
            help="The agent that asks: only what it may have (see `memgraph docs privacy`).",
        ),
        _option(
            "--justification",
            metavar="TEXT",
            callback=_sets("justification"),
            help="Why that agent needs sensitive memories, in more than 20 characters.",
        ),
    ]


class Command(click.Command):
    """A command with the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


class ReadingCommand(Command):
    """A command that only reads, and so can read a past state of the store, and what an agent may have of it."""

    def __init__(self, *args: Any, params: Sequence[click.Parameter] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, params=[*(params or ()), *past_options(), *agent_options()], **kwargs)


class Subgroup(Suggesting):
    """A nested group; it and its commands have the shared options, too."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *shared_options()]


def _option(*names: str, callback: Callback, **given: Any) -> click.Option:
    """Return an option whose value the callback takes, so that commands have no parameter for it."""
    return click.Option(names, expose_value=False, callback=callback, **given)


def _sets(field: str, *, to: Any = None) -> Callback:
    """Return the callback that puts an option's value, or `to`, into a field of the settings if the option is given."""

    def put(ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ARG001 - click's signature
        if value is not None and value is not False:
            setattr(ctx.ensure_object(Settings), field, value if to is None else to)

    return put


def _home(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        raise click.BadParameter("must name a directory", ctx=ctx, param=param)
    ctx.ensure_object(Settings).home = value


def _verbose(ctx: click.Context, param: click.Parameter, value: int) -> None:  # noqa: ARG001 - click's signature
    if value:
        ctx.ensure_object(Settings).verbosity += value


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: ARG001 - click's signature
    if value and not ctx.resilient_parsing:
        click.echo(f"memgraph {installed_version()}")
        ctx.exit()


def installed_version(package: str = "memgraph-kuzu") -> str:
    """Return a package's installed version; ``(source)`` or ``(missing)`` if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "(source)" if package == "memgraph-kuzu" else "(missing)"
