"""``sleep``: what is done with experience when nobody waits for it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, notice, progress
from memgraph.interfaces.cli.base.usage import usage_told

if TYPE_CHECKING:
    from memgraph.model.results.sleep import PhaseReport, SleepReport

_PHASES = ("temporal", "near-duplicates", "compress", "errors", "procedures", "contradictions", "collect")
"""As the lifecycle names them: `memgraph sleep --help` imports no more than click."""
_SINGULAR = {
    "communities": "community",
    "episodes": "episode",
    "failures": "failure",
    "floors": "floor",
    "landmarks": "landmark",
    "negatives": "negative",
    "traces": "trace",
}
"""Of the names of counts those that stand in the plural."""


_FAULTS = frozenset({"internal", "external", "configuration"})
"""Classes of failures: they are told where there are several."""


class _Seconds(click.FloatRange):
    """A number of seconds: neither ``nan``, which is in every range, nor ``inf``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not isfinite(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


@click.command(cls=Command)
@click.option(
    "--phase",
    "phases",
    metavar="NAME",
    multiple=True,
    type=click.Choice(_PHASES),
    help="Only this phase; several times.",
)
@click.option("--max-seconds", metavar="N", type=_Seconds(min=0), help="After so long nothing more is begun.")
@pass_settings
def sleep(settings: Settings, phases: tuple[str, ...], max_seconds: float | None) -> None:
    """Let the store sleep, in this order: temporal, near-duplicates, compress, errors, procedures, contradictions, collect.

    Stopped at any moment, it keeps what was done, and the next one goes on from there.
    """
    with opened(settings) as memory, progress(settings, "sleeping") as bar:
        report = memory.maintenance.sleep(phases=phases, max_seconds=max_seconds, progress=bar)
    emit(settings, report, _told(report))
    for phase in report.phases:
        if phase.notice:
            notice(phase.notice)


def _told(report: SleepReport) -> list[str]:
    lines = [f"Went on with the sleep of {report.started_at[:16]}."] if report.resumed else []
    lines += [_line(phase) for phase in report.phases]
    lines.append(f"{count(report.changed, 'memory', 'memories')} changed, in {report.seconds:.1f} s.")
    if report.left:
        lines.append(f"Left for the next time: {', '.join(report.left)}.")
    return [*lines, *usage_told(report.usage)]


def _named(name: str, number: int) -> str:
    """Return the name of a count, in the singular where one is counted."""
    words = name.split("_")
    return " ".join(_SINGULAR.get(word, word) for word in words) if number == 1 else " ".join(words)


def _line(phase: PhaseReport) -> str:
    counts = {name: number for name, number in phase.counts.items() if number}
    if len(faults := counts.keys() & _FAULTS) == 1:  # which all are of
        counts.pop(*faults)
    done = [f"{number:,} {_named(name, number)}" for name, number in counts.items()]
    stopped = "" if phase.complete else " (stopped)"
    return f"{phase.name:<15} {phase.seconds:6.1f} s  {', '.join(done) or 'nothing to do'}{stopped}"
