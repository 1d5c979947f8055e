"""``search``: list the memories of any type that are most similar to a text. The search is not recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, listing, notice, without_vectors
from memgraph.interfaces.cli.base.projects import hint_at_projects
from memgraph.interfaces.cli.base.scoping import all_tasks, scope_given, scoped
from memgraph.model.agent_input import UNNAMED

if TYPE_CHECKING:
    from memgraph.model.results.retrieval import ScoredMemory


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
@all_tasks
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
    **scope: Any,
) -> None:
    """Print the memories found, best first."""
    if text == "-":
        text = standard_input("search for a shorter text").strip()
    agent = settings.agent or UNNAMED
    with opened(settings, asks=True) as memory:
        found = memory.search_memories(
            text,
            agent=agent,
            justification=settings.justification,
            limit=limit,
            project_id=project,
            domain=domain,
            include_archived=include_archived,
            all_tasks=all_tasks,
            **scope_given(**scope),
        )
        hint_at_projects(memory, project, agent=agent)
    if settings.as_json:
        emit_json([{**_details(one), "memory": without_vectors(one.memory)} for one in found])
        return
    if not found and limit:
        notice("no memory is similar to this text")
    listing([(one.memory.content, (one.memory.id, one.memory.type, *_cells(one))) for one in found])


def _details(found: ScoredMemory) -> dict[str, Any]:
    """Return all fields of a result except the memory: its score and how it was found."""
    fields: dict[str, Any] = found.model_dump(mode="json", exclude={"memory"})
    return fields


def _cells(found: ScoredMemory) -> list[str]:
    mark = [] if found.has_evidence else ["only similar"]
    return [f"{found.score:.3f}", found.match_type, *mark]
