"""How fast a store writes, reads, replays and opens, and its peers beside it: one run from one seed. See README.md.

python tests/benchmarks/store.py [--memories 10000 100000] [--no-peers] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.benchmarks.machine import described
from tests.benchmarks.peers import PEERS
from tests.benchmarks.plan import QUICK, Plan
from tests.benchmarks.report import Report
from tests.benchmarks.run import Run, installed_and_missing


def asked(arguments: list[str] | None = None) -> tuple[Plan, bool, bool]:
    """Return the plan, whether peers are measured, and whether JSON is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memories", type=int, nargs="+", metavar="N", help="sizes (default 10000 100000)")
    parser.add_argument("--repeats", type=int, help="new stores filled, and replays (default 3)")
    parser.add_argument("--singles", type=int, help="single inserts (default 200)")
    parser.add_argument("--within", type=float, metavar="S", help="seconds after which no repeat begins (default 120)")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure peers beside it")
    parser.add_argument("--quick", action="store_true", help="see whether everything runs; the figures say nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    plan = QUICK if given.quick else Plan()
    if given.memories:
        plan = replace(plan, memories=tuple(sorted(set(given.memories))))
    for name, value in {"repeats": given.repeats, "singles": given.singles, "within_s": given.within}.items():
        if value is not None:
            plan = replace(plan, **{name: value})
    if min(plan.memories) < 20 or plan.repeats < 1 or plan.singles < 2:
        parser.error("--memories must be at least 20, --repeats at least 1, --singles at least 2")
    return plan, given.peers, given.json


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 if a part failed."""
    plan, with_peers, as_json = asked(arguments)
    there, missing = installed_and_missing() if with_peers else ([], [])
    report = Report(as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as temporary:
        folder = Path(temporary)
        distributions = [entry.distribution for name, entry in PEERS.items() if name in there and entry.distribution]
        document: dict[str, Any] = {"machine": described(folder, distributions), "plan": asdict(plan)}
        report.begin(**document)
        run = Run(plan, folder, report)
        for size in plan.memories:
            run.memgraph(size)
        report.compare_sizes(plan.memories)
        if there:
            report.title("Side by side")
            for size in plan.memories:
                run.side_by_side(there, size)
            run.trials(there)
            report.compare_peers()
        if missing:
            report.say(f"\nNot installed, so not measured: {', '.join(missing)} (pip install '.[bench]')")
    document["not_installed"] = missing
    document["load_1_min_at_end"] = round(os.getloadavg()[0], 2)
    report.say(f"\nload at the end {document['load_1_min_at_end']}")
    report.end(document, plan.memories)
    return 1 if report.failures else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the folder is removed then, too
    sys.exit(main())
