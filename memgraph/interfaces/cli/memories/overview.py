"""What ``memgraph`` alone prints: what is in the store, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.base.output import count, emit, pairs, plain

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

_PROJECTS_SHOWN = 5


def overview(settings: Settings) -> None:
    """Print the store's place, its memories and projects, the last learning, and the next commands. Creates nothing."""
    from memgraph.config import home_of
    from memgraph.journal.opening import is_store

    home, server = home_of(settings.home)
    found: dict[str, Any] = {"store": str(server or home), "exists": is_store(home, server), "memories": 0}
    if found["exists"]:
        with opened(settings) as memory:
            found |= _content(memory)
    following = _next(found)
    document = {**found, "next": [{"command": command, "purpose": purpose} for command, purpose in following]}
    emit(settings, document, [*_lines(found), "", "Next:", *pairs(following, indent="  ")])


def _content(memory: MemGraph) -> dict[str, Any]:
    """Return what the index knows. The graph is not opened, which may take long."""
    import numpy as np

    from memgraph.index.index import scope_name

    counts = memory.commands.stats()
    with memory.store.reader.frozen():
        index = memory.store.reader.index
        live = index.memories() & ~index.column("is_archived")
        codes, numbers = np.unique(index.column("project")[live], return_counts=True)
        learned = index.column("created_days")[live]
    prefix = scope_name("project", "")
    projects = {
        index.scopes.names[code].removeprefix(prefix): number
        for code, number in zip(codes.tolist(), numbers.tolist(), strict=True)
        if code >= 0
    }
    return {
        "memories": counts.total,
        "by_type": counts.by_type,
        "projects": dict(sorted(projects.items(), key=lambda one: (-one[1], one[0]))),
        "last_learned_at": _iso(float(learned.max())) if len(learned) else None,
        "awaiting_vectors": memory.store.awaiting_vectors(),
    }


def _iso(days: float) -> str:
    from datetime import UTC, datetime

    from memgraph.model.timestamps import to_iso

    return to_iso(datetime.fromtimestamp(days * 86_400, UTC))


def _lines(found: dict[str, Any]) -> list[str]:
    from datetime import UTC, datetime

    from memgraph.model.timestamps import age, to_iso

    place = plain(found["store"])
    if not found["exists"]:
        return [f"There is no store at {place} yet; the first command that learns creates it."]
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in found["by_type"].items() if number)
    lines = [
        f"store           {place}",
        f"memories        {found['memories']:,}{f' ({kinds})' if kinds else ''}",
    ]
    if projects := found["projects"]:
        shown = [f"{plain(name)} ({number:,})" for name, number in list(projects.items())[:_PROJECTS_SHOWN]]
        more = f" and {len(projects) - _PROJECTS_SHOWN:,} more" if len(projects) > _PROJECTS_SHOWN else ""
        lines.append(f"projects        {', '.join(shown)}{more}")
    learned = found["last_learned_at"]
    when = f"{age(learned, to_iso(datetime.now(UTC)))} ({learned[:10]})" if learned else "never"
    lines.append(f"last learned    {when}")
    if waiting := found["awaiting_vectors"]:
        lines.append(f"without vector  {count(waiting, 'memory', 'memories')}")
    return lines


def _next(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the commands that help most now, with their purpose."""
    if not found["memories"]:
        return [
            ("memgraph demo", "try it on the repository around you, in a temporary store"),
            ("memgraph ingest git .", "learn from a repository's history"),
            ('memgraph remember "TEXT"', "store something yourself"),
            ("memgraph --help", "list all commands"),
        ]
    embed = [("memgraph embed", "compute the missing vectors")] if found["awaiting_vectors"] else []
    return [
        *embed,
        ('memgraph recall "TASK"', "the text to put before a prompt"),
        ("memgraph list --sort-by created", "the newest memories"),
        ("memgraph sleep", "merge, generalise and learn from what came in"),
        ("memgraph --help", "list all commands"),
    ]
