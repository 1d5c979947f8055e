"""What memgraph costs on each graph engine, side by side: the jobs of store.py, with the engine as the only difference. See README.md.

python tests/benchmarks/engines.py [--memories 10000] [--quick]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph.graph.connection import VENDORS
from tests.benchmarks.figures import MEANINGS
from tests.benchmarks.machine import described, installed
from tests.benchmarks.plan import QUICK, Plan
from tests.benchmarks.report import Report, short
from tests.benchmarks.run import Run


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 if a part failed or an engine is not installed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memories", type=int, default=10_000, metavar="N", help="size of the stores (default 10000)")
    parser.add_argument("--quick", action="store_true", help="see whether everything runs; the figures say nothing")
    given = parser.parse_args(arguments)
    plan = replace(QUICK if given.quick else Plan(), memories=(given.memories,))
    names = [name for name in VENDORS if installed(name)]
    reports = {name: Report(as_json=False) for name in names}
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as temporary:
        folder = Path(temporary)
        reports[names[0]].begin(described(folder, names), {"memories": given.memories, "repeats": plan.repeats})
        for name, report in reports.items():
            report.say(f"\n# {name}")
            Run(replace(plan, engine=name), folder / name, report).memgraph(given.memories)
    _print_table(reports, given.memories)
    missing = [name for name in VENDORS if name not in names]
    if missing:
        print(f"\nNot installed, so not measured: {', '.join(missing)}")
    print(f"\nload at the end {os.getloadavg()[0]:.2f}")
    return 1 if missing or any(report.failures for report in reports.values()) else 0


def _print_table(reports: dict[str, Report], memories: int) -> None:
    """Print each figure, an engine a column, and the last over the first."""
    first, *_, last = [*reports, *reports][: max(2, len(reports))]
    print(f"\n== Side by side at {memories:,} memories ==\n")
    print(f"  {'':<58}{'':<14}{''.join(name.rjust(12) for name in reports)}{f'{last}/{first}'.rjust(16)}")
    for name, meaning in MEANINGS.items():
        for statistic in meaning.statistics:
            values = {engine: report.value(name, memories, statistic) for engine, report in reports.items()}
            if None in values.values():
                continue
            cells = "".join(short(value or 0.0).rjust(12) for value in values.values())
            ratio = (values[last] or 0.0) / values[first] if values[first] else float("nan")
            said = meaning.what if statistic == "median" else f"{meaning.what}, {statistic}"
            print(f"  {said:<58}{meaning.unit:<14}{cells}{ratio:>16.2f}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the folder is removed then, too
    sys.exit(main())
