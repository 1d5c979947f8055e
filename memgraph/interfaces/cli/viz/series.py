"""``viz series``: write what was learned over time as numbers."""

from __future__ import annotations

from pathlib import Path

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, emit_json, plain, progress
from memgraph.interfaces.cli.viz.viz import bucketed, scoped


@click.command(cls=ReadingCommand)
@scoped
@bucketed
@click.option("--parquet", metavar="FILE", help="Write one table to a Parquet file instead.")
@pass_settings
def series(
    settings: Settings,
    project: str | None,
    since: str | None,
    until: str | None,
    bucket: str | None,
    parquet: str | None,
) -> None:
    """Print every series as one JSON document, or write one Parquet table."""
    from memgraph.viz.export import series_parquet
    from memgraph.viz.files import write_files
    from memgraph.viz.series import learning_series, with_data

    with opened(settings) as memory, progress(settings, "reading the history") as bar:
        found = learning_series(memory.store, project_id=project, since=since, until=until, bucket=bucket, progress=bar)
    if parquet is None:
        emit_json([one.to_dict() for one in found])
        return
    path = Path(parquet)
    write_files({path: series_parquet(found)})
    points = sum(len(one.points) for one in found)
    document = {"file": str(path), "series": len(with_data(found)), "rows": points}
    emit(settings, document, f"Wrote {count(points, 'row')} of {len(with_data(found))} series to {plain(str(path))}.")
