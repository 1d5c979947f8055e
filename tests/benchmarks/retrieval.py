"""What recall finds: memgraph and its peers on question sets whose evidence is known. See README.md.

python tests/benchmarks/retrieval.py --bench DIR [--half dev] [--sets locomo,hotpot] [--systems memgraph,bm25] [--ablate] [--abstention] [--floor]

`MemGraphSystem` is what a harness calls: ``harness.py --callable tests.benchmarks.memgraph_system:MemGraphSystem``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.benchmarks import ablation, abstention, child, floor
from tests.benchmarks.corpus import System
from tests.benchmarks.embeddings import CachedEmbedder, cache_folder
from tests.benchmarks.machine import installed
from tests.benchmarks.memgraph_system import MemGraphSystem
from tests.benchmarks.peers import PEERS
from tests.benchmarks.questions import HEADLINES, SETS, Harness, Result
from tests.benchmarks.retrieval_peers import Bm25, Dense, Stored
from tests.benchmarks.tables import table

_JOB = "tests.benchmarks.retrieval:measured"
_LONGEST_JOB_S = 7_200.0
Record = dict[str, Any]


SYSTEMS: dict[str, Callable[[CachedEmbedder], System]] = {
    "memgraph": MemGraphSystem,
    "bm25": lambda _: Bm25(),
    "dense": Dense,
    "dense-dated": partial(Dense, told=True),
    **{name: partial(Stored, name) for name in ("chromadb", "langgraph", "mem0")},
}
DEFAULT_SYSTEMS = tuple(name for name in SYSTEMS if name != "mem0")
"""mem0 takes one call a memory: it is measured when it is asked for."""


def measured(system: str, bench: str, sets: Sequence[str], half: str, cache: str) -> Iterator[Record]:
    """Measure one system on the sets: a job for a process of its own. Yields ``{"set": …, "report": …, "result": …}``."""
    harness = Harness(Path(bench))
    asked = SYSTEMS[system](CachedEmbedder(folder=Path(cache)))
    try:
        for name in sets:
            result = harness.evaluate(asked, name, half)
            yield {"set": name, "report": harness.report(result), "result": result}
    finally:
        asked.close()


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> Record:
    """Measure each system in its own process, and print its reports as they come."""
    missing = [name for name in given.systems if is_missing(name)]
    found: Record = {"systems": {}, "failed": {}, "not_installed": missing}
    if missing:
        say(f"Not installed, so not measured: {', '.join(missing)} (pip install '.[bench]')")
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as home:
        for system in (name for name in given.systems if name not in missing):
            results = found["systems"][system] = {}
            arguments = {
                "system": system,
                "bench": given.bench,
                "sets": given.sets,
                "half": given.half,
                "cache": given.cache,
            }
            try:
                with child.Job(_JOB, Path(home), timeout_s=_LONGEST_JOB_S, **arguments) as job:
                    for record in job.results():
                        if "set" in record:
                            results[record["set"]] = record["result"]
                            say(f"\n{system}: {record['report']}")
                        else:
                            found["failed"][system] = f"asked for the network: {record['network']}"
                    job.finish()
            except child.JobError as error:
                found["failed"][system] = str(error)
            if system in found["failed"]:
                say(f"\n{system}, not measured whole: {found['failed'][system]}")
    return found


def is_missing(system: str) -> bool:
    """Tell whether a system is a peer that is not installed."""
    distribution = PEERS[system].distribution if system in PEERS and system != "memgraph" else None
    return distribution is not None and installed(distribution) is None


def compared(harness: Harness, found: Record, sets: Sequence[str]) -> Iterator[str]:
    """Yield the headlines side by side, then memgraph's distance from each system with its bootstrap interval."""
    systems = {name: results for name, results in found["systems"].items() if results}
    columns = [(name, *headline) for name in sets for headline in HEADLINES[name]]
    heads = [f"{name} {'' if category == 'ALL' else f'{category} '}{metric}" for name, category, metric in columns]
    rows = [[system, *(_share(results.get(name), *by) for name, *by in columns)] for system, results in systems.items()]
    if rows:
        yield from table(["", *heads], rows)
    own = systems.pop("memgraph", {})
    if own and systems:
        yield "\nmemgraph's distance from each, in points, with 95 % of the bootstrap:"
    for system, results in systems.items() if own else ():
        both = [name for name in sets if name in results and name in own]
        told = [f"{name} {harness.distance(results[name], own[name], HEADLINES[name][0][1])}" for name in both]
        yield f"  {system}: {', '.join(told)}"


def _share(result: Result | None, category: str, metric: str) -> str:
    """Return a result's figure in percent; a dash where nothing was measured."""
    figures = result["agg"].get(category) if result else None
    return f"{100 * figures[metric]:.1f}" if figures else "–"


def asked(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return what is to be measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--bench", required=True, type=lambda path: str(Path(path).resolve()), help="folder of harness.py and data"
    )
    parser.add_argument("--half", default="dev", help="dev (default) or heldout")
    parser.add_argument(
        "--sets", type=lambda text: text.split(","), default=list(SETS), help=f"default {','.join(SETS)}"
    )
    parser.add_argument(
        "--systems", type=lambda text: text.split(","), default=list(DEFAULT_SYSTEMS), help=f"of {','.join(SYSTEMS)}"
    )
    parser.add_argument(
        "--ablate", action="store_true", help="switch off each stage and edge kind, instead of comparing systems"
    )
    parser.add_argument("--abstention", action="store_true", help="put questions to stores not their own, instead")
    parser.add_argument("--floor", action="store_true", help="what the floor of recalls keeps and lets in, instead")
    parser.add_argument("--cache", default=None, help="folder of kept vectors (default: the user's cache)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    given.cache = str(cache_folder(given.cache).resolve())
    for kind, known in (("sets", SETS), ("systems", SYSTEMS)):
        if unknown := [name for name in getattr(given, kind) if name not in known]:
            parser.error(f"--{kind}: {', '.join(unknown)} unknown; known are {', '.join(known)}")
    return given


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 if a system could not be measured."""
    given = asked(arguments)
    say = partial(print, flush=True, file=sys.stderr if given.json else sys.stdout)
    harness = Harness(Path(given.bench))
    document: Record = {"half": given.half}
    if not (given.ablate or given.abstention or given.floor):
        found = measure(given, say)
        for line in compared(harness, found, given.sets):
            say(line)
        document |= found
    else:
        document |= _of_memgraph_alone(given, harness, say)
    if given.json:
        print(json.dumps(document, indent=1))
    return 1 if document.get("failed") else 0


def _of_memgraph_alone(given: argparse.Namespace, harness: Harness, say: Callable[[str], None]) -> Record:
    document: Record = {}
    system = MemGraphSystem(CachedEmbedder(folder=Path(given.cache)))
    try:
        if given.ablate:
            document["ablation"] = ablation.measure(system, harness, given.sets, given.half, say)
        if given.abstention:
            document["abstention"] = abstention.measure(system, harness, given.half, say)
        if given.floor:
            document["floor"] = floor.measure(system, harness, given.half, say)
    finally:
        system.close()
    return document


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the folders are removed then, too
    sys.exit(main())
