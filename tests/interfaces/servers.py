"""HTTP servers for tests: the application in this process, and the command as a process."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvicorn
from starlette.testclient import TestClient

from memgraph import MemGraph
from memgraph.interfaces.http.access.gate import Gate
from memgraph.interfaces.http.access.stores import Stores
from memgraph.interfaces.http.access.tokens import TokenFile, token_file
from memgraph.interfaces.http.app import app_of
from memgraph.interfaces.http.limits import Limits
from memgraph.interfaces.http.run import gate_of, listener, serve
from memgraph.interfaces.operations import Caller
from memgraph.testing import FakeEmbedder, FakeKeys

ADDRESS = re.compile(r"http://[\d.]+:(\d+)")


def gate_on(memory: MemGraph, tokens: TokenFile | None, **options: Any) -> Gate:
    """Return the gate of an open store."""
    home = memory.store.config.home
    return Gate(Stores(lambda _: home, lambda _: memory), tokens, **options)


@contextmanager
def client_of(gate: Gate, secret: str | None = None, *, limits: Limits | None = None) -> Iterator[TestClient]:
    """Start the application for a block; send this token with every request."""
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    app = app_of(gate, limits=limits, close_stores=False)
    with TestClient(app, base_url="http://localhost", headers=headers, follow_redirects=False) as client:
        yield client


class Process:
    """`memgraph serve` as a process."""

    def __init__(self, *arguments: str, port: int = 0, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "memgraph", "serve", "--port", str(port), *arguments]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        self.line = self.process.stdout.readline() if ready else ""
        found = ADDRESS.search(self.line)
        if found is None:
            self.process.kill()
            raise AssertionError(f"the server did not start: {self.line}{self.process.communicate()[1]}")
        self.port = int(found[1])
        self.address = found[0]

    def end(self, number: int = signal.SIGTERM) -> str:
        """Send a signal, and return what the process wrote on standard error."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)[1]


@contextmanager
def running(home: Path, *arguments: str, **options: Any) -> Iterator[Process]:
    """Run a server on a store for a block."""
    process = Process("--home", str(home), *arguments, **options)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.end(signal.SIGKILL)


class Served(NamedTuple):
    memory: MemGraph
    port: int
    server: uvicorn.Server
    thread: threading.Thread
    secret: str


@contextmanager
def serving(place: Path, *, has_tokens: bool = False, **limits: Any) -> Iterator[Served]:
    """Serve in this process for a block, with short times."""
    home = place / "store"
    with MemGraph.open(home, keys_home=place / "keys", embedder=FakeEmbedder(), keys=FakeKeys()) as memory:
        secret = token_file(home).create("read")[1] if has_tokens else ""
        gate = gate_of(home, has_tenants=False, caller=Caller(), open_store=lambda _: memory)
        listening = listener("127.0.0.1", 0, asks=False)
        servers: list[uvicorn.Server] = []
        given = {
            "limits": Limits(**{"head_s": 0.3, "body_s": 0.3, "stalled_s": 0.3, **limits}),
            "on_start": servers.append,
            "close_stores": False,
        }
        thread = threading.Thread(target=serve, args=(gate, listening), kwargs=given)
        thread.start()
        while not servers:
            time.sleep(0.01)
        yield Served(memory, listening.getsockname()[1], servers[0], thread, secret)
        servers[0].should_exit = True
        thread.join()
