"""How long recall takes, stage by stage, beside the bare product of the same vectors, and beside the peers. See README.md.

python tests/benchmarks/latency.py [--memories 1000 10000 100000] [--no-peers] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.benchmarks import child
from tests.benchmarks.figures import percentile
from tests.benchmarks.machine import described
from tests.benchmarks.peers import PEERS
from tests.benchmarks.report import short
from tests.benchmarks.run import installed_and_missing
from tests.benchmarks.tables import table

Record = dict[str, Any]
Say = Callable[[str], None]
MEASURED_BESIDE = ("chromadb", "langgraph", "sqlite", "jsonl")
MEANINGS = {
    "product": "vectors @ query, nothing else",
    "search": "search_memories, 10 of all",
    "retrieve": "retrieve, accesses recorded",
    "retrieve_unrecorded": "retrieve, nothing recorded",
    "search_in_bulk": "search_memories beside a bulk insert",
    "commit": "insert one memory",
    "next_recall": "the next recall, which finds it",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes
    ----------
    questions, commits : int
        Recalls of each kind; inserts that the next recall must find.
    block_s, blocks : float, int
        Length and number of the blocks of `retrieve` with and without access records, which alternate.
    peers_within_s : float
        A peer's filling stops at the end of the call in which it took longer.
    """

    memories: tuple[int, ...] = (1_000, 10_000, 100_000)
    batch: int = 10_000
    questions: int = 200
    commits: int = 30
    block_s: float = 2.5
    blocks: int = 5
    peers_within_s: float = 300.0
    timeout_s: float = 3_600.0


QUICK = Plan(memories=(200,), questions=5, commits=2, block_s=0.05, blocks=1, peers_within_s=5.0, timeout_s=60.0)
"""Whether everything runs; its figures say nothing."""


def measure(plan: Plan, size: int, folder: Path) -> Record:
    """Return what was measured of memgraph at a size: values by figure, and what the store holds."""
    own = {name: getattr(plan, name) for name in ("batch", "questions", "commits", "block_s", "blocks")}
    records = child.run(
        "tests.benchmarks.latency_jobs:measure",
        folder / "home",
        timeout_s=plan.timeout_s,
        folder=folder,
        size=size,
        **own,
    )
    return _gathered(records)


def measure_peer(plan: Plan, name: str, size: int, folder: Path) -> Record:
    """Return what was measured of a peer."""
    records = child.run(
        "tests.benchmarks.latency_jobs:peer", folder / "home", timeout_s=plan.timeout_s, name=name, folder=folder, size=size,
        batch=plan.batch, questions=plan.questions, within_s=plan.peers_within_s,
    )  # fmt: skip
    return _gathered(records)


def summary(found: Record) -> Record:
    """Return p50, p95 and the longest of each figure, and what follows from them.

    ``over_product`` is the median of the search's time over that of the product next to it; ``recording`` what
    access records add to a recall: the mean of a block with them over that of the block without after it, the median block's, less 1.
    """
    values = found["values"]
    result: Record = {
        name: {"p50": statistics.median(taken), "p95": percentile(taken, 0.95), "longest": max(taken), "of": len(taken)}
        for name, taken in values.items()
    }
    pairs = zip(values["search"], values["product"], strict=True)
    result["over_product"] = statistics.median(search / product for search, product in pairs)
    result["recording"] = statistics.median(values["recording_ratio"]) - 1.0
    return result


def told(found: Record) -> Iterator[str]:
    """Yield a size's figures as text."""
    figures = summary(found)
    yield f"\n== {found['memories']:,} memories, {found['links']:,} links; filled in {found['values']['fill_s'][0]:,.0f} s =="
    names = {**MEANINGS, **{name: f"  {name.removeprefix('stage:')}" for name in figures if name.startswith("stage:")}}
    order = ["product", "search", *(name for name in names if name not in MEANINGS), *list(MEANINGS)[2:]]
    columns = ("p50", "p95", "longest")
    rows = [[names[name], *(short(figures[name][one]) for one in columns), str(figures[name]["of"])] for name in order]
    yield from table(["ms", *columns, "of"], rows)
    yield f"search over product: {figures['over_product']:.2f} ×; access records cost {100 * figures['recording']:+.1f} %"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 if a part failed."""
    plan, peers, as_json = asked(arguments)
    say = partial(print, flush=True, file=sys.stderr if as_json else sys.stdout)
    failures: list[str] = []
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as temporary:
        folder = Path(temporary)
        document: Record = {"machine": described(folder), "sizes": {}}
        say("; ".join(f"{name} {value}" for name, value in document["machine"].items()))
        for size in plan.memories:
            try:
                found = measure(plan, size, folder / f"memgraph-{size}")
            except child.JobError as error:
                failures.append(f"memgraph at {size:,}: {error}")
                continue
            finally:
                shutil.rmtree(folder / f"memgraph-{size}", ignore_errors=True)
            for line in told(found):
                say(line)
            document["sizes"][size] = {"memgraph": summary(found)}
            rows = list(_beside(plan, size, peers, folder, failures, document["sizes"][size]))
            for line in table(["query given its vector, ms", "p50", "p95", "memories"], rows) if rows else ():
                say(line)
    for failure in failures:
        say(f"FAILED: {failure}")
    if as_json:
        print(json.dumps(document | {"failures": failures}, indent=1))
    return 1 if failures else 0


def asked(arguments: list[str] | None = None) -> tuple[Plan, list[str], bool]:
    """Return the plan, the peers that are measured beside memgraph, and whether JSON is wanted."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memories", type=int, nargs="+", metavar="N", help="sizes (default 1000 10000 100000)")
    parser.add_argument("--questions", type=int, metavar="N", help="recalls of each kind (default 200)")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="measure peers beside it")
    parser.add_argument("--quick", action="store_true", help="see whether everything runs; the figures say nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    plan = QUICK if given.quick else Plan()
    if given.memories:
        plan = replace(plan, memories=tuple(sorted(set(given.memories))))
    if given.questions:
        plan = replace(plan, questions=given.questions)
    if min(plan.memories) < 100 or plan.questions < 2:
        parser.error("--memories must be at least 100, --questions at least 2")
    there, missing = installed_and_missing() if given.peers else ([], [])
    if absent := [name for name in missing if name in MEASURED_BESIDE]:
        print(f"not installed, so not measured: {', '.join(absent)}", file=sys.stderr)
    return plan, [name for name in MEASURED_BESIDE if name in there], given.json


def _beside(
    plan: Plan, size: int, peers: Sequence[str], folder: Path, failures: list[str], document: Record
) -> Iterator[list[str]]:
    """Measure the peers at a size and yield their rows."""
    for name in peers:
        place = folder / f"{name}-{size}"
        try:
            found = measure_peer(plan, name, size, place)
        except child.JobError as error:
            failures.append(f"{name} at {size:,}: {error}")
            continue
        finally:
            shutil.rmtree(place, ignore_errors=True)
        taken = found["values"]["query"]
        p50, p95 = statistics.median(taken), percentile(taken, 0.95)
        document[name] = {"p50": p50, "p95": p95, "memories": found["memories"]}
        yield [f"{name}: {PEERS[name].note}", short(p50), short(p95), f"{found['memories']:,}"]


def _gathered(records: Sequence[Record]) -> Record:
    found: Record = {"values": {}}
    for record in records:
        if "figure" in record:
            found["values"][record["figure"]] = record["values"]
        else:
            found |= record
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the folder is removed then, too
    sys.exit(main())
