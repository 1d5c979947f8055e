"""``prompt``: print what of memory goes into the prompt of a session, in sections."""

from __future__ import annotations

from collections.abc import Sequence

import click

from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.lookup import looked_up, with_worker
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, of_session, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, notice

_SECTIONS = ("constraints", "long_term", "recent_notes", "chat_context", "chat_memory", "working_memory")


@click.command(cls=ReadingCommand)
@click.argument("text", metavar="[TASK]", default="")
@click.option("--project", metavar="NAME", help="Its memories and those of none.  [default: the task's]")
@click.option("--task", "task_id", metavar="ID", help="Also memories of this task.  [default: the session's]")
@of_session
@click.option("--section", "sections", type=click.Choice(_SECTIONS), multiple=True, help="Only this one; repeatable.")
@with_worker
@pass_settings
def prompt(
    settings: Settings,
    /,
    text: str,
    project: str | None,
    task_id: str | None,
    session: str,
    sections: Sequence[str],
    worker: bool,
) -> None:
    """Print exactly the text for the prompt: what is known of TASK, or without it of the project; notices go to stderr."""
    if text == "-":
        text = standard_input("describe the task briefly").strip()
    found = looked_up(
        settings,
        "prompt",
        {
            "text": text,
            "session": session,
            "task_id": task_id,
            "agent": settings.agent,
            "justification": settings.justification,
            "project": project,
            "sections": list(sections),
        },
        uses_worker=worker,
    )["document"]
    if found["notice"]:
        notice(found["notice"])
    if settings.as_json:
        emit_json(found)
    elif found["text"]:
        click.echo(found["text"])
