"""A graph that was damaged, or left open by a kill, never crashes the store's process: it is rebuilt completely.

On real files, after real kills; what the engine would do with the damage, it does in its own process.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import GraphError
from memgraph.graph.worker.process import EngineProcess
from memgraph.store.projection.projector import Projector

WRITER = """
import os, sys
from pathlib import Path
import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

folder, has_checkpoint = Path(sys.argv[1]), len(sys.argv) > 2
config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
store = memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00.000Z"))
for number in range(4):
    store.insert_memory({"type": "episodic", "content": f"killed {number}", "tags": ["auth"], "project_id": "P"})
engine = store._projector.engine
if has_checkpoint:
    with engine._session.use() as connection:
        connection.checkpoint()
    store.insert_memory({"type": "episodic", "content": "the last one"})
with engine.open():
    os.kill(os.getpid(), 9)
"""


@pytest.fixture
def rebuilds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the rebuilds."""
    found: list[int] = []
    real = Projector.rebuild
    monkeypatch.setattr(Projector, "rebuild", lambda self, progress=None: (found.append(1), real(self, progress))[1])
    return found


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the probes of a file."""
    found: list[int] = []
    real = EngineProcess.probe
    monkeypatch.setattr(
        EngineProcess, "probe", lambda self, request, limits: (found.append(1), real(self, request, limits))[1]
    )
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a closed store of eight memories, and its digest."""
    folder = tmp_path_factory.mktemp("damage")
    with opened(folder) as store:
        for number in range(8):
            store.insert_memory(
                {"type": "episodic", "content": f"memory {number}", "tags": ["auth", "db"], "project_id": "P"}
            )
        store.rebuild()  # merges everything into the file
        digest = store.digest()
    return folder, digest


@pytest.fixture
def folder(history: tuple[Path, str], tmp_path: Path) -> Path:
    """Return a copy of that store."""
    shutil.copytree(history[0], tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def digest(history: tuple[Path, str]) -> str:
    return history[1]


def opened(folder: Path) -> Any:
    from memgraph.testing import FakeClock, FakeEmbedder

    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00.000Z"))


def graph(folder: Path, name: str = "memgraph.kuzu") -> Path:
    return folder / "store" / "graph" / name


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]


def check(folder: Path, digest: str) -> None:
    """Assert that a store is complete, verifies, and can be used."""
    with opened(folder) as store:
        assert store.digest() == digest
        store.verify()
        assert store.cypher("MATCH (m:Memory) RETURN count(*) AS n") == [{"n": store.get_stats().total}]
        store.insert_memory({"type": "episodic", "content": "life goes on"})
        store.verify()


def a_flipped_byte(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(flipped(data, data.index(b"memory 5")))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("x")


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a flipped byte": a_flipped_byte,
    "a byte less": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a byte more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(path.stat().st_size)),
    "unreadable": lambda path: path.chmod(0),
    "a folder": a_folder,
    "a pipe": a_pipe,
    "a note of nothing": lambda path: path.with_name("opened.json").write_text(""),
    "no note": lambda path: path.with_name("opened.json").unlink(),
    "a log alone": lambda path: path.rename(path.with_name(path.name + ".wal")),
    "everything gone": lambda path: shutil.rmtree(path.parent),
}
SELDOM = {
    "a byte less",
    "a byte more",
    "half",
    "empty",
    "noise",
    "unreadable",
    "a folder",
    "a pipe",
    "a note of nothing",
}
"""Similar to the others: tested with --long only."""


class TestAfterAClose:
    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[pytest.mark.long] if name in SELDOM else []) for name in DAMAGES]
    )
    def test_a_damaged_graph_is_rebuilt(self, folder: Path, digest: str, name: str, rebuilds: list[int]) -> None:
        DAMAGES[name](graph(folder))
        check(folder, digest)
        assert len(rebuilds) == (name not in {"unreadable", "a log alone", "everything gone"})

    def test_an_unchanged_graph_is_opened_without_a_rebuild(
        self, folder: Path, digest: str, rebuilds: list[int], probes: list[int]
    ) -> None:
        check(folder, digest)
        assert (rebuilds, probes) == ([], [])

    def test_another_stores_graph_is_replaced(
        self, folder: Path, digest: str, rebuilds: list[int], open_store: Any
    ) -> None:
        other = open_store("other")
        other.insert_memory({"type": "episodic", "content": "of another store"})
        _ = other.digest()
        other.close()
        shutil.rmtree(graph(folder).parent)
        shutil.copytree(other.config.home / "graph", graph(folder).parent)
        check(folder, digest)
        assert len(rebuilds) == 1

    def test_damage_that_crashes_the_engine_does_not_crash_the_store(self, folder: Path, digest: str) -> None:
        """Many places in one test: only a few of them make the engine crash, and no test may depend on which."""
        path = graph(folder)
        data, chance = path.read_bytes(), random.Random(7)
        for _ in range(2):
            for place in (chance.randrange(len(data)) for _ in range(64)):
                data = flipped(data, place)
            path.write_bytes(data)
            with opened(folder) as store:
                assert store.digest() == digest


def kill(folder: Path, *options: str) -> None:
    """Write to a store in a process that kills itself."""
    command = [sys.executable, "-c", WRITER, str(folder), *options]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert done.returncode == -9, done.stderr.decode()


def replayed(folder: Path) -> str:
    """Return the digest of a replay."""
    elsewhere = folder.with_name(folder.name + " replayed")
    shutil.copytree(folder, elsewhere)
    shutil.rmtree(elsewhere / "store" / "graph")
    with opened(elsewhere) as store:
        return str(store.digest())


@pytest.fixture(scope="module")
def after_a_kill(
    history: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., tuple[Path, str]]:
    """Return that store after a kill with these options, and the digest of its replay; each kill happens once."""

    @cache
    def killed(*options: str) -> tuple[Path, str]:
        folder = tmp_path_factory.mktemp("killed") / "store"
        shutil.copytree(history[0], folder)
        kill(folder, *options)
        return folder, replayed(folder)

    return killed


@pytest.fixture
def killed(after_a_kill: Callable[..., tuple[Path, str]], tmp_path: Path) -> Callable[..., tuple[Path, str]]:
    """Return a copy of that store."""

    def copied(*options: str) -> tuple[Path, str]:
        folder, digest = after_a_kill(*options)
        shutil.copytree(folder, tmp_path / "killed")
        return tmp_path / "killed", digest

    return copied


class TestAfterAKill:
    def test_acknowledged_events_are_kept_without_a_rebuild(
        self, killed: Callable[..., tuple[Path, str]], rebuilds: list[int], probes: list[int]
    ) -> None:
        folder, digest = killed()
        assert graph(folder, "memgraph.kuzu.wal").stat().st_size
        check(folder, digest)
        assert (rebuilds, probes) == ([], [])

    def test_no_byte_of_the_engines_log_is_trusted(
        self, killed: Callable[..., tuple[Path, str]], rebuilds: list[int]
    ) -> None:
        folder, digest = killed()
        log = graph(folder, "memgraph.kuzu.wal")
        data = log.read_bytes()
        log.write_bytes(data.replace(b"killed 2", b"kindly 2"))
        check(folder, digest)
        assert rebuilds == []

    def test_a_file_that_was_being_rewritten_is_rebuilt(
        self, killed: Callable[..., tuple[Path, str]], rebuilds: list[int], probes: list[int]
    ) -> None:
        check(*killed("checkpoint"))
        assert (len(rebuilds), probes) == (1, [])

    @pytest.mark.parametrize(
        "what",
        [
            "noise for a file",
            *(pytest.param(what, marks=pytest.mark.long) for what in ("noise for a log", "a log cut short", "empty")),
        ],
    )
    def test_a_graph_that_does_not_open_is_rebuilt(
        self, killed: Callable[..., tuple[Path, str]], rebuilds: list[int], what: str
    ) -> None:
        folder, digest = killed("checkpoint")
        log, path = graph(folder, "memgraph.kuzu.wal"), graph(folder)
        if what == "noise for a log":
            log.write_bytes(bytes(range(255, -1, -1)) * 40)
        elif what == "noise for a file":
            path.write_bytes(random.Random(1).randbytes(path.stat().st_size))
        elif what == "empty":
            path.write_bytes(b"")
        else:
            log.write_bytes(log.read_bytes()[:-7])
        check(folder, digest)
        assert len(rebuilds) == 1

    def test_the_third_kill_in_a_row_causes_a_rebuild(self, folder: Path, rebuilds: list[int]) -> None:
        for _ in range(3):
            assert rebuilds == []
            kill(folder)
        check(folder, replayed(folder))
        assert len(rebuilds) == 1


def test_a_graph_that_always_fails_is_an_error_not_a_loop(
    folder: Path, rebuilds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(folder) as store:
        engine = store._projector.engine

        def broken() -> None:
            raise GraphError("it is broken")

        engine.release()
        with monkeypatch.context() as patched:
            patched.setattr(engine, "state", broken)
            with pytest.raises(GraphError, match="broken"):
                store.get_stats()
        assert len(rebuilds) == 1
        assert store.get_stats().total == 8
