"""Notices about project names that no memory has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.interfaces.cli.base.output import notice

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

_SHOWN = 8


def hint_at_projects(memory: MemGraph, project: str | None, *, agent: str | None = None) -> None:
    """Print the known projects if `project` has no memory; for an agent, those of memories that it may have."""
    is_known(memory, project, agent=agent)


def is_known(memory: MemGraph, project: str | None, *, agent: str | None = None) -> bool:
    """Return whether `project` is None or has memories; print the known projects if it has none."""
    if project is None:
        return True
    from memgraph.privacy.access import OWNER
    from memgraph.store.access.permitted import permitted
    from memgraph.store.access.scope import projects_of

    reader = memory.store.reader
    access = OWNER if agent is None else memory.store.access_of(agent)
    with reader.frozen():
        known = projects_of(reader.index, permitted(reader, access, "search"))
    if project in known:
        return True
    more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
    hint = f"known projects: {', '.join(known[:_SHOWN])}{more}" if known else "no memory has a project"
    notice(f"no memory belongs to project {project!r}; {hint}")
    return False
