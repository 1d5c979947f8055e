"""``search``: the memories that are nearest to a text, of whatever type. Nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit_json, listing, notice, without_vectors
from memgraph.interfaces.cli.base.projects import hint_at_projects

if TYPE_CHECKING:
    from memgraph.model.results.retrieval import ScoredMemory


@click.command(cls=ReadingCommand)
@click.argument("text")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="Most memories to find.")
@click.option("--project", metavar="NAME", help="Only this project's memories and those of none.")
@click.option("--domain", metavar="NAME", help="Only this domain's memories, general ones and those of none.")
@click.option("--include-archived", is_flag=True, help="Also what was archived.")
@pass_settings
def search(
    settings: Settings, text: str, limit: int, project: str | None, domain: str | None, include_archived: bool
) -> None:
    """Print what is found, best first."""
    if text == "-":
        text = standard_input("search for less").strip()
    with opened(settings) as memory:
        found = memory.search_memories(
            text, limit=limit, project_id=project, domain=domain, include_archived=include_archived
        )
        hint_at_projects(memory, project)
    if settings.as_json:
        emit_json([{**_beside(one), "memory": without_vectors(one.memory)} for one in found])
        return
    if not found and limit:
        notice("nothing is remembered that is like this")
    listing([(one.memory.content, (one.memory.id, one.memory.type, *_told(one))) for one in found])


def _beside(found: ScoredMemory) -> dict[str, Any]:
    """Return what is said of a memory that was found: its score, and how it was."""
    fields: dict[str, Any] = found.model_dump(mode="json", exclude={"memory"})
    return fields


def _told(found: ScoredMemory) -> list[str]:
    return [f"{value:.3f}" if isinstance(value, float) else str(value) for value in _beside(found).values() if value]
