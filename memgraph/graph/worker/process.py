"""The parent's side of the engine's child process: started when needed, monitored, and killed if it exceeds its limits.

A user's query, or a file that may be damaged, can make the engine crash (`RETURN date('20000-01-01')` does), take all memory,
or ignore its timeout. In a separate process that only causes an error.
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memgraph.errors import ClosedError, GraphError, QueryError
from memgraph.graph.wire import decoded, encoded, frame, taken
from memgraph.model.results.rows import Column, Rows

_START_TIMEOUT_S = 30.0
_LOOK_S = 0.05
_READ_BYTES = 1 << 20
_BOOL = re.compile(r"\bBOOL\b")

Answer = dict[str, Any]


class EndedError(QueryError):
    """The child ended before it answered: the engine crashed, or the system killed it."""


class GaveWayError(Exception):
    """The request was dropped so that another user can have the graph. Never leaves this package."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request.

    Attributes
    ----------
    silence_s : float
        Seconds until the first part of the answer, and between parts.
    resident_bytes : int
        Memory of the child.
    gives_way : callable
        Polled while the request waits for the child; when it returns true, the request is dropped.
    """

    silence_s: float
    resident_bytes: int
    gives_way: Callable[[], bool] = lambda: False

    def check(self) -> None:
        """Raise `GaveWayError` if the request must give way."""
        if self.gives_way():
            raise GaveWayError


class EngineProcess:
    """One child at a time for all stores of this process. Thread-safe; a forked process starts its own."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._looked_at = 0.0
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forget)

    def query(self, request: Mapping[str, Any], limits: Limits) -> Rows:
        """Run a query in the child and return its rows; `memgraph.graph.worker.child` describes `request`.

        Raises
        ------
        QueryError
            The query failed, was refused, or had to be stopped.
        GraphError
            The graph does not open, or the child cannot be started.
        GaveWayError
            `limits.gives_way` returned true.
        """
        rows = Rows()
        names: list[str] = []

        def take(answer: Answer) -> None:
            if "columns" in answer:
                rows.columns = tuple(Column(name, _BOOL.sub("BOOLEAN", type_)) for name, type_ in answer["columns"])
                names.extend(column.name for column in rows.columns)
            rows.extend(dict(zip(names, row, strict=True)) for row in answer.get("rows", ()))

        self._ask(request, limits, take)
        return rows

    def probe(self, request: Mapping[str, Any], limits: Limits) -> None:
        """Check in the child that a graph opens, which merges its log into its file.

        Raises
        ------
        GraphError
            The graph does not open.
        """
        try:
            self._ask(request, limits, lambda _: None)
        except QueryError as error:
            raise GraphError(f"the graph at {request['path']} is damaged", engine_says=str(error)) from None

    def stop(self) -> None:
        """End the child."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()

    def _forget(self) -> None:
        """Leave the child to the parent of this forked process."""
        self._turn = threading.Lock()
        self._buffer = bytearray()
        if self._process is not None:
            self._process.returncode = 0  # not a child of this process, so it must not wait for it
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _ask(self, request: Mapping[str, Any], limits: Limits, take: Callable[[Answer], None]) -> None:
        """Send a request and pass on each answer except the final one."""
        try:
            message = frame(encoded(request))
        except (TypeError, ValueError) as error:
            raise QueryError(f"a parameter of the query {error}") from None
        while not self._turn.acquire(timeout=_LOOK_S):
            limits.check()
        try:
            answer = self._first_answer(message, limits)
            while not answer.keys() & {"end", "refused", "failed"}:
                take(answer)
                answer = self._received(limits)
        except BaseException:
            self.stop()  # nobody waits for its answer any more
            raise
        finally:
            self._turn.release()
        if "refused" in answer:
            raise QueryError(answer["refused"])
        if "failed" in answer:
            raise GraphError(f"the graph at {request['path']} cannot be opened", engine_says=answer["failed"])

    def _first_answer(self, message: bytes, limits: Limits) -> Answer:
        process = self._started(limits)
        try:
            return self._asked(message, limits)
        except EndedError:
            if process.returncode != 0:
                raise
        self.stop()  # it had ended by itself, idle or too large
        self._started(limits)
        return self._asked(message, limits)

    def _started(self, limits: Limits) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.stop()
        # The child uses the same modules as this process, none from the current directory, and gets no keys of the store.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMGRAPH_")}
        environment["PYTHONPATH"] = os.pathsep.join(_search_path())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "memgraph.graph.worker.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env=environment,
                process_group=0,  # Ctrl-C reaches only this process, which then ends the child
            )
        except (OSError, ValueError) as error:
            raise GraphError(f"the engine's process cannot be started ({sys.executable}): {error}") from None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        try:
            self._received(replace(limits, silence_s=_START_TIMEOUT_S))
        except QueryError as error:
            raise GraphError(f"the engine's process did not start ({sys.executable}): {error}") from None
        return self._process

    def _asked(self, message: bytes, limits: Limits) -> Answer:
        """Send a message and return the first answer."""
        view = memoryview(message)
        while view:
            pipe = self._await("stdin", limits)
            try:
                view = view[os.write(pipe, view) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._ended() from None
        return self._received(limits)

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
        """Wait until a pipe is ready, and return its descriptor.

        Raises
        ------
        QueryError
            The child was silent for too long, or has taken too much memory.
        """
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
                limits.check()
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
        return EndedError(f"the engine {how}; it ran in a separate process, so nothing else is affected")


def _search_path() -> list[str]:
    """Return this process's module search path, for the child."""
    package = str(Path(__file__).resolve().parents[2])
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
