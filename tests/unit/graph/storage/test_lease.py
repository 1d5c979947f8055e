"""Access to the graph by turns: between engines of one process, and between processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph.disk.lock import ProcessLock
from memgraph.errors import BusyError, ClosedError
from memgraph.graph.storage import lease as module
from memgraph.graph.storage.lease import Session
from memgraph.ports import Change
from tests.engines import Engine

FOREVER_S = 3_600.0


class Door:
    """A session's resource, which counts its openings and detects concurrent use."""

    def __init__(self) -> None:
        self.opened = self.closed = 0

    def open(self) -> str:
        assert self.opened == self.closed, "two sessions have it open"
        self.opened += 1
        return f"resource {self.opened}"

    def close(self, resource: str) -> None:
        assert resource == f"resource {self.opened}"
        self.closed += 1


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def make(tmp_path: Path, door: Door) -> Iterator[Callable[..., Session[str]]]:
    made: list[Session[str]] = []

    def one(*, timeout_s: float = 30.0, idle_s: float = FOREVER_S) -> Session[str]:
        made.append(
            Session(
                tmp_path / "graph.lock",
                open_resource=door.open,
                close_resource=door.close,
                timeout_s=timeout_s,
                idle_s=idle_s,
            )
        )
        return made[-1]

    yield one
    for session in made:
        session.close()


class TestOne:
    def test_it_opens_at_first_use_and_stays_open(self, make: Any, door: Door) -> None:
        session = make()
        assert door.opened == session.generation == 0
        for _ in range(3):
            with session.use() as resource:
                assert resource == "resource 1"
        assert (door.opened, door.closed, session.generation) == (1, 0, 1)

    def test_blocks_nest(self, make: Any, door: Door) -> None:
        session = make(idle_s=0)
        with session.use() as outer, session.use() as inner:
            assert outer == inner
            session.release()
            assert door.closed == 0
        assert door.closed == 1

    def test_without_idle_time_it_closes_at_once(self, make: Any, door: Door) -> None:
        session = make(idle_s=0)
        for turn in (1, 2, 3):
            with session.use():
                pass
            assert (door.opened, door.closed, session.generation) == (turn, turn, turn)

    def test_it_is_released_when_idle(self, make: Any, door: Door) -> None:
        session = make(idle_s=0.001)
        with session.use():
            pass
        for thread in threading.enumerate():
            if thread.name == "memgraph-idle":
                thread.join(30)
        assert door.closed == 1

    def test_it_can_be_released_and_taken_again(self, make: Any, door: Door) -> None:
        session = make()
        with session.use():
            pass
        session.release()
        session.release()
        with session.use() as resource:
            assert resource == "resource 2"

    def test_an_error_inside_releases_it(self, make: Any, door: Door) -> None:
        session = make(idle_s=0)
        with pytest.raises(KeyError), session.use():
            raise KeyError("x")
        assert door.closed == 1

    def test_a_resource_that_does_not_open_leaves_the_lock_free(self, tmp_path: Path, make: Any) -> None:
        def broken() -> str:
            raise OSError("broken")

        session = Session(
            tmp_path / "graph.lock", open_resource=broken, close_resource=print, timeout_s=1.0, idle_s=0.0
        )
        for _ in range(2):
            with pytest.raises(OSError, match="broken"), session.use():
                pass
        with make(timeout_s=0.0).use():
            pass

    def test_a_closed_session_refuses(self, make: Any, door: Door) -> None:
        session = make()
        with session.use():
            pass
        session.close()
        session.close()
        assert door.closed == 1
        with pytest.raises(ClosedError), session.use():
            pass

    def test_files_can_be_replaced_while_it_is_closed(self, make: Any, door: Door) -> None:
        session, other = make(), make(timeout_s=0.0)
        with session.use():
            pass
        with session.closed():
            assert door.closed == 1
            with pytest.raises(BusyError), other.use():
                pass
        with session.use() as resource:
            assert resource == "resource 2"

    def test_a_resource_that_does_not_close_leaves_the_lock_free(self, tmp_path: Path, make: Any) -> None:
        def broken(resource: str) -> None:
            raise OSError("broken")

        session = Session(
            tmp_path / "graph.lock", open_resource=lambda: "x", close_resource=broken, timeout_s=1.0, idle_s=FOREVER_S
        )
        with session.use():
            pass
        with pytest.raises(OSError, match="broken"), session.closed():
            pass
        with make(timeout_s=0.0).use():
            pass

    def test_a_forked_process_opens_its_own(self, make: Any, door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
        session = make()
        with session.use():
            pass
        here = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: here + 1)
        with pytest.raises(ClosedError, match="forked"), session.use():
            pass
        with pytest.raises(ClosedError, match="forked"), session.closed():
            pass
        session.release()
        session.close()
        assert door.closed == 0
        monkeypatch.undo()
        with session.use() as resource:
            assert resource == "resource 1"

    def test_files_are_not_replaced_under_a_user(self, make: Any) -> None:
        session = make()
        with session.use(), pytest.raises(RuntimeError, match="in use"), session.closed():
            pass


class TestSeveral:
    def test_a_waiting_session_gets_it(self, make: Any, door: Door) -> None:
        first, second = make(), make()
        with first.use():
            pass
        for turn, session in enumerate((second, first, second, first), start=2):
            with session.use() as resource:
                assert resource == f"resource {turn}"

    def test_a_user_is_not_disturbed(self, make: Any, tmp_path: Path) -> None:
        first, second = make(), make(timeout_s=0.05)
        with first.use():
            with pytest.raises(BusyError) as refused, second.use():
                pass
            assert refused.value.pid == os.getpid()
            assert refused.value.timeout_s == 0.05
            assert str(os.getpid()) in str(refused.value)
        assert not (tmp_path / "graph.wanted").exists()

    def test_the_user_releases_it_at_the_end_of_its_block_when_another_waits(
        self, make: Any, door: Door, tmp_path: Path
    ) -> None:
        first, second = make(), make()
        seen: list[str] = []
        with first.use():
            waiter = threading.Thread(target=lambda: seen.append(_use(second)))
            waiter.start()
            _until((tmp_path / "graph.wanted").exists)
        waiter.join(30)
        assert seen == ["resource 2"]

    def test_a_request_left_by_a_dead_process_is_ignored(self, make: Any, tmp_path: Path) -> None:
        (tmp_path / "graph.wanted").touch()
        with make().use():
            pass
        assert not (tmp_path / "graph.wanted").exists()

    def test_a_request_survives_that_another_waiter_gets_it(
        self, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of two that wait, the one that gets it must not erase the other's request."""
        holder, waiters = make(), [make(timeout_s=3.0), make(timeout_s=3.0)]
        waiting = threading.Semaphore(0)
        real = ProcessLock.acquire

        def announced(self: ProcessLock, timeout_s: float) -> None:
            if timeout_s:
                waiting.release()
            real(self, timeout_s)

        monkeypatch.setattr(ProcessLock, "acquire", announced)
        monkeypatch.setattr(module, "_YIELD_S", 0.0)
        seen: list[bool] = []

        def wait(session: Session[str]) -> None:
            try:
                with session.use():
                    seen.append(_comes((tmp_path / "graph.wanted").exists))
            except BusyError:
                seen.append(False)

        with holder.use():
            threads = [threading.Thread(target=wait, args=(session,)) for session in waiters]
            for thread in threads:
                thread.start()
            for _ in threads:
                assert waiting.acquire(timeout=30)
        for thread in threads:
            thread.join(30)
        assert len(seen) == 2
        assert seen[0], "the first waiter removed the request of the second, which then waits in vain"

    def test_a_request_that_is_not_renewed_expires(self, make: Any, door: Door, tmp_path: Path) -> None:
        session = make()
        with session.use():
            (tmp_path / "graph.wanted").touch()
            a_while_ago = time.time() - 5
            os.utime(tmp_path / "graph.wanted", (a_while_ago, a_while_ago))
        threading.Event().wait(0.1)
        assert door.closed == 0

    def test_many_waiters_all_get_it(self, make: Any, tmp_path: Path) -> None:
        """A holder keeps it for good unless it is requested, so each waiter depends on its own request."""
        sessions = [make(timeout_s=20.0) for _ in range(6)]
        seen: list[str] = []
        threads = [threading.Thread(target=lambda one=one: seen.append(_use(one))) for one in sessions]
        with make().use():
            for thread in threads:
                thread.start()
            _until((tmp_path / "graph.wanted").exists)
        for thread in threads:
            thread.join(60)
        assert len(seen) == 6

    def test_threads_of_one_session_take_turns(self, make: Any) -> None:
        session = make()
        inside: list[int] = []

        def work() -> None:
            for _ in range(50):
                with session.use():
                    inside.append(1)
                    assert len(inside) == 1
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert session.generation == 1


def _use(session: Session[str]) -> str:
    with session.use() as resource:
        return resource


def _comes(condition: Callable[[], bool]) -> bool:
    """Wait a second for a condition."""
    wait = threading.Event()
    return any(condition() or wait.wait(0.01) for _ in range(100))


def _until(condition: Callable[[], bool]) -> None:
    wait = threading.Event()
    for _ in range(3_000):
        if condition():
            return
        wait.wait(0.01)
    pytest.fail("it did not happen")


class TestEngines:
    def test_two_on_one_path_see_each_others_rows(self, tmp_path: Path) -> None:
        engines = [Engine(tmp_path / "graph", idle_s=FOREVER_S) for _ in range(2)]
        for turn in range(6):
            engine = engines[turn % 2]
            engine.apply([Change("Tag", f"t{turn}", None, {"id": f"t{turn}", "name": "x"})], {"seq": turn})
            assert len(list(engines[1 - turn % 2].scan("Tag"))) == turn + 1
        assert engines[0].state() == engines[1].state() == {"seq": 5}
        assert [engine.generation >= 3 for engine in engines] == [True, True]
        for engine in engines:
            engine.close()

    def test_threads_may_share_one(self, tmp_path: Path) -> None:
        engine = Engine(tmp_path / "graph")
        failures: list[BaseException] = []

        def work(name: int) -> None:
            try:
                for turn in range(10):
                    key = f"{name}-{turn}"
                    engine.apply([Change("Tag", key, None, {"id": key})], {"seq": turn})
                    assert engine.get("Tag", key) == {"id": key}
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert len(list(engine.scan("Tag"))) == 30
        engine.close()


CHILD = """
import sys
from pathlib import Path
from tests.engines import Engine
from memgraph.ports import Change

engine = Engine(Path(sys.argv[1]), idle_s=3600.0, timeout_s=60.0)
for line in sys.stdin:
    command, _, key = line.strip().partition(" ")
    if command == "hold":
        with engine.open():
            print("held", flush=True)
            sys.stdin.readline()
    elif command == "write":
        engine.apply([Change("Tag", key, None, {"id": key})], {"seq": 1})
    print("done", flush=True)
"""


class TestProcesses:
    @pytest.fixture
    def child(self, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-c", CHILD, str(tmp_path / "graph")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield process
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(60) == 0

    def tell(self, child: subprocess.Popen[str], line: str) -> str:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(line + "\n")
        child.stdin.flush()
        return child.stdout.readline().strip()

    def test_they_take_turns(self, child: subprocess.Popen[str], tmp_path: Path) -> None:
        engine = Engine(tmp_path / "graph", idle_s=FOREVER_S, timeout_s=60.0)
        for turn in range(3):
            assert self.tell(child, f"write child{turn}") == "done"
            engine.apply([Change("Tag", f"mine{turn}", None, {"id": f"mine{turn}"})], {"seq": 1})
            assert len(list(engine.scan("Tag"))) == 2 * turn + 2
        engine.close()

    def test_a_busy_graph_is_refused_with_the_holders_pid(self, child: subprocess.Popen[str], tmp_path: Path) -> None:
        hasty, patient = (Engine(tmp_path / "graph", timeout_s=timeout_s) for timeout_s in (0.05, 60.0))
        assert self.tell(child, "hold") == "held"
        with pytest.raises(BusyError, match=str(child.pid)) as refused:
            hasty.state()
        assert refused.value.pid == child.pid
        assert self.tell(child, "") == "done"
        assert patient.get("Tag", "none") is None
        for engine in (hasty, patient):
            engine.close()

    def test_a_killed_process_holds_nothing(self, tmp_path: Path) -> None:
        """Its last writes are restored from the journal: the engine's own log is not trusted after a kill."""
        engine = Engine(tmp_path / "graph", timeout_s=5.0)
        engine.rebuild([Change("Tag", "before", None, {"id": "before"})], {"seq": 0})  # in the file, not in its log
        command = [sys.executable, "-c", CHILD, str(tmp_path / "graph")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert self.tell(process, "write x") == "done"
            assert self.tell(process, "hold") == "held"
            process.kill()
        assert engine.state() == {"seq": 0}
        assert [key for key, _ in engine.scan("Tag")] == ["before"]
        engine.close()

    def test_a_program_that_closes_nothing_leaves_the_graph_closed(self, tmp_path: Path) -> None:
        program = CHILD.replace("print(", "continue; print(")
        command = [sys.executable, "-W", "error", "-c", program, str(tmp_path / "graph")]
        done = subprocess.run(command, input="write x\n", capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        engine = Engine(tmp_path / "graph")
        assert engine.state() == {"seq": 1}
        engine.close()
