"""A worker in this process, for tests: the real server and client over a store with a fake model."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.interfaces.worker.client import look_up
from memgraph.interfaces.worker.place import Place, line_of, place_of, read_line, send_line
from memgraph.interfaces.worker.server import Server, take_lock
from memgraph.interfaces.worker.tenant import Tenant

_WHO: dict[str, Any] = {
    "agent": None,
    "justification": None,
    "project": None,
    "tasks": {"all_tasks": False, "task_only": False, "asking_session": None},
    "scope": {"session": None, "task_id": None, "tiers": [], "min_trust": None},
}


@contextmanager
def socket_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Name a folder for sockets whose path is short enough, for a block."""
    with tempfile.TemporaryDirectory(prefix="mgw") as name:
        monkeypatch.setenv("MEMGRAPH_WORKER_DIR", name)
        yield Path(name)


@contextmanager
def served(
    memory: MemGraph | Callable[[], MemGraph], home: Path, *, idle_s: float = 60.0, closes: bool = False
) -> Iterator[tuple[Place, Server]]:
    """Serve a store in a thread for a block."""
    place = place_of(str(home))
    assert place is not None
    lock = take_lock(place)
    assert lock is not None
    tenant = Tenant(place, memory if callable(memory) else lambda: memory)
    server = Server(place, lock, tenant, idle_s=idle_s)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield place, server
    finally:
        server.stop("the test is over")
        thread.join()
        if closes:
            tenant.close()
        os.close(lock)


def searched(place: Place, text: str, *, timeout_s: float = 10, **options: Any) -> str:
    """Return the texts that ``memgraph search`` prints, asked of a worker."""
    given = {**_WHO, "text": text, "limit": 10, "domain": None, "include_archived": False, "as_json": False, **options}
    rows = look_up(place, "search", given, timeout_s=timeout_s)["found"]["rows"]
    return "\n".join(content for content, _ in rows)


def recalled(place: Place, task: str, *, timeout_s: float = 30, **options: Any) -> str:
    """Return what ``memgraph recall`` prints, asked of a worker."""
    limits = dict.fromkeys(("max_tokens", "max_episodic", "max_semantic", "max_procedural", "floor", "when_nothing"))
    asked = {"task": task, "also": [], "rules": "all", "form": "notes", "explain": False, "as_json": False}
    given = {**_WHO, **limits, **asked, **options}
    text: str = look_up(place, "recall", given, timeout_s=timeout_s)["found"]["formatted"]
    return text


@contextmanager
def impostor(place: Place, greeting: Any, answer: Any = None) -> Iterator[list[Any]]:
    """Listen in a worker's place: greet so, or not at all; give the requests that came."""
    Path(place.folder).mkdir(mode=0o700, exist_ok=True)
    heard: list[Any] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place.socket)
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    converse(connection)

        def converse(connection: socket.socket) -> None:
            if greeting is None:
                connection.settimeout(90)
                connection.recv(1)  # until the client gives up
                return
            if greeting == "":
                return
            send_line(connection, line_of(greeting), _soon())
            heard.append(read_line(connection, 1 << 20, _soon()))
            if answer is not None:
                send_line(connection, line_of(answer), _soon())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    Path(place.socket).unlink(missing_ok=True)


def _soon() -> float:
    return time.monotonic() + 90
