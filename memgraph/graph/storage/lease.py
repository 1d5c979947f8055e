"""Access to the graph: opened on demand, held by one process at a time, released when idle.

The engine admits one process at a time. A process therefore opens the graph for a block of calls and keeps it a little
longer, because opening takes about 20 ms. It releases the graph after the idle time, or at once when another process requests it
by touching the file ``graph.wanted``. A waiting process touches the file repeatedly, and the process that gets the graph removes
it, so only a recent touch is a request. A file left behind or removed too early does no harm.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from memgraph.disk.lock import FORKED, ProcessLock
from memgraph.errors import BusyError, ClosedError, MemGraphError
from memgraph.logs import logger_of

logger = logger_of(__name__)

_POLL_S = 0.02
_AT_EXIT_S = 1.0
_YIELD_S = 0.2
"""How long a process that has released the graph for another waits before it takes it again."""
_REQUEST_AGAIN_S = 0.05
_REQUEST_STALE_S = 1.0
"""A request older than this is void: a waiting process would have renewed it."""
T = TypeVar("T")
_SESSIONS: WeakSet[Session[Any]] = WeakSet()


class Session(Generic[T]):
    """Opens and closes a resource that one process may hold at a time. Thread-safe."""

    def __init__(
        self,
        lock_path: Path,
        *,
        open_resource: Callable[[], T],
        close_resource: Callable[[T], None],
        timeout_s: float,
        idle_s: float,
    ) -> None:
        self._lock = ProcessLock(lock_path, "the graph")
        self._wanted = lock_path.with_suffix(".wanted")
        self._open_resource = open_resource
        self._close_resource = close_resource
        self._timeout_s = timeout_s
        self._idle_s = idle_s
        self._guard = threading.RLock()
        self._resource: T | None = None
        self.is_held = False
        self._depth = 0
        self._users = 0
        self.generation = 0
        self._opened_in = 0
        self._last_use = 0.0
        self._is_closed = False
        self._pid = os.getpid()
        _SESSIONS.add(self)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock, and thus the resource, exclusively for a block. Can be nested within a thread.

        Raises
        ------
        BusyError
            Another process held the lock for longer than the timeout.
        ClosedError
            The session was closed, or this process was forked from the one that created it.
        """
        self._check_process()
        with self._guard:
            if not self.is_held:
                self._take_lock()
                self._begin()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                self._last_use = time.monotonic()
                # A resource that does not open is released at once: its next user checks it again.
                is_broken = self._opened_in != self.generation and self._resource is None
                if self._depth == 0 and (self._idle_s == 0 or is_broken or self.is_wanted()):
                    self._release_logging_errors()

    def acquire_if_free(self) -> bool:
        """Take the lock unless another process holds it or waits for it; return whether this process holds it now.

        It is released as after a block of `held`.
        """
        self._check_process()
        with self._guard:
            if not self.is_held and not self._is_closed and not self.is_wanted() and self._lock.try_acquire():
                self._begin()
            return self.is_held

    @contextmanager
    def use(self) -> Iterator[T]:
        """Hold the open resource for a block. Can be nested within a thread. Raises the errors of `held` and of opening."""
        with self.held():
            resource = self._opened()
            self._users += 1
            try:
                yield resource
            finally:
                self._users -= 1

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Hold the lock for a block with the resource closed, so that a child process can open it.

        The resource was opened before while the lock was held, so it has been checked. Its next use opens it again, also by
        callers that hold the lock further up the stack.
        """
        with self.held():
            if self._users:
                raise RuntimeError("the resource is already in use by a caller")
            if self._opened_in != self.generation:
                self._opened()
            self._close_open()
            yield

    def reopen(self) -> None:
        """Close the resource unless it is in use further up the stack; its next use opens it again."""
        with self._guard:
            if not self._users:
                self._close_open()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Hold the lock for a block with the resource closed, so that its files can be replaced.

        A caller further up the stack that holds the lock keeps it, and its next use opens the resource again.
        """
        with self._guard:
            if self._users:
                raise RuntimeError("the resource is already in use by a caller")
            try:
                with self.held():
                    try:
                        self._close_open()
                    except MemGraphError as error:  # the file is replaced in any case
                        logger.info("the graph was not closed cleanly: %s", error.loggable)
                    yield
            finally:
                self.release()

    def release(self) -> None:
        """Close the resource and release the lock, unless it is in use further up the stack."""
        if self._pid != os.getpid():
            return  # both belong to the parent process, which still uses them
        with self._guard:
            if not self.is_held or self._depth:
                return
            try:
                self._close_open()
            finally:
                self.is_held = False
                self._lock.release()

    def close(self) -> None:
        """Release the resource and refuse further use."""
        if self._pid != os.getpid():
            return
        with self._guard:
            self._is_closed = True
            self.release()

    def release_at_exit(self) -> None:
        """Release, unless a thread still uses it."""
        if self._guard.acquire(timeout=_AT_EXIT_S):
            try:
                self.release()
            finally:
                self._guard.release()

    def is_wanted(self) -> bool:
        """Return whether another process waits: there is a request, and it is recent."""
        try:
            requested_ns = self._wanted.stat().st_mtime_ns
        except OSError:
            return False
        return abs(time.time_ns() - requested_ns) < _REQUEST_STALE_S * 1e9

    def _take_lock(self) -> None:
        if self._is_closed:
            raise ClosedError("the store is closed; open it again")
        until = time.monotonic() + _YIELD_S
        while self.is_wanted() and time.monotonic() < until:
            time.sleep(_POLL_S)
        if not self._lock.try_acquire():
            self._wait_for_lock()
        self._withdraw_request()  # this request is met; a process that still waits renews its own

    def _wait_for_lock(self) -> None:
        until = time.monotonic() + self._timeout_s
        while True:
            with suppress(OSError):
                self._wanted.touch(mode=0o600)
            left_s = until - time.monotonic()
            try:
                return self._lock.acquire(max(0.0, min(left_s, _REQUEST_AGAIN_S)))
            except BusyError as error:
                if left_s <= _REQUEST_AGAIN_S:
                    self._withdraw_request()
                    raise BusyError("the graph", pid=error.pid, timeout_s=self._timeout_s) from None

    def _withdraw_request(self) -> None:
        with suppress(OSError):
            self._wanted.unlink()

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise ClosedError(FORKED)

    def _begin(self) -> None:
        """Record that the lock was just taken."""
        self.is_held = True
        self.generation += 1
        self._last_use = time.monotonic()
        if self._idle_s:
            threading.Thread(
                target=self._release_when_idle, args=(self.generation,), name="memgraph-idle", daemon=True
            ).start()

    def _opened(self) -> T:
        if self._resource is None:
            self._opened_in = 0
            self._resource = self._open_resource()
            self._opened_in = self.generation
        return self._resource

    def _close_open(self) -> None:
        resource, self._resource = self._resource, None
        if resource is not None:
            self._close_resource(resource)

    def _release_when_idle(self, turn: int) -> None:
        while self.is_held and self.generation == turn:
            time.sleep(_POLL_S)
            with self._guard:
                if not self.is_held or self.generation != turn or self._depth:
                    continue
                if time.monotonic() - self._last_use >= self._idle_s or self.is_wanted():
                    self._release_logging_errors()
                    return

    def _release_logging_errors(self) -> None:
        """Release after the work is done; log an error of closing, which must not make the work look failed."""
        try:
            self.release()
        except MemGraphError as error:  # the next user checks the file
            logger.warning("the graph was not closed cleanly: %s", error.loggable)


@atexit.register
def _release_all() -> None:
    """Close graphs that the program has left open."""
    for session in list(_SESSIONS):
        with suppress(MemGraphError):
            session.release_at_exit()
