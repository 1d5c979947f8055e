"""``recall``: the text to put before a prompt, and nothing else, on stdout."""

from __future__ import annotations

import sys

import click

from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.output import emit_json, notice, without_vectors


@click.command(cls=Command)
@click.argument("task")
@click.option(
    "--agent", metavar="NAME", default="agent", show_default=True, help="Who asks; recorded, filters nothing."
)
@click.option("--project", metavar="NAME", help="Only this project's memories and those of none.")
@click.option("--explain", is_flag=True, help="Say on stderr how each memory was scored.")
@pass_settings
def recall(settings: Settings, task: str, agent: str, project: str | None, explain: bool) -> None:
    """Print the prefix for a task exactly; notices go to stderr."""
    with opened(settings) as memory:
        result = memory.recall(task, agent=agent, project=project)
    if result.notice:
        notice(result.notice)
    if settings.as_json:
        document = result.model_dump(mode="json", exclude={"memories"})
        emit_json({**document, "memories": [without_vectors(found) for found in result.memories]})
    elif result.injected_prompt_prefix:
        # on a terminal the shell's prompt needs a line of its own; a hook gets the text as it is
        click.echo(result.injected_prompt_prefix, nl=sys.stdout.isatty())
    elif not result.notice:
        notice("nothing is remembered that helps with this task")
    if explain:
        click.echo(f"query {result.query_id}, {result.total_tokens_used} tokens", err=True)
        for scored in result.explanations:
            terms = scored.model_dump(exclude={"memory_id", "score"})
            shown = "  ".join(f"{name} {value:.3f}" for name, value in terms.items() if value)
            click.echo(f"{scored.memory_id}  {scored.score:.3f} = {shown}", err=True)
