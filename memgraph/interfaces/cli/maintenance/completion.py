"""``completion``: print the script that lets a shell complete commands."""

from __future__ import annotations

import click

from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit

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
