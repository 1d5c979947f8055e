"""``viz export``: write the graph to a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress
from memgraph.interfaces.cli.viz.viz import scoped

if TYPE_CHECKING:
    from memgraph.viz.export import Graph

SUFFIXES = (".json", ".graphml", ".parquet")


@click.command(cls=ReadingCommand)
@click.argument("file")
@scoped
@click.option(
    "--include",
    multiple=True,
    type=click.Choice(["suppressed", "archived", "sensitive", "private", "records"]),
    help="Include memories in this state; repeatable.",
)
@click.option("--limit", type=click.IntRange(min=0), help="Maximum number of memories; the most relevant are kept.")
@pass_settings
def export(
    settings: Settings,
    file: str,
    project: str | None,
    since: str | None,
    until: str | None,
    include: tuple[str, ...],
    limit: int | None,
) -> None:
    """Write the memories that may be shown and the links between them, atomically."""
    from memgraph.store.purge.exports import note_exports
    from memgraph.viz.export import shown_graph
    from memgraph.viz.files import write_files

    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise click.UsageError(f"FILE must end in {', '.join(SUFFIXES)}: the suffix selects the format")
    with opened(settings) as memory, progress(settings, "collecting the graph"):
        graph = shown_graph(memory.store, project_id=project, since=since, until=until, include=include, limit=limit)
    contents = _contents(path, graph)
    write_files(contents)
    note_exports(memory.store.config.home, "viz export", *contents, at=memory.store.now())
    steps = sum(edge["relation"] == "NEXT" for edge in graph.edges)
    memories, links = len(graph.nodes), len(graph.edges) - steps
    document = {"files": [str(one) for one in contents], "memories": memories, "links": links, "next": steps}
    counts = (
        f"{count(memories, 'memory', 'memories')}, {count(links, 'link')} and {count(steps, 'step')} to the next one"
    )
    emit(settings, document, f"Wrote {counts} to {plain(' and '.join(str(one) for one in contents))}.")


def _contents(path: Path, graph: Graph) -> dict[Path, bytes]:
    if path.suffix == ".json":
        from memgraph.viz.export import node_link

        return {path: node_link(graph)}
    if path.suffix == ".graphml":
        from memgraph.viz.export import graphml

        return {path: graphml(graph)}
    from memgraph.viz.export import graph_parquet

    nodes, edges = graph_parquet(graph)
    return {path.with_suffix(".nodes.parquet"): nodes, path.with_suffix(".edges.parquet"): edges}
