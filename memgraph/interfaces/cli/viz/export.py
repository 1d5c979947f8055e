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

SUFFIXES = (".json", ".graphml", ".gexf", ".parquet")


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
@click.option(
    "--memories-only", is_flag=True, help="Leave out what memories name: files, persons, releases, tags and so on."
)
@pass_settings
def export(
    settings: Settings,
    file: str,
    project: str | None,
    since: str | None,
    until: str | None,
    include: tuple[str, ...],
    limit: int | None,
    *,
    memories_only: bool,
) -> None:
    """Write the memories that may be shown, what they name, and the links between all, atomically.

    With --include records the commits of a history are among them, with their files, persons and releases.
    """
    from memgraph.store.purge.exports import note_exports
    from memgraph.viz.export import shown_graph
    from memgraph.viz.files import write_files

    path = Path(file)
    if path.suffix not in SUFFIXES:
        raise click.UsageError(f"FILE must end in {', '.join(SUFFIXES)}: the suffix selects the format")
    with opened(settings) as memory, progress(settings, "collecting the graph"):
        graph = shown_graph(
            memory.store,
            project_id=project,
            since=since,
            until=until,
            include=include,
            limit=limit,
            named=not memories_only,
        )
    contents = _contents(path, graph)
    write_files(contents)
    note_exports(memory.store.config.home, "viz export", *contents, at=memory.store.now())
    steps = sum(edge["relation"] == "NEXT" for edge in graph.edges)
    things = sum("name" in node for node in graph.nodes)
    memories, links = len(graph.nodes) - things, len(graph.edges) - steps
    document = {
        "files": [str(one) for one in contents],
        "memories": memories,
        "things": things,
        "links": links,
        "next": steps,
    }
    counts = (
        f"{count(memories, 'memory', 'memories')}, {count(things, 'thing')} that they name, {count(links, 'link')} and "
        f"{count(steps, 'step')} to the next one"
    )
    emit(settings, document, f"Wrote {counts} to {plain(' and '.join(str(one) for one in contents))}.")


def _contents(path: Path, graph: Graph) -> dict[Path, bytes]:
    if path.suffix == ".json":
        from memgraph.viz.export import node_link

        return {path: node_link(graph)}
    if path.suffix in (".graphml", ".gexf"):
        from memgraph.viz.export import gexf, graphml

        return {path: gexf(graph) if path.suffix == ".gexf" else graphml(graph)}
    from memgraph.viz.export import graph_parquet

    nodes, edges = graph_parquet(graph)
    return {path.with_suffix(".nodes.parquet"): nodes, path.with_suffix(".edges.parquet"): edges}
