"""A project's name that was mistyped: what there is instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.interfaces.cli.base.output import notice

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

_SHOWN = 8


def hint_at_projects(memory: MemGraph, project: str | None) -> None:
    """Say which projects there are, if one was named that has no memory."""
    is_known(memory, project)


def is_known(memory: MemGraph, project: str | None) -> bool:
    """Tell whether a project has memories, or none was named; say which ones there are, if it has not."""
    if project is None:
        return True
    from memgraph.retrieval.scope import projects_of

    with memory.store.reader.frozen():
        known = projects_of(memory.store.reader.index)
    if project in known:
        return True
    more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
    there = f"there are: {', '.join(known[:_SHOWN])}{more}" if known else "no memory has a project"
    notice(f"no memory is of project {project!r}; {there}")
    return False
