"""``viz charts``: draw what was learned over time."""

from __future__ import annotations

from pathlib import Path

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress
from memgraph.interfaces.cli.viz.viz import bucketed, scoped


@click.command(cls=ReadingCommand)
@click.argument("outdir")
@scoped
@bucketed
@pass_settings
def charts(
    settings: Settings, outdir: str, project: str | None, since: str | None, until: str | None, bucket: str | None
) -> None:
    """Draw each series that has data, and an overview. The same series yield byte-identical files."""
    from memgraph.viz.charts import charts as drawn
    from memgraph.viz.files import make_folder, write_files
    from memgraph.viz.series import learning_series, with_data

    if not outdir:
        raise click.UsageError("OUTDIR is empty: name a directory, such as '.' for the current one")
    with opened(settings) as memory, progress(settings, "reading the history") as bar:
        found = learning_series(memory.store, project_id=project, since=since, until=until, bucket=bucket, progress=bar)
    shown = with_data(found)
    files = drawn(found, about=f"Project {project}" if project else "All projects", since=since, until=until)
    if not files:
        raise Refused(
            "there is nothing to draw: no memory, build or recall matches; check --project, --since and --until"
        )
    folder = Path(outdir)
    make_folder(folder)
    write_files({folder / name: content for name, content in files.items()})
    left_out = [one.title for one in found if one not in shown]
    document = {
        "folder": str(folder),
        "files": sorted(files),
        "left_out": [one.name for one in found if one not in shown],
    }
    lines = [f"Drew {count(len(shown), 'chart')} and an overview, as PNG and SVG, into {plain(str(folder))}."]
    if left_out:
        lines.append(f"Left out for lack of data: {', '.join(left_out)}.")
    emit(settings, document, lines)
