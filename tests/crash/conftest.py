"""Children that die, wait or are interrupted, and what is left of a store after them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memgraph.journal.envelope import Line
from tests.crash.failures import FAILURES, Failure

CHILDREN = Path(__file__).parent / "children"
DIMENSION = 16
_POLL_S = 0.01
PATIENCE_S = 120.0


@dataclass
class Child:
    """A process that runs one of the scripts in ``children/``."""

    nursery: Nursery
    pid: int
    out: Path
    err: Path
    exit_code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code (negative: the signal that ended it), or None while it runs."""
        if self.exit_code is None:
            self.exit_code = self.nursery.ask({"pid": self.pid})
        return self.exit_code

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for the end and return the exit code."""
        until = time.monotonic() + patience_s
        while (code := self.poll()) is None:
            assert time.monotonic() < until, f"the child does not end; it said {self.said()[-3:]}, {self.errors()}"
            time.sleep(_POLL_S)
        return code

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def said(self) -> list[Any]:
        """Return the JSON lines that it has printed; one that was cut short by its end does not count."""
        text = self.out.read_text("utf-8") if self.out.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_or_kill(self, patience_s: float) -> int | None:
        """Wait for the end and return the exit code; None if it does not end by itself."""
        until = time.monotonic() + patience_s
        while self.poll() is None and time.monotonic() < until:
            time.sleep(_POLL_S)
        code = self.exit_code
        self.send(signal.SIGKILL)
        return code

    def hears(self, word: Any, patience_s: float = PATIENCE_S) -> None:
        """Wait until it has printed a line."""
        until = time.monotonic() + patience_s
        while word not in self.said():
            assert self.poll() is None, f"the child ended with {self.exit_code}: {self.errors()}"
            assert time.monotonic() < until, f"the child never said {word!r}"
            time.sleep(_POLL_S)

    def errors(self) -> str:
        """Return what it has printed to standard error."""
        return self.err.read_text("utf-8") if self.err.exists() else ""


class Nursery:
    """Starts children. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._started: list[Child] = []
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMGRAPH_")}
        self._process = subprocess.Popen(
            [sys.executable, str(CHILDREN / "nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # one thread each: a fork copies only one
            env={**environment, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )

    def ask(self, order: dict[str, Any]) -> Any:
        """Give an order and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._guard:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def start(self, script: str, *arguments: object, environment: dict[str, str] | None = None) -> Child:
        """Start a script of ``children/`` with these arguments."""
        with self._guard:
            number = len(self._started)
            out, err = self._folder / f"{number}.out", self._folder / f"{number}.err"
            child = Child(self, 0, out, err)
            self._started.append(child)
        child.pid = self.ask(
            {
                "script": str(CHILDREN / f"{script}.py"),
                "arguments": [str(argument) for argument in arguments],
                "out": str(out),
                "err": str(err),
                "environment": environment or {},
            }
        )
        return child

    def run(self, script: str, *arguments: object, environment: dict[str, str] | None = None) -> list[Any]:
        """Run a script to its end, which must be a good one, and return what it said."""
        child = self.start(script, *arguments, environment=environment)
        assert child.wait() == 0, f"{script} {arguments}: exit {child.exit_code}: {child.errors()[-2_000:]}"
        return child.said()

    def close(self) -> None:
        """End what still runs."""
        for child in self._started:
            for number in (signal.SIGCONT, signal.SIGKILL):
                child.send(number)
            child.wait()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with TemporaryDirectory(prefix="memgraph-crash-") as folder:
        made = Nursery(Path(folder))
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def is_long(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--long"))


@pytest.fixture
def show() -> Callable[[str, Sequence[str], Sequence[Sequence[object]]], None]:
    """Print a table of what was done (seen with ``-s``)."""

    def printed(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        cells = [[str(cell) for cell in row] for row in (header, *rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
        print(f"\n{title}")
        for row in cells:
            print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    return printed


@pytest.fixture(scope="session")
def rows() -> dict[str, Failure]:
    """The failures, by what happens."""
    return {failure.what: failure for failure in FAILURES}


@dataclass
class Scene:
    """A store that something will happen to."""

    folder: Path
    store_id: str
    digest: str
    """What its digest must be after it has healed."""
    heard: list[str] = field(default_factory=list)
    """Warnings and notices so far."""

    @property
    def home(self) -> Path:
        return self.folder / "store"

    @property
    def keys_home(self) -> Path:
        return self.folder / "keys"

    @property
    def database(self) -> Path:
        return self.home / "memgraph.db"

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement on the database past memgraph, as whoever can write the file may; return the rows."""
        with closing(sqlite3.connect(self.database, isolation_level=None)) as raw:
            return raw.execute(statement, values).fetchall()

    def change(self, old: str, new: str, *, where: str = "1", column: str = "payload") -> None:
        """Replace text in the events."""
        self.sql(
            f"UPDATE event SET {column} = CAST(replace(CAST({column} AS TEXT), ?, ?) AS BLOB) WHERE {where}", old, new
        )

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """Return what every table holds."""
        names = self.sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return {name: self.sql(f"SELECT * FROM {name} ORDER BY 1, 2") for (name,) in names}

    def put(self, rows: dict[str, list[tuple[Any, ...]]]) -> None:
        """Let the tables hold what `rows` returned, as an older copy does."""
        for name, found in rows.items():
            self.sql(f"DELETE FROM {name}")
            for row in found:
                self.sql(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", *row)

    def settle(self) -> None:
        """Bring everything into the file, which nobody has open."""
        self.sql("PRAGMA wal_checkpoint(TRUNCATE)")
        for suffix in ("-wal", "-shm"):
            self.database.with_name(self.database.name + suffix).unlink(missing_ok=True)

    @property
    def head(self) -> Path:
        return self.keys_home / "heads" / self.store_id

    @property
    def key(self) -> Path:
        return self.keys_home / "keys" / f"{self.store_id}.json"

    @property
    def cache(self) -> Path:
        (path,) = (self.home / "cache").glob("*.f32")
        return path

    @property
    def graph(self) -> Path:
        (path,) = (self.home / "graph").glob("base-*")
        return path

    @property
    def index(self) -> Path:
        return self.home / "index" / "index.npz"

    @property
    def lines(self) -> list[bytes]:
        """The journal's events, as lines of JSON."""
        columns = "seq, type, head, payload, salt, signature"
        return [Line(*row).data for row in self.sql(f"SELECT {columns} FROM event ORDER BY seq")]

    def open(self, *, clock: Any = None, **settings: Any) -> Any:
        """Open the store."""
        import memgraph
        from memgraph.testing import FakeClock, FakeEmbedder

        config = memgraph.AgentMemoryConfig(**{"home": self.home, "keys_home": self.keys_home, **settings})
        parts: dict[str, Any] = {"embedder": FakeEmbedder(DIMENSION), "clock": clock or FakeClock()}
        return memgraph.AgentMemoryStore(config, **parts)

    def files(self) -> object:
        """Return what the database holds, and what lies beside the keys, but for locks."""
        found = [path for path in self.keys_home.rglob("*") if path.is_file() and not path.name.startswith("lock")]
        try:
            tables: object = self.rows() if self.database.is_file() else None
        except sqlite3.Error:
            tables = self.database.read_bytes()
        return tables, {str(path): path.read_bytes() for path in found}

    def copy(self, folder: Path) -> Scene:
        """Return a copy elsewhere."""
        shutil.copytree(self.folder, folder)
        return Scene(folder, self.store_id, self.digest)


def graph_ids(store: Any) -> Counter[str]:
    """Count the ids that a query finds in the graph."""
    return Counter(row["m.id"] for row in store.cypher("MATCH (m:Memory) RETURN m.id"))


def furnished(folder: Path) -> Scene:
    """Make a store of a dozen commits, some of several events."""
    scene = Scene(folder, "", "")
    with scene.open() as store:
        ids = [memory.id for memory in store.insert_memories([episode(number) for number in range(3)])]
        ids += [store.insert_memory(episode(number)).id for number in (3, 4)]
        general = {"type": "semantic", "content": "Tokens expire", "supporting_memory_ids": ids[:2]}
        ids.append(store.insert_memory(general).id)
        store.link(ids[1], "SUPERSEDES", ids[0], reason="newer")
        store.update_memory(ids[2], content="It was the clock in clock.py", tags=["time"])
        store.update_memory(ids[3], is_suppressed=True)
        store.delete_memory(ids[4])
        store.record_access(ids[5])
        store.flush()
        store.insert_memories([episode(number) for number in (5, 6)])
        store.insert_memory({"type": "procedural", "content": "How to log in", "steps": ["one", "two"], "task_id": "T"})
        store.insert_memory(episode(7))
        assert store.get_all_memories()  # the index is made
        assert graph_ids(store)  # the graph is made
        scene.store_id, scene.digest = store.store_id, store.digest()
    return scene


def episode(number: int) -> dict[str, Any]:
    """Return a memory with edges of many kinds."""
    return {
        "type": "episodic", "content": f"Try {number}: the build failed in login{number}.py", "project_id": "P",
        "tags": [f"t{number}", "auth"], "agents_involved": ["MARS"], "session_id": "s",
    }  # fmt: skip


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return furnished(tmp_path_factory.mktemp("template") / "one")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Another store, which is not to be changed."""
    return furnished(tmp_path_factory.mktemp("stranger") / "other")


@pytest.fixture
def scene(template: Scene, tmp_path: Path) -> Iterator[Scene]:
    """A copy of the store of a dozen commits; what is said while it is open is heard."""
    copied = template.copy(tmp_path / "scene")

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            copied.heard.append(record.getMessage())

    ear = Ear(logging.WARNING)
    logging.getLogger("memgraph").addHandler(ear)
    yield copied
    logging.getLogger("memgraph").removeHandler(ear)
    shutil.rmtree(copied.folder, ignore_errors=True)
