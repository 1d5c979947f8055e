"""``recall``: print the text to put before a prompt, and nothing else, on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import InvalidInputError
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, notice, stderr_line, without_vectors
from memgraph.interfaces.cli.base.projects import hint_at_projects
from memgraph.interfaces.cli.base.scoping import all_tasks, scope_given, scoped
from memgraph.model.agent_input import UNNAMED

if TYPE_CHECKING:
    from memgraph.model.results.context import ContextFormat, WhenNothing
    from memgraph.model.results.retrieval import RetrievalResult

_COUNT = click.IntRange(min=0)
FORMATS = ("notes", "prefix", "sections", "delimited", "context")


def _floor(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse what is no floor as wrong usage."""
    from memgraph.model.base import Floor, checked

    try:
        checked(Floor | None, value, "floor")
    except InvalidInputError as error:
        raise click.BadParameter(error.problem, ctx=ctx, param=param) from None
    return value


@click.command(cls=ReadingCommand)
@click.argument("task")
@click.option("--project", metavar="NAME", help="Only memories of this project and of no project.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="notes",
    show_default=True,
    help="Notes by use; a list by type; Markdown sections; each memory in tags; JSON with what to build on, avoid and do.",
)
@click.option(
    "--when-nothing",
    type=click.Choice(("say", "empty")),
    help="What notes print if nothing concerns the task (default: the setting recall_when_nothing).",
)
@click.option("--explain", is_flag=True, help="Print on stderr how each memory was scored.")
@click.option("--max-tokens", type=_COUNT, help="Maximum number of tokens of content.")
@click.option("--episodic", "max_episodic", type=_COUNT, help="Maximum number of episodic memories.")
@click.option("--semantic", "max_semantic", type=_COUNT, help="Maximum number of semantic memories.")
@click.option("--procedural", "max_procedural", type=_COUNT, help="Maximum number of procedural memories.")
@click.option(
    "--floor",
    metavar="FLOOR",
    callback=_floor,
    help="Evidence that a memory needs: auto, off, or a number from 0 to 1 (default: the setting).",
)
@scoped
@all_tasks
@pass_settings
def recall(
    settings: Settings,
    /,
    task: str,
    project: str | None,
    form: ContextFormat,
    when_nothing: WhenNothing | None,
    explain: bool,
    all_tasks: bool,
    max_tokens: int | None,
    max_episodic: int | None,
    max_semantic: int | None,
    max_procedural: int | None,
    floor: str | None,
    **scope: Any,
) -> None:
    """Print exactly the text for the task's prompt; notices go to stderr. --json prints the full result, the text as `formatted`."""
    if task == "-":
        task = standard_input("describe the task briefly").strip()  # without the newline that echo adds
    if not task.strip():
        raise InvalidInputError("is empty: describe the task briefly", field="task", value=task)
    agent = settings.agent or UNNAMED
    with opened(settings, asks=True) as memory:
        result = memory.recall(
            task,
            agent=agent,
            justification=settings.justification,
            project=project,
            all_tasks=all_tasks,
            max_tokens=max_tokens,
            max_episodic=max_episodic,
            max_semantic=max_semantic,
            max_procedural=max_procedural,
            floor=floor,
            **scope_given(**scope),
        )
        hint_at_projects(memory, project, agent=agent)
        text = memory.format_context_for_prompt(result, format=form, when_nothing=when_nothing)
    if result.notice:
        notice(result.notice)
    if form == "prefix":
        _print_contradictions(result)
    if settings.as_json:
        document = result.model_dump(mode="json", exclude={"memories"})
        document["memories"] = [without_vectors(found) for found in result.memories]
        emit_json({**document, "formatted": text})
    elif text:
        click.echo(text)
    is_said = form == "notes" and text != ""
    if not settings.as_json and not result.memories and not result.notice and not is_said:
        notice("no memory is relevant to this task")
    if result.certainty == "none" and not is_said and any("constraint" not in one.tags for one in result.memories):
        notice("the certainty is none: these memories are only the most similar ones")
    if explain:
        _explain(result)


def _print_contradictions(result: RetrievalResult) -> None:
    """Print which memories contradict each other: the ``prefix`` format does not show it."""
    from memgraph.text.cutting import preview

    content_of = {memory.id: preview(memory.content) for memory in result.memories}
    for one in result.contradictions:
        notice(f"'{content_of[one.newer_id]}' contradicts the older '{content_of[one.older_id]}'")


def _explain(result: RetrievalResult) -> None:
    """Print the recall's certainty, each stage's counts, and each memory's score with its non-zero terms."""
    certainty = f"certainty {result.certainty} ({result.certainty_score:.2f})"
    versions = [f"{name} {version}" for name, version in result.versions.items()]
    stderr_line(", ".join([f"query {result.query_id}", f"{result.total_tokens_used} tokens", certainty, *versions]))
    for report in result.stages:
        counts = ", ".join(f"{name} {number:,}" for name, number in report.counts.items())
        click.echo(f"  {report.stage}: {counts}", err=True)
    for scored in result.explanations:
        fields = scored.model_dump(exclude={"score", "path"})
        terms = [f"{name} {value:.3f}" for name, value in fields.items() if isinstance(value, float) and value]
        path = ", ".join(f"{hop.memory_id} via {hop.relation}" for hop in scored.path)
        parts = [f"{scored.memory_id}  {scored.score:.3f} =", *terms, *([f"from {path}"] if path else [])]
        click.echo("  ".join(parts), err=True)
