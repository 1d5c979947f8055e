"""``search``: list the memories of any type that are most similar to a text. The search is not recorded."""

from __future__ import annotations

from typing import Any

import click

from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.lookup import looked_up, with_worker
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, listing, notice
from memgraph.interfaces.cli.base.scoping import asked_in_tasks, scoped


@click.command(cls=ReadingCommand)
@click.argument("text")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Maximum number of memories.")
@click.option("--project", metavar="NAME", help="Only memories of this project and of no project.")
@click.option(
    "--domain",
    "--context",
    "domain",
    metavar="NAME",
    help="Only memories of this domain, general ones and those of no domain.",
)
@click.option("--include-archived", is_flag=True, help="Include archived memories.")
@scoped
@asked_in_tasks
@with_worker
@pass_settings
def search(
    settings: Settings,
    /,
    text: str,
    limit: int,
    project: str | None,
    domain: str | None,
    include_archived: bool,
    all_tasks: bool,
    task_only: bool,
    asking_session: str | None,
    worker: bool,
    **scope: Any,
) -> None:
    """Print the memories found, best first."""
    if text == "-":
        text = standard_input("search for a shorter text").strip()
    found = looked_up(
        settings,
        "search",
        {
            "text": text,
            "agent": settings.agent,
            "justification": settings.justification,
            "limit": limit,
            "project": project,
            "domain": domain,
            "include_archived": include_archived,
            "as_json": settings.as_json,
            "tasks": {"all_tasks": all_tasks, "task_only": task_only, "asking_session": asking_session},
            "scope": scope,
        },
        uses_worker=worker,
    )
    if settings.as_json:
        emit_json(found["document"])
        return
    if not found["rows"] and limit:
        notice("no memory is similar to this text")
    listing(found["rows"])
