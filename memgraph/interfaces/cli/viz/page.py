"""``viz page``: write one HTML file that replays what was learned."""

from __future__ import annotations

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, notice, plain, progress
from memgraph.interfaces.cli.base.scoping import is_known
from memgraph.interfaces.cli.viz.viz import scoped
from memgraph.viz.page.limits import MEMORIES


@click.command(cls=ReadingCommand)
@click.argument("file", metavar="OUT.html")
@scoped
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=MEMORIES,
    show_default=True,
    help="Maximum number of memories: the most relevant, and those they were derived from.",
)
@click.option(
    "--include",
    multiple=True,
    type=click.Choice(["suppressed", "sensitive", "private"]),
    help="Include memories in this state, which are left out by default; repeatable.",
)
@pass_settings
def page(
    settings: Settings,
    file: str,
    project: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    include: tuple[str, ...],
) -> None:
    """Write the page to OUT.html, atomically."""
    from memgraph.viz.page.page import write_page

    with opened(settings) as memory:
        if not is_known(memory, project):
            raise Refused("there is nothing to show")
        with progress(settings, "reading the history") as bar:
            report = write_page(
                memory.store,
                file,
                project_id=project,
                since=since,
                until=until,
                include=include,
                limit=limit,
                progress=bar,
            )
    document = {
        "file": str(report.path),
        "bytes": report.size,
        "memories": report.memories,
        "left_out": report.left_out,
    }
    done = f"Wrote {plain(str(report.path))}: {count(report.memories, 'memory', 'memories')}, {_size(report.size)}."
    emit(settings, document, done)
    for sentence in report.left_out:
        notice(sentence)


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{round(size / 1e3)} kB"
