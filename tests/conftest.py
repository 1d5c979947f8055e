"""What every test stands on: fakes, a store of its own, no network and no user's files."""

from __future__ import annotations

import gc
import ipaddress
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

DIMENSION = 64
START = "2026-02-01T09:00:00.000Z"
_IN_MEMORY = Path("/dev/shm")
_ROOM_IN_MEMORY = 4 << 30
"""A test's folder has some megabytes, and goes when the test has passed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")
    parser.addoption("--engine", default="kuzu", help="the graph engine of the tests that take one: kuzu or ladybug")


def pytest_configure(config: pytest.Config) -> None:
    """Let the tests be interrupted and interrupt, and spare stores and processes what they need not do."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs without it
    _spare(config)


def _spare(config: pytest.Config) -> None:
    """Spare thousands of stores the disk, and hundreds of processes what they need not do. Workers inherit it.

    Half of a small store's life is waiting until the disk has what was synced. What a process handed to the system outlives it in
    memory too, so tests that end processes prove the same there. ``TMPDIR`` takes the tests to another place.
    """
    if "TMPDIR" not in os.environ and config.getini("tmp_path_retention_policy") != "all" and _has_room_in_memory():
        os.environ["TMPDIR"] = tempfile.tempdir = str(_IN_MEMORY)
    # How long a machine takes is not what is tested. The default suite tries the same examples each time, so that what fails was
    # broken by the change at hand; --long tries new ones.
    settings.register_profile(
        "memgraph",
        deadline=None,
        derandomize=not config.getoption("--long"),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("memgraph")
    os.environ["TESTED_ENGINE"] = config.getoption("--engine")
    os.environ["TESTED_AT_LENGTH"] = "yes" if config.getoption("--long") else ""
    if (
        "PYTEST_XDIST_WORKER" in os.environ
    ):  # coverage measures the workers, not the processes that tests start and kill
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    # without stored bytecode, each process compiles the package, and each worker of pytest-xdist rewrites every test
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin while they wait: the cores are the tests'
    # each open graph has a thread, and the C library gives threads memory pools of their own, which it keeps: a worker
    # grew to gigabytes, and the system spent its time handing out pages
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")


def _has_room_in_memory() -> bool:
    is_there = sys.platform == "linux" and os.access(_IN_MEMORY, os.W_OK | os.X_OK)
    return is_there and shutil.disk_usage(_IN_MEMORY).free > _ROOM_IN_MEMORY


def pytest_collection(session: pytest.Session) -> None:
    """Collect tests without collecting garbage: a third of the time went into walking objects that all stay."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Collect garbage again, but not among what was collected, which stays to the end."""
    gc.enable()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; run with --long"))


class NetworkBlockedError(RuntimeError):
    """A test tried to reach another machine."""


def _is_local(host: object) -> bool:
    if host in {None, "", "localhost", b"localhost"}:
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def network_attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Refuse everything but loopback and UNIX sockets, and fail the test even if the refusal was swallowed."""
    attempts: list[str] = []

    def refuse(target: object) -> None:
        attempts.append(repr(target))
        raise NetworkBlockedError(f"tests may not reach {target!r}")

    def guarded(name: str, address_of: Callable[[tuple[Any, ...]], Any]) -> None:
        real = getattr(socket.socket, name)

        def call(self: socket.socket, *args: Any) -> Any:
            address = address_of(args)
            if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_local(address[0]):
                refuse(address)
            return real(self, *args)

        monkeypatch.setattr(socket.socket, name, call)

    for name in ("connect", "connect_ex"):
        guarded(name, lambda args: args[0])
    guarded("sendto", lambda args: args[-1])
    real_lookup = socket.getaddrinfo

    def lookup(host: object, *args: Any, **options: Any) -> Any:
        if not _is_local(host):
            refuse(host)
        return real_lookup(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    yield attempts
    assert not attempts, f"the network was asked for: {', '.join(attempts)}"


@pytest.fixture(autouse=True)
def isolated_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point every place that belongs to the user into this test's folder, and return the home."""
    home = tmp_path / "user"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("MEMGRAPH_", "OLLAMA_", "XDG_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MEMGRAPH_HOME", str(home / "memgraph"))
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(home / "keys"))
    monkeypatch.setenv(
        "OLLAMA_HOST", "127.0.0.1:9"
    )  # the discard port: a model server that happens to run is no fixture
    return home


@pytest.fixture
def clock() -> Any:
    from memgraph.testing import FakeClock

    return FakeClock(start=START)


@pytest.fixture
def fake_embedder() -> Callable[..., Any]:
    """Make a fake embedder; `vectors` maps texts to the vectors that they shall have."""
    from memgraph.testing import FakeEmbedder

    def make(vectors: dict[str, Any] | None = None) -> Any:
        return FakeEmbedder(dimension=DIMENSION, vectors=vectors or {})

    return make


@pytest.fixture
def embedder(fake_embedder: Callable[..., Any]) -> Any:
    return fake_embedder()


@pytest.fixture
def embedded_texts() -> Callable[[Any], list[str]]:
    """List every text that a fake embedder was asked for, in order, batches flattened."""

    def flatten(call: object) -> list[str]:
        return [call] if isinstance(call, str) else [text for part in call for text in flatten(part)]  # type: ignore[attr-defined]

    return lambda embedder: flatten(list(embedder.calls))


@pytest.fixture
def vector_at() -> Callable[..., np.ndarray]:
    """Make a unit vector with a given cosine to axis 0; vectors of different `axis` lean in different directions."""

    def make(cosine: float, *, axis: int = 1) -> np.ndarray:
        vector = np.zeros(DIMENSION, dtype=np.float32)
        vector[0], vector[axis] = cosine, np.sqrt(1.0 - cosine * cosine)
        return vector

    return make


@pytest.fixture
def config(tmp_path: Path) -> Any:
    from memgraph.config import AgentMemoryConfig

    return AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")


@pytest.fixture
def open_store(tmp_path: Path, clock: Any, embedder: Any) -> Iterator[Callable[..., Any]]:
    """Open stores under this test's folder, by name; the same name again is the same store. All are closed at the end."""
    from memgraph import AgentMemoryStore
    from memgraph.config import AgentMemoryConfig

    with ExitStack() as opened:

        def open_one(name: str = "store", **given: Any) -> Any:
            parts = {part: given.pop(part, default) for part, default in (("embedder", embedder), ("clock", clock))}
            settings = AgentMemoryConfig(home=tmp_path / name, keys_home=tmp_path / "keys", **given)
            return opened.enter_context(AgentMemoryStore(settings, **parts))

        yield open_one


@pytest.fixture
def store(open_store: Callable[..., Any]) -> Any:
    """Return an opened store over the fakes, under ``store`` in this test's folder (what `config` names)."""
    return open_store()
