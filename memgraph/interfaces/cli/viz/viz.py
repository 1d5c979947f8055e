"""``viz``: the group of commands that write what was learned as files to look at or to go on with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from memgraph.interfaces.cli.base.commands import Entry, LazyGroup
from memgraph.interfaces.cli.base.options import shared_options

VIEWS: dict[str, Entry] = {
    "page": Entry("viz.page", "page", "Write one HTML file in which to watch what was learned."),
    "series": Entry("viz.series", "series", "Write what was learned over time as JSON, or as Parquet to a file."),
    "charts": Entry("viz.charts", "charts", "Draw each series into OUTDIR, as PNG and as SVG."),
    "export": Entry(
        "viz.export", "export", "Write the graph to FILE: .json (node-link), .graphml, or .parquet (two tables)."
    ),
}

viz = LazyGroup(name="viz", table=VIEWS, params=[*shared_options()])


def scoped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say what it shows: ``--project``, ``--since`` and ``--until``."""
    for option in (
        click.option("--until", metavar="TIME", help="Only what happened until then; a day counts to its end."),
        click.option(
            "--since", metavar="TIME", help="Only what happened from then on: 2026-02-19, or with a time, UTC."
        ),
        click.option("--project", metavar="NAME", help="Only this project."),
    ):
        command = option(command)
    return command


def bucketed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option that says how fine time is."""
    help_ = "By day, week, month, year or decade, UTC (default: as fits each series' span)."
    return click.option("--bucket", type=click.Choice(["day", "week", "month", "year", "decade"]), help=help_)(command)
