"""``recall``: the text to put before a prompt, and nothing else, on stdout."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from memgraph.errors import InvalidInputError
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, notice, stderr_line, without_vectors
from memgraph.interfaces.cli.base.projects import hint_at_projects

if TYPE_CHECKING:
    from memgraph.model.results.context import ContextFormat
    from memgraph.model.results.retrieval import RetrievalResult

FORMATS = ("prefix", "sections", "delimited", "context")


@click.command(cls=ReadingCommand)
@click.argument("task")
@click.option(
    "--agent", metavar="NAME", default="agent", show_default=True, help="Who asks; recorded, filters nothing."
)
@click.option("--project", metavar="NAME", help="Only this project's memories and those of none.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="prefix",
    show_default=True,
    help="A list; Markdown sections; each memory in tags; JSON of what to build on, to avoid and to do.",
)
@click.option("--explain", is_flag=True, help="Say on stderr how each memory was scored.")
@pass_settings
def recall(settings: Settings, task: str, agent: str, project: str | None, form: ContextFormat, explain: bool) -> None:
    """Print what a task is to be given, exactly; notices go to stderr. With --json all of it, the text as `formatted`."""
    if task == "-":
        task = standard_input("say in short what is to be done").strip()  # what echo adds is not part of it
    if not task.strip():
        raise InvalidInputError("is empty: say in short what is to be done", field="task", value=task)
    with opened(settings) as memory:
        result = memory.recall(task, agent=agent, project=project)
        hint_at_projects(memory, project)
    if result.notice:
        notice(result.notice)
    if form == "prefix":
        _tell_contradictions(result)
    text = _formatted(result, form)
    if settings.as_json:
        document = result.model_dump(mode="json", exclude={"memories"})
        document["memories"] = [without_vectors(found) for found in result.memories]
        emit_json({**document, "formatted": text})
    elif text:
        # on a terminal the shell's prompt needs a line of its own; a hook gets the text as it is
        click.echo(text, nl=sys.stdout.isatty())
    if not settings.as_json and not result.memories and not result.notice:
        notice("nothing is remembered that helps with this task")
    if result.memories and result.certainty == "none":
        notice("I don't think we've tried this before: these memories are merely the nearest")
    if explain:
        _explain(result)


def _tell_contradictions(result: RetrievalResult) -> None:
    """Say which of the memories contradict each other: the list has no room for it."""
    from memgraph.text.cutting import preview

    told = {memory.id: preview(memory.content) for memory in result.memories}
    for one in result.contradictions:
        notice(f"'{told[one.newer_id]}' contradicts the older '{told[one.older_id]}'")


def _formatted(result: RetrievalResult, form: ContextFormat) -> str:
    from memgraph.retrieval.context.formats import format_context_for_prompt

    return format_context_for_prompt(result, format=form)


def _explain(result: RetrievalResult) -> None:
    """Print how sure the recall is, what each stage did, and each memory's score with all its terms that are not zero."""
    certainty = f"certainty {result.certainty} ({result.certainty_score:.2f})"
    versions = [f"{name} {version}" for name, version in result.versions.items()]
    stderr_line(", ".join([f"query {result.query_id}", f"{result.total_tokens_used} tokens", certainty, *versions]))
    for report in result.stages:
        counts = ", ".join(f"{name} {number:,}" for name, number in report.counts.items())
        click.echo(f"  {report.stage}: {counts}", err=True)
    for scored in result.explanations:
        fields = scored.model_dump(exclude={"score", "path"})
        terms = [f"{name} {value:.3f}" for name, value in fields.items() if isinstance(value, float) and value]
        path = ", ".join(f"{hop.memory_id} over {hop.relation}" for hop in scored.path)
        told = [f"{scored.memory_id}  {scored.score:.3f} =", *terms, *([f"from {path}"] if path else [])]
        click.echo("  ".join(told), err=True)
