"""Queries run in an engine in a separate process, so a crash does not affect the store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from memgraph.errors import GraphError, QueryError
from memgraph.graph import engine as module
from memgraph.graph.storage import database_file as file_module
from memgraph.graph.storage.database_file import QueryLimits
from memgraph.graph.worker import child as child_module
from memgraph.graph.worker import process as process_module
from memgraph.graph.worker.process import EngineProcess, resident_bytes
from memgraph.ports import Change
from tests.engines import Engine

CRASHING = "RETURN date('20000-01-01') AS x"  # the binding cannot convert it and crashes
ENDLESS = "RETURN " + "CASE WHEN true THEN " * 26 + "1" + " END" * 26 + " AS x"  # hours, without a check of the timeout
GREEDY = "WITH range(1, 4000000) AS a " + "WITH list_concat(a, a) AS a " * 12 + "RETURN size(a) AS n"


@pytest.fixture(scope="module")
def aside() -> Iterator[EngineProcess]:
    """A child for these tests only."""
    process = EngineProcess()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_module, "_SHORT_QUERIES", process)
        yield process
    process.stop()


@pytest.fixture(scope="module")
def engine(aside: EngineProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One store for all tests; it has to survive everything."""
    engine = Engine(tmp_path_factory.mktemp("process") / "graph")
    engine.apply([Change("Tag", "t", None, {"id": "t", "name": "auth"})], {"seq": 1})
    yield engine
    engine.close()


@pytest.fixture
def limited(aside: EngineProcess, tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Make engines with limits of queries, in the same process."""
    made: list[Engine] = []

    def make(**limits: Any) -> Engine:
        engine = Engine(tmp_path / f"graph{len(made)}" / "graph", queries=QueryLimits(**limits))
        engine.apply([Change("Tag", "t", None, {"id": "t", "name": "auth"})], {"seq": 1})
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_read_only", lambda query: query)


def alive(engine: Engine) -> None:
    """Assert that the engine reads, writes and queries."""
    assert engine.get("Tag", "t") == {"id": "t", "name": "auth"}
    assert engine.cypher("MATCH (t:Tag) RETURN t.name AS name", {}) == [{"name": "auth"}]
    engine.apply([Change("Agent", "a", None, {"id": "a"})], {"seq": 2})
    engine.apply([Change("Agent", "a", {"id": "a"}, None)], {"seq": 1})
    engine.release()
    assert engine.state() == {"seq": 1}


def pid_of(aside: EngineProcess) -> int:
    assert aside._process is not None
    return aside._process.pid


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool]) -> None:
    wait = threading.Event()
    for _ in range(3_000):
        if condition():
            return
        wait.wait(0.01)
    pytest.fail("it did not happen")


class TestValues:
    @pytest.mark.parametrize(
        "value",
        [
            None, True, 0, -(2**63), 2**63 - 1, 0.1, -0.0, float("inf"), "", "ünï \x00 '数据库'", [1, 2], ["a", None], [[], [1]],
            {"a": 1}, {"a b": {"c": [1.5]}}, {}, {"$kind": "map", "value": [1]}, date(2026, 2, 1), timedelta(days=3, microseconds=5),
            UUID(int=5), Decimal("1.50"), [date(2026, 2, 1)],
        ],
    )  # fmt: skip
    def test_values_round_trip(self, engine: Engine, value: Any) -> None:
        ((name, found),) = engine.cypher("RETURN $x AS x", {"x": value})[0].items()
        assert (name, repr(found)) == ("x", repr(value))

    def test_nan_round_trips(self, engine: Engine) -> None:
        (row,) = engine.cypher("RETURN $x AS x, sqrt(-1) AS y", {"x": float("nan")})
        assert [value != value for value in row.values()] == [True, True]

    def test_times_are_returned_in_canonical_form(self, engine: Engine) -> None:
        moment = datetime(2026, 2, 1, 9, 0, 0, 123_000, UTC)
        for value in (
            moment,
            moment.replace(tzinfo=None),
            moment.astimezone(__import__("zoneinfo").ZoneInfo("Asia/Tokyo")),
        ):
            assert engine.cypher("RETURN $x AS x", {"x": value}) == [{"x": "2026-02-01T09:00:00.123Z"}]

    def test_values_of_engine_types(self, engine: Engine) -> None:
        query = r"RETURN map([1, 2], ['a', 'b']) AS m, BLOB('\\xAA') AS b, interval('3 days') AS i, {a: [1]} AS s"
        assert engine.cypher(query, {}) == [
            {"m": {1: "a", 2: "b"}, "b": b"\xaa", "i": timedelta(days=3), "s": {"a": [1]}}
        ]

    @pytest.mark.parametrize(
        "value", [2**63, 2**70, b"x", {1}, (1,), object(), "\ud800", [], [b"x"], [1, "a"], iter(())]
    )
    def test_unsupported_parameters(self, engine: Engine, value: Any) -> None:
        with pytest.raises(QueryError):
            engine.cypher("RETURN $x AS x", {"x": value})

    def test_it_serves_after_unsupported_parameters(self, engine: Engine, aside: EngineProcess) -> None:
        alive(engine)
        child = pid_of(aside)
        for value in (object(), [1, "a"]):  # refused here, and by the engine
            with pytest.raises(QueryError):
                engine.cypher("RETURN $x AS x", {"x": value})
        alive(engine)
        assert pid_of(aside) == child

    def test_parameters_must_be_those_that_the_query_names(self, engine: Engine) -> None:
        with pytest.raises(QueryError, match=r"\$name, \$other, but no value is given"):
            engine.cypher("MATCH (t:Tag) WHERE t.name = $name OR t.id = $other RETURN t.id", {})
        with pytest.raises(QueryError, match="'Name' is given"):
            engine.cypher("MATCH (t:Tag) WHERE t.name = $name RETURN t.id", {"name": "a", "Name": "b"})
        with pytest.raises(QueryError, match="'x' is given"):
            engine.cypher("RETURN '$x' AS a, 1 AS `$x`", {"x": 1})

    def test_many_rows_and_large_ones(self, engine: Engine) -> None:
        rows = engine.cypher("UNWIND range(1, 10000) AS x UNWIND [1, 2, 3] AS y RETURN x, y, repeat('ü', 300) AS z", {})
        assert len(rows) == 30_000
        assert rows[-1] == {"x": 10_000, "y": 3, "z": "ü" * 300}

    def test_a_too_large_answer_is_refused(self, limited: Callable[..., Engine]) -> None:
        engine = limited(answer_bytes=4 << 20)
        with pytest.raises(QueryError, match="larger than 4 MB"):
            engine.cypher("UNWIND range(1, 10000) AS x RETURN repeat('x', 1000) AS y", {})
        alive(engine)


def _interrupt(engine: Engine, aside: EngineProcess) -> None:
    alive(engine)
    busy = pid_of(aside)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    ranges = " ".join(f"UNWIND range(1, 10000) AS x{n}" for n in range(3))
    with pytest.raises(KeyboardInterrupt):
        engine.cypher(f"{ranges} RETURN sum(x0 * x1 * x2) AS x", {})
    assert not is_running(busy)
    alive(engine)


class TestOneThatGoesAstray:
    def test_a_crash_is_an_error(self, engine: Engine, aside: EngineProcess) -> None:
        alive(engine)
        first = pid_of(aside)
        for _ in range(2):
            with pytest.raises(QueryError, match="SIGSEGV"):
                engine.cypher(CRASHING, {})
        alive(engine)
        assert pid_of(aside) != first

    @pytest.mark.usefixtures("unguarded")
    def test_an_endless_query_is_killed(self, engine: Engine, limited: Callable[..., Engine]) -> None:
        start = time.monotonic()
        with pytest.raises(QueryError, match=r"did not answer for 0\.2 s"):
            limited(timeout_s=0.1, grace_s=0.1).cypher(ENDLESS, {})
        assert time.monotonic() - start < 20
        alive(engine)

    @pytest.mark.usefixtures("unguarded")
    def test_a_query_that_takes_too_much_memory_is_killed(self, engine: Engine, limited: Callable[..., Engine]) -> None:
        small = limited(memory_bytes=(300 << 20) - file_module.BUFFER_POOL_BYTES)
        with pytest.raises(QueryError, match="300 MB of memory"):
            small.cypher(GREEDY, {})
        alive(engine)

    def test_a_child_that_was_killed_is_replaced(self, engine: Engine, aside: EngineProcess) -> None:
        for kind in (signal.SIGKILL, signal.SIGTERM):
            alive(engine)
            os.kill(pid_of(aside), kind)
            until(lambda: aside._process is not None and aside._process.poll() is not None)
            alive(engine)

    def test_a_child_that_is_stopped_is_killed(
        self, engine: Engine, aside: EngineProcess, limited: Callable[..., Engine]
    ) -> None:
        hasty = limited(timeout_s=0.05, grace_s=0.05)
        for params in ({"x": 1}, {"x": "x" * (1 << 20)}):  # more than a pipe holds
            alive(engine)
            os.kill(pid_of(aside), signal.SIGSTOP)
            with pytest.raises(QueryError, match="did not answer"):
                hasty.cypher("RETURN $x AS x", params)
        alive(engine)

    def test_a_child_that_ended_by_itself_is_not_an_error(self, engine: Engine, aside: EngineProcess) -> None:
        alive(engine)
        child, message = (
            aside._process,
            process_module.frame(b'{"engine": "kuzu", "path": "/nowhere", "query": "RETURN 1"'),
        )
        assert child is not None
        os.write(child.stdin.fileno(), message)  # type: ignore[union-attr] - what makes its reader fail
        alive(engine)

    def test_a_child_that_cannot_be_started_is_an_error(
        self, engine: Engine, aside: EngineProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        aside.stop()
        for program in ("/nowhere/python", "/bin/false"):
            with monkeypatch.context() as patched:
                patched.setattr(sys, "executable", program)
                with pytest.raises(GraphError, match=program):
                    engine.cypher("RETURN 1 AS x", {})
        alive(engine)

    def test_an_interrupt_ends_the_query(self, engine: Engine, aside: EngineProcess) -> None:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs without it
        try:
            _interrupt(engine, aside)
        finally:
            signal.signal(signal.SIGINT, before)

    def test_writing_statements_past_the_guard_change_no_file(
        self, engine: Engine, unguarded: None, tmp_path: Path
    ) -> None:
        out = tmp_path / "out.csv"
        for query in (
            f"COPY (MATCH (t:Tag) RETURN t.name) TO '{out}'",
            f"EXPORT DATABASE '{tmp_path / 'exported'}'",
            "MATCH (t:Tag) SET t.name = 'x'",
            "MATCH (t:Tag) DELETE t",
            "CREATE (:Tag {id: 'x'})",
            "DROP TABLE Tag",
            "CHECKPOINT",
            "COMMIT",
        ):
            try:
                engine.cypher(query, {})
            except QueryError:
                continue
        files = [path for path in [out, *tmp_path.glob("exported/**/*")] if path.is_file()]
        assert [path for path in files if path.stat().st_size] == []
        alive(engine)


class TestOneForAll:
    def test_threads_and_engines_take_turns(self, engine: Engine, aside: EngineProcess, tmp_path: Path) -> None:
        other = Engine(tmp_path / "other" / "graph")
        other.apply([Change("Tag", "o", None, {"id": "o"})], {"seq": 1})
        failures: list[BaseException] = []

        def work(mine: Engine, expected: str) -> None:
            try:
                for _ in range(3):
                    assert mine.cypher("MATCH (t:Tag) RETURN t.id AS id", {}) == [{"id": expected}]
            except BaseException as error:
                failures.append(error)
                raise

        given = [(engine, "t"), (other, "o"), (engine, "t"), (other, "o")]
        threads = [threading.Thread(target=work, args=one) for one in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        other.close()

    def test_rows_just_written_are_seen(self, engine: Engine) -> None:
        for number in range(3):
            engine.apply([Change("Agent", f"a{number}", None, {"id": f"a{number}"})], {"seq": number})
            assert engine.cypher("MATCH (a:Agent) RETURN count(*) AS n", {}) == [{"n": number + 1}]
        engine.apply([Change("Agent", f"a{number}", {"id": f"a{number}"}, None) for number in range(3)], {"seq": 1})

    def test_a_query_may_run_inside_a_block(self, engine: Engine) -> None:
        with engine.open():
            turn = engine.generation
            assert engine.cypher("RETURN 1 AS x", {}) == [{"x": 1}]
            assert engine.get("Tag", "t")
            assert engine.cypher("RETURN 1 AS x", {}) == [{"x": 1}]
            assert engine.generation == turn

    def test_no_query_runs_while_rows_are_being_read(self, engine: Engine) -> None:
        with engine._session.use(), pytest.raises(RuntimeError, match="in use"):
            engine.cypher("RETURN 1 AS x", {})
        alive(engine)

    def test_the_child_gets_no_secrets(
        self, engine: Engine, aside: EngineProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMGRAPH_KEY", "0" * 64)
        alive(engine)
        assert b"MEMGRAPH" not in Path(f"/proc/{pid_of(aside)}/environ").read_bytes()

    def test_it_takes_no_modules_from_the_current_directory(
        self, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "kuzu.py").write_text("raise SystemExit('not this one')")
        monkeypatch.chdir(tmp_path)
        alive(engine)

    def test_the_childs_memory_is_measured(self) -> None:
        mine = resident_bytes(os.getpid())
        assert 10 << 20 < mine < 64 << 30
        assert resident_bytes(2**22 + 1) == 0
        if Path("/bin/ps").exists():
            assert 0.5 < process_module._resident_bytes_by_ps(os.getpid()) / mine < 2


PROGRAM = """
import os, sys
from pathlib import Path
from memgraph.graph.storage import database_file as file
from tests.engines import Engine

engine = Engine(Path(sys.argv[1]) / "graph")
print(engine.cypher("RETURN 1 AS x", {}), file._SHORT_QUERIES._process.pid, flush=True)
"""
RANGES = " ".join(f"UNWIND range(1, 10000) AS x{n}" for n in range(3))
BUSY = f'engine.cypher("{RANGES} RETURN sum(x0 * x1 * x2) AS x", {{}})'


class TestParents:
    def start(self, tmp_path: Path, program: str) -> tuple[subprocess.Popen[str], int]:
        command = [sys.executable, "-W", "error", "-c", PROGRAM + program, str(tmp_path)]
        parent = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        line = parent.stdout.readline()
        assert line, parent.communicate()[1]
        return parent, int(line.split()[-1])

    def test_a_parent_that_ends_leaves_no_child(self, tmp_path: Path) -> None:
        parent, child = self.start(tmp_path, "")
        out, errors = parent.communicate(timeout=60)
        assert (parent.returncode, out, errors) == (0, "", "")
        until(lambda: not is_running(child))

    def test_a_killed_parent_leaves_no_child_even_a_busy_one(self, tmp_path: Path) -> None:
        with self.start(tmp_path, BUSY)[0] as parent:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
            (child,) = map(int, children.read_text().split())
            time.sleep(0.5)
            parent.kill()
            parent.wait()
            until(lambda: not is_running(child))
        engine = Engine(tmp_path / "graph")
        assert engine.state() is None
        engine.close()

    def test_a_forked_process_has_its_own_child(self, tmp_path: Path) -> None:
        forked = """
pid = os.fork()
if pid == 0:
    other = Engine(Path(sys.argv[1]) / "other" / "graph")
    print(other.cypher("RETURN 2 AS x", {}), flush=True)
    other.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(engine.cypher("RETURN 3 AS x", {}), file._SHORT_QUERIES._process.pid)
"""
        parent, child = self.start(tmp_path, forked)
        out, _ = parent.communicate(timeout=60)
        assert out.split("\n")[:2] == ["[{'x': 2}]", f"[{{'x': 3}}] {child}"]
        assert parent.returncode == 0


def test_an_idle_child_ends(engine: Engine, aside: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its idle time is a minute; here it runs with a shorter one."""
    program = "import memgraph.graph.worker.child as c; c.IDLE_S = 0.2; c.main()"
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **given: real([command[0], "-P", "-c", program], **given))
    aside.stop()
    alive(engine)
    first = pid_of(aside)
    until(lambda: not is_running(first))
    alive(engine)
    assert child_module.IDLE_S == 60
