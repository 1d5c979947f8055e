"""``sleep``: consolidate the store offline."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, progress, usage_lines

if TYPE_CHECKING:
    from memgraph.model.results.learning import PhaseReport, SleepReport

_PHASES = "temporal copies near-duplicates compress counting feedback errors procedures contradictions collect work-orders".split()
"""The lifecycle's phases, repeated here so that `memgraph sleep --help` imports only click."""
_SINGULAR = {
    "candidates": "candidate",
    "communities": "community",
    "episodes": "episode",
    "failures": "failure",
    "floors": "floor",
    "landmarks": "landmark",
    "negatives": "negative",
    "traces": "trace",
}
"""Singular forms of count names that are plurals."""

_ERROR_CLASSES = frozenset({"internal", "external", "configuration"})
"""Classes of failures; printed only if failures of several classes were counted."""


class _Seconds(click.FloatRange):
    """A finite number of seconds: a range check alone would accept ``nan`` and ``inf``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not isfinite(seconds):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return seconds


@click.command(cls=Command)
@click.option(
    "--phase",
    "phases",
    metavar="NAME",
    multiple=True,
    type=click.Choice(_PHASES),
    help="Run only this phase; repeatable.",
)
@click.option("--max-seconds", metavar="N", type=_Seconds(min=0), help="Start nothing new after this many seconds.")
@pass_settings
def sleep(settings: Settings, phases: tuple[str, ...], max_seconds: float | None) -> None:
    """Consolidate the store in these phases: temporal, copies, near-duplicates, compress, feedback, errors, procedures, contradictions, collect, work-orders.

    An interrupted run keeps what was done, and the next run resumes from there.
    """
    with opened(settings) as memory, progress(settings, "sleeping") as bar:
        report = memory.maintenance.sleep(phases=phases, max_seconds=max_seconds, progress=bar)
    emit(settings, report, _lines(report))


def _lines(report: SleepReport) -> list[str]:
    lines = [f"Resumed the sleep of {report.started_at[:16]}."] if report.resumed else []
    lines += [_line(phase) for phase in report.phases]
    if asked := sum(phase.counts.get("requested", 0) for phase in report.phases):
        lines.append(f"Rules cannot judge {count(asked, 'matter')}: `memgraph distil` lists what to answer.")
    changed = (
        f"{count(report.changed, 'memory or record was', 'memories and records were')} changed, made or linked, in"
    )
    lines.append(f"{changed if report.changed else 'Nothing had to change; that took'} {report.seconds:.1f} s.")
    if report.left:
        lines.append(f"Left for the next sleep: {', '.join(report.left)}.")
    return [*lines, *usage_lines(report.usage)]


def _named(name: str, number: int) -> str:
    """Return the name of a count, in the singular if the count is 1."""
    words = name.split("_")
    return " ".join(_SINGULAR.get(word, word) for word in words) if number == 1 else " ".join(words)


def _line(phase: PhaseReport) -> str:
    counts = {name: number for name, number in phase.counts.items() if number}
    if len(classes := counts.keys() & _ERROR_CLASSES) == 1:  # the class of all failures
        counts.pop(*classes)
    done = [f"{number:,} {_named(name, number)}" for name, number in counts.items()]
    stopped = "" if phase.complete else " (stopped)"
    return f"{phase.name:<15} {phase.seconds:6.1f} s  {', '.join(done) or 'nothing to do'}{stopped}"
