"""What a request to `memgraph serve` costs, with 1, 10 and 50 clients at once: reads, writes, and writes with a key.

``.venv/bin/python tests/benchmarks/server.py [--memories N] [--requests N] [--json]``
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from memgraph import MemGraph, SemanticMemory  # noqa: E402
from tests.benchmarks.figures import percentile  # noqa: E402
from tests.benchmarks.worker import CITIES, WAYS  # noqa: E402
from tests.interfaces.servers import running  # noqa: E402

CLIENTS = (1, 10, 50)
EPISODE = {"action": "Took it", "reasoning": "It was the quickest", "outcome": "success"}


def main() -> None:
    """Measure, and print the figures with the machine's load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=1_000)
    parser.add_argument("--requests", type=int, default=500, help="requests of each kind and number of clients")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "store"
        os.environ |= {"HOME": name, "MEMGRAPH_KEYS_HOME": str(Path(name) / "keys")}
        with MemGraph.open(home) as memory:
            texts = [f"Bus {one} to {CITIES[one % 16]} goes {WAYS[one % 5]}" for one in range(given.memories)]
            memory.store.insert_memories([SemanticMemory(content=text, source="benchmark") for text in texts])
        with running(home) as server:
            document = measured(server.port, given.requests)
            server.end()
    if given.json:
        print(json.dumps(document))
        return
    load = document["load"]
    print(f"{given.memories:,} memories; load of the machine {load[0]:.1f} at the start, {load[1]:.1f} at the end\n")
    print(f"{'':34}{'clients':>8}{'p50 ms':>9}{'p95 ms':>9}{'a second':>10}{'again':>7}")
    for one in document["figures"]:
        print(
            f"{one['what']:34}{one['clients']:8}{one['p50']:9.1f}{one['p95']:9.1f}{one['per_second']:10.0f}{one['repeated']:7}"
        )


def measured(port: int, requests: int) -> dict[str, Any]:
    """Return the figures of all kinds of requests."""
    load = [os.getloadavg()[0]]
    kinds: dict[str, tuple[str, Any, bool]] = {
        "recall": ("recall", lambda one: {"task": f"How does bus {one} go to {CITIES[one % 16]}?"}, False),
        "save_episode": ("save_episode", lambda one: {**EPISODE, "task": f"Go by bus {one}"}, False),
        "save_episode with a key": ("save_episode", lambda one: {**EPISODE, "task": f"Go by tram {one}"}, True),
    }
    _sent(port, "recall", {"task": "warm up"}, False)
    figures = []
    for what, (name, arguments, has_key) in kinds.items():
        for clients in CLIENTS:
            each = max(1, requests // clients)
            began = time.perf_counter()
            with ThreadPoolExecutor(clients) as pool:
                taken = list(pool.map(partial(_many, port, name, arguments, has_key, each), range(clients)))
            seconds = time.perf_counter() - began
            times = [1_000 * one for found, _ in taken for one in found]
            figures.append(
                {
                    "what": what,
                    "clients": clients,
                    "p50": statistics.median(times),
                    "p95": percentile(times, 0.95),
                    "per_second": len(times) / seconds,
                    "repeated": sum(repeated for _, repeated in taken),
                }
            )
    load.append(os.getloadavg()[0])
    return {"load": load, "figures": figures}


def _many(port: int, name: str, arguments: Any, has_key: bool, number: int, client: int) -> tuple[list[float], int]:
    """Return the seconds of a client's requests on one connection, and how many had to be sent again."""
    times, repeated = [], 0
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for one in range(number):
        began = time.perf_counter()
        while not _sent(port, name, arguments(client * number + one), has_key, connection):
            repeated += 1
            time.sleep(1)
        times.append(time.perf_counter() - began)
    connection.close()
    return times, repeated


def _sent(
    port: int, name: str, arguments: Any, has_key: bool, connection: http.client.HTTPConnection | None = None
) -> bool:
    used = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": str(uuid4())} if has_key else {})}
    used.request("POST", f"/v1/{name}", json.dumps(arguments), headers)
    found = used.getresponse()
    body = found.read()
    if connection is None:
        used.close()
    if found.status not in {200, 429}:
        raise RuntimeError(f"{name}: {found.status} {body.decode()}")
    return found.status == 200


if __name__ == "__main__":
    main()
