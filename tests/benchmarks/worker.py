"""What a recall costs as a process: with a worker through the hook and the command line, and without one.

``.venv/bin/python tests/benchmarks/worker.py [--memories N] [--runs N] [--cold N] [--json]``
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memgraph import MemGraph, SemanticMemory  # noqa: E402
from memgraph.interfaces.worker.client import WorkerUnavailableError, ask  # noqa: E402
from memgraph.interfaces.worker.place import Place, place_of  # noqa: E402
from tests.benchmarks.figures import percentile  # noqa: E402
from tests.interfaces.workers import recalled  # noqa: E402

SCRIPTS = Path(sys.executable).parent
CITIES = (
    "Ankara Bergen Cusco Dakar Esbjerg Faro Galway Hobart Inari Jaipur Kyoto Lugano Malaga Narvik Oulu Porto".split()
)
WAYS = "over the pass|by the morning ferry|with a reserved seat|past the old customs house|on the night train".split(
    "|"
)
AIM_HOOK_MS, AIM_RECALL_MS, AIM_COLD_MS = 100.0, 150.0, 800.0


def main() -> None:
    """Measure, and print the figures with the machine's load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=100, help="warm runs of each kind")
    parser.add_argument("--cold", type=int, default=7, help="runs without a worker")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ |= {
            "HOME": name,
            "MEMGRAPH_HOME": str(folder / "store"),
            "MEMGRAPH_KEYS_HOME": str(folder / "keys"),
            "MEMGRAPH_WORKER_DIR": tempfile.mkdtemp(dir=name, prefix="w"),
        }
        document = measured(folder, given.memories, given.runs, given.cold)
    if given.json:
        print(json.dumps(document))
        return
    print(
        f"{given.memories:,} memories, load {document['load'][0]:.1f} at the start and {document['load'][1]:.1f} at the end\n"
    )
    print(f"{'':44}{'p50 ms':>8}{'p95 ms':>8}{'cpu ms':>8}{'runs':>6}  aim")
    for one in document["figures"]:
        cpu = f"{one['cpu']:8.0f}" if one["cpu"] is not None else " " * 8
        print(f"{one['what']:44}{one['p50']:8.1f}{one['p95']:8.1f}{cpu}{one['runs']:6}  {one['aim'] or ''}")


def measured(folder: Path, memories: int, runs: int, cold: int) -> dict[str, Any]:
    """Fill a store, measure it without a worker and with one, and return the figures."""
    load = [os.getloadavg()[0]]
    with MemGraph.open() as memory:
        texts = [f"Bus {number} to {CITIES[number % 16]} goes {WAYS[number % 5]}" for number in range(memories)]
        memory.store.insert_memories([SemanticMemory(content=text, source="benchmark") for text in texts])
    commands, place = _commands(), place_of()
    assert place is not None
    recall = [str(SCRIPTS / "memgraph"), "recall", "How does bus 7 go to Hobart?"]
    figures = [
        _figure("memgraph --version", _timed([recall[0], "--version"], cold * 3)),
        _figure("memgraph recall, no worker", _timed([*recall, "--no-worker"], cold), f"p50 <= {AIM_COLD_MS:.0f}"),
    ]
    began = time.perf_counter()
    first = _run(commands["hook"], _event(0))
    figures.append(_figure("memgraph-hook that starts the worker", [(time.perf_counter() - began, None)]))
    if "additionalContext" not in first:
        print("the hook that started the worker printed nothing: it ran out of time", file=sys.stderr)
    while not ask(place, {"status": True}, timeout_s=10)["is_ready"]:
        time.sleep(0.1)
    figures += [
        _figure("memgraph-hook, worker warm", _timed(commands["hook"], runs, _event), f"p95 <= {AIM_HOOK_MS:.0f}"),
        _figure("memgraph recall, worker warm", _timed(recall, runs), f"p50 <= {AIM_RECALL_MS:.0f}"),
        _figure("one request on the socket", _asked(place, runs)),
        _figure("Python that starts and ends", _timed([sys.executable, "-c", "pass"], runs)),
    ]
    ask(place, {"stop": True}, timeout_s=10)
    with suppress(WorkerUnavailableError):  # it closes the store before it leaves the socket
        while ask(place, {"status": True}, timeout_s=10):
            time.sleep(0.1)
    load.append(os.getloadavg()[0])
    return {"memories": memories, "load": load, "figures": figures}


def _commands() -> dict[str, Sequence[str]]:
    return {"hook": [str(SCRIPTS / "memgraph-hook"), "claude-code", "--budget", "20"]}


def _event(number: int) -> str:
    """Return a prompt of a new session: one that was given a memory before does not get it again."""
    prompt = f"How does bus {number} go to {CITIES[number % 16]}?"
    return json.dumps(
        {
            "hook_event_name": "UserPromptSubmit",
            "session_id": f"s{number}-{time.time_ns()}",
            "cwd": "/",
            "prompt": prompt,
        }
    )


def _timed(
    command: Sequence[str], runs: int, given: Callable[[int], str] = lambda _: ""
) -> list[tuple[float, float | None]]:
    """Return (seconds, seconds of processor) of each run of a command."""
    found: list[tuple[float, float | None]] = []
    for number in range(runs):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        printed = _run(command, given(number))
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if command[-1] != "pass" and not printed:
            raise RuntimeError(f"{command} printed nothing")
        found.append((took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return found


def _run(command: Sequence[str], given: str) -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True, cwd="/").stdout


def _asked(place: Place, runs: int) -> list[tuple[float, float | None]]:
    found: list[tuple[float, float | None]] = []
    for number in range(runs):
        began = time.perf_counter()
        recalled(place, f"How does bus {number} go to Oulu?")
        found.append((time.perf_counter() - began, None))
    return found


def _figure(what: str, taken: list[tuple[float, float | None]], aim: str | None = None) -> dict[str, Any]:
    wall = [1_000 * one for one, _ in taken]
    cpu = [1_000 * one for _, one in taken if one is not None]
    return {
        "what": what,
        "p50": statistics.median(wall),
        "p95": percentile(wall, 0.95),
        "cpu": statistics.median(cpu) if cpu else None,
        "runs": len(taken),
        "aim": aim,
    }


if __name__ == "__main__":
    main()
