"""``completion``: the script that lets a shell complete commands; and names that it completes without opening a store, which takes most of a second."""

from __future__ import annotations

import click

from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit

RELATIONS = ("CONTRADICTS", "DERIVED_FROM", "ELABORATES", "EXAMPLE_OF", "RELATED_TO", "SUPERSEDES", "SUPPORTS")
"""The relations that a user can link with, repeated here so that completing one does not import the model."""


def query_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """Return the names of the named queries that begin like this."""
    from memgraph.assets import texts

    return [name for name in texts("queries", ".cypher") if name.startswith(incomplete)]


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the topics of the documentation that begin like this."""
    from memgraph.assets import texts

    return [name for name in texts("docs", ".md") if name.startswith(incomplete)]


def relations(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the relations that begin like this, in any case."""
    return [name for name in RELATIONS if name.startswith(incomplete.upper())]


SHELLS = ("bash", "zsh", "fish")
_NAME = "memgraph"


@click.command(cls=Command)
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(SHELLS))
@click.pass_context
@pass_settings
def completion(settings: Settings, ctx: click.Context, shell: str) -> None:
    """Print the script; the shell's start-up file evaluates it: eval "$(memgraph completion bash)"."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # click has all three
        raise click.BadParameter(f"{shell} is not supported")
    script = kind(ctx.find_root().command, {}, _NAME, f"_{_NAME.upper()}_COMPLETE")
    # not `source()`, which starts bash to ask for its version
    text = (script.source_template % script.source_vars()).strip("\n")
    emit(settings, {"shell": shell, "script": text}, text)
