"""``viz``: the group of commands that write what was learned to files for viewing or further processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from memgraph.interfaces.cli.base.commands import Entry, LazyGroup
from memgraph.interfaces.cli.base.options import shared_options

VIEWS: dict[str, Entry] = {
    "page": Entry("viz.page", "page", "Write one HTML file that replays what was learned.", "look"),
    "series": Entry(
        "viz.series", "series", "Write time series of what was learned as JSON, or to a Parquet file.", "look"
    ),
    "charts": Entry("viz.charts", "charts", "Draw each time series into OUTDIR, as PNG and SVG.", "look"),
    "export": Entry(
        "viz.export",
        "export",
        "Write the graph to FILE: .json (node-link), .graphml, .gexf, or .parquet (two tables).",
        "look",
    ),
}

viz = LazyGroup(name="viz", table=VIEWS, params=[*shared_options()])


def scoped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that restrict what a command shows: ``--project``, ``--since`` and ``--until``."""
    for option in (
        click.option("--until", metavar="TIME", help="Only what happened until TIME; a date includes the whole day."),
        click.option(
            "--since",
            metavar="TIME",
            help="Only what happened since TIME: a date such as 2026-02-19, or a date and time, UTC.",
        ),
        click.option("--project", metavar="NAME", help="Only this project."),
    ):
        command = option(command)
    return command


def bucketed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option for the time resolution."""
    help_ = "Time resolution, UTC.  [default: chosen by each series' span]"
    return click.option("--bucket", type=click.Choice(["day", "week", "month", "year", "decade"]), help=help_)(command)
