"""The parent's side of the engine's child process: started when needed, monitored, and killed if it exceeds its limits.

A user's query can make the engine crash (`RETURN date('20000-01-01')` does), take all memory, or ignore its timeout. In a separate
process that only causes an error.
"""

from __future__ import annotations

import atexit
import os
import re
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from memgraph.errors import ClosedError, GraphError, QueryError
from memgraph.graph.wire import decoded, encoded, frame, taken
from memgraph.model.results.rows import Column, Rows

_START_TIMEOUT_S = 30.0
_LOOK_S = 0.05
_READ_BYTES = 1 << 20
_BOOL = re.compile(r"\bBOOL\b")

Answer = dict[str, Any]


class EndedError(QueryError):
    """The child ended before it answered: by itself, idle or too large, if that is no crash."""

    def __init__(self, problem: str, *, is_crash: bool) -> None:
        super().__init__(problem)
        self.is_crash = is_crash


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds until the first part of an answer and between parts, and the memory of the child."""

    silence_s: float
    resident_bytes: int


class EngineProcess:
    """A child. Hold its `turn` to use it; a forked process starts its own. In `copy` its user notes what it has open."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.copy: Any = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._buffer = bytearray()
        self._looked_at = 0.0
        _ALL.add(self)

    @property
    def is_alive(self) -> bool:
        """Whether there is a child."""
        return self._process is not None and self._process.poll() is None

    def query(self, request: Mapping[str, Any], limits: Limits) -> Rows:
        """Run a query in the child and return its rows; a `QueryError`: it failed, was refused, or had to be stopped."""
        rows = Rows()
        names: list[str] = []

        def take(answer: Answer) -> None:
            if "columns" in answer:
                rows.columns = tuple(Column(name, _BOOL.sub("BOOLEAN", type_)) for name, type_ in answer["columns"])
                names.extend(column.name for column in rows.columns)
            rows.extend(dict(zip(names, row, strict=True)) for row in answer.get("rows", ()))

        try:
            message = encoded(request)
        except (TypeError, ValueError) as error:
            raise QueryError(f"a parameter of the query {error}") from None
        self.ask([message], limits, take)
        return rows

    def ask(self, messages: Iterable[bytes], limits: Limits, take: Callable[[Answer], None] = lambda _: None) -> None:
        """Send requests, each while the child works on the one before, and pass on each answer except the final ones; raise `EndedError`, `QueryError` or `GraphError`."""
        try:
            self._start()
            is_busy = False
            for message in messages:
                if is_busy:
                    self._finish(limits, take)
                if not self._is_ready:
                    self._await_ready(limits)
                self._send(frame(message), limits)
                is_busy = True
            last = self._finish(limits, take)
        except BaseException:
            self.stop()  # nobody waits for its answer any more, and a failed engine is not used again
            raise
        if "refused" in last:
            raise QueryError(last["refused"])

    def stop(self) -> None:
        """End the child."""
        process, self._process, self.copy = self._process, None, None
        self._buffer.clear()
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()

    def _forget(self) -> None:
        """Leave the child to the parent of this forked process."""
        self.turn = threading.Lock()
        self.copy = None
        self._buffer = bytearray()
        if self._process is not None:
            self._process.returncode = 0  # not a child of this process, so it must not wait for it
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _start(self) -> None:
        if self.is_alive:
            return
        self.stop()
        # The child uses the same modules as this process, none from the current directory, and gets no keys of the store.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMGRAPH_")}
        environment["PYTHONPATH"] = os.pathsep.join(_search_path())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "memgraph.graph.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=environment,
                process_group=0,  # Ctrl-C reaches only this process, which then ends the child
            )
        except (OSError, ValueError) as error:
            raise GraphError(f"the engine's process cannot be started ({sys.executable}): {error}") from None
        self._is_ready = False
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)

    def _await_ready(self, limits: Limits) -> None:
        try:
            self._received(replace(limits, silence_s=_START_TIMEOUT_S))
        except QueryError as error:
            raise GraphError(f"the engine's process did not start ({sys.executable}): {error}") from None
        self._is_ready = True

    def _send(self, message: bytes, limits: Limits) -> None:
        view = memoryview(message)
        while view:
            pipe = self._await("stdin", limits)
            try:
                view = view[os.write(pipe, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended() from None

    def _finish(self, limits: Limits, take: Callable[[Answer], None]) -> Answer:
        """Take the answers to a request, and return the final one."""
        while not (answer := self._received(limits)).keys() & {"end", "refused", "failed"}:
            take(answer)
        if "failed" in answer:
            raise GraphError("the graph engine failed", engine_says=answer["failed"])
        return answer

    def _received(self, limits: Limits) -> Answer:
        """Wait for an answer."""
        while (message := taken(self._buffer)) is None:
            part = os.read(self._await("stdout", limits), _READ_BYTES)
            if not part:
                raise self._ended()
            self._buffer += part
        answer: Answer = decoded(message)
        return answer

    def _await(self, name: str, limits: Limits) -> int:
        """Wait until a pipe is ready, and return its descriptor, unless the child is silent for too long or takes too much memory."""
        process = self._process
        if process is None:
            raise ClosedError("this process is shutting down")
        pipe: int = getattr(process, name).fileno()
        until = time.monotonic() + limits.silence_s
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ if name == "stdout" else selectors.EVENT_WRITE)
            while True:
                is_ready = bool(selector.select(_LOOK_S))
                if self._memory_of(process.pid) > limits.resident_bytes:
                    raise QueryError(
                        f"the query took over {limits.resident_bytes >> 20:,} MB of memory and was stopped"
                    )
                if is_ready:
                    return pipe
                if time.monotonic() > until:
                    raise QueryError(f"the engine did not answer for {limits.silence_s:g} s and was stopped")

    def _memory_of(self, pid: int) -> int:
        now = time.monotonic()
        if now - self._looked_at < _LOOK_S:
            return 0
        self._looked_at = now
        return resident_bytes(pid)

    def _ended(self) -> EndedError:
        code = self._process.wait() if self._process else 0
        how = f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended (exit code {code})"
        return EndedError(
            f"the engine {how}; it ran in a separate process, so nothing else is affected", is_crash=code != 0
        )


def _search_path() -> list[str]:
    """Return this process's module search path, for the child."""
    package = str(Path(__file__).resolve().parents[1])
    found = [str(Path(entry).absolute()) for entry in sys.path if entry]
    return found if package in found else [*found, package]


def resident_bytes(pid: int) -> int:
    """Return a process's resident memory; 0 if the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        # on Linux the process has ended, which is detected elsewhere
        return 0 if sys.platform == "linux" else _resident_bytes_by_ps(pid)


def _resident_bytes_by_ps(pid: int) -> int:
    try:
        shown = subprocess.run(["/bin/ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False, timeout=5)
        return int(shown.stdout or 0) << 10
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0


_ALL: WeakSet[EngineProcess] = WeakSet()


def _of_all(what: Callable[[EngineProcess], None]) -> None:
    for one in list(_ALL):
        what(one)


atexit.register(_of_all, EngineProcess.stop)
os.register_at_fork(after_in_child=partial(_of_all, EngineProcess._forget))  # noqa: SLF001 - its own module
