"""``recall``: print the text to put before a prompt, and nothing else, on stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import InvalidInputError
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.lookup import looked_up, with_worker
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, notice, stderr_line
from memgraph.interfaces.cli.base.scoping import asked_in_tasks, scoped

if TYPE_CHECKING:
    from memgraph.model.results.retrieval import ContextFormat

_COUNT = click.IntRange(min=0)
FORMATS = ("notes", "prefix", "sections", "delimited", "context")


def _floor(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Refuse what is no floor as wrong usage."""
    if value is None:  # a command that asks the worker imports none of what checks it
        return None
    from memgraph.model.base import Floor, checked

    try:
        checked(Floor, value, "floor")
    except InvalidInputError as error:
        raise click.BadParameter(error.problem, ctx=ctx, param=param) from None
    return value


@click.command(cls=ReadingCommand)
@click.argument("task")
@click.option(
    "--also",
    metavar="PHRASE",
    multiple=True,
    help="A phrase in the words that past messages would have used, searched for with the task; up to five.",
)
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
@click.option(
    "--rules",
    type=click.Choice(("all", "matching", "none")),
    default="all",
    help="Standing rules to print: all, those that match the task, or none but the pinned constraints.  [default: all]",
)
@scoped
@asked_in_tasks
@with_worker
@pass_settings
def recall(
    settings: Settings,
    /,
    task: str,
    also: tuple[str, ...],
    form: ContextFormat,
    all_tasks: bool,
    task_only: bool,
    asking_session: str | None,
    worker: bool,
    **given: Any,
) -> None:
    """Print exactly the text for the task's prompt; notices go to stderr. --json prints the full result, the text as `formatted`."""
    if task == "-":
        task = standard_input("describe the task briefly").strip()  # without the newline that echo adds
    if not task.strip():
        raise InvalidInputError("is empty: describe the task briefly", field="task", value=task)
    scope = {name: given.pop(name) for name in ("session", "task_id", "tiers", "min_trust")}
    found = looked_up(
        settings,
        "recall",
        {
            "task": task,
            "also": list(also),
            "agent": settings.agent,
            "justification": settings.justification,
            "form": form,
            "as_json": settings.as_json,
            "tasks": {"all_tasks": all_tasks, "task_only": task_only, "asking_session": asking_session},
            "scope": scope,
            **given,
        },
        uses_worker=worker,
    )
    text, is_empty = found["formatted"], found["is_empty"]
    for line in (found["notice"], *found["contradictions"]):
        if line:
            notice(line)
    if settings.as_json:
        emit_json(found["document"])
    elif text:
        click.echo(text)
    is_said = form == "notes" and text != ""
    if not settings.as_json and is_empty and not found["notice"] and not is_said:
        notice("no memory is relevant to this task")
    if found["certainty"] == "none" and not is_said and found["has_guesses"]:
        notice("the certainty is none: these memories are only the most similar ones")
    for number, line in enumerate(found["explanation"]):
        if number:
            click.echo(line, err=True)
        else:
            stderr_line(line)
