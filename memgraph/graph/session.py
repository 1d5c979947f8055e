"""Who has the graph: opened on demand, shared by turns between processes, released when idle.

The engine lets one process in at a time. A process therefore opens the graph for a block of calls and keeps it a little
longer, because opening costs some 20 ms; it lets go after the idle time, or at once when another process asks by touching
the file ``graph.wanted``. Who waits touches it again and again, so only a touch that is newer than the holder's turn, and
not old, is somebody's wish: it may be left behind, or removed too early, without harm.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from memgraph.errors import BusyError, ClosedError
from memgraph.journal.lock import ProcessLock

_POLL_S = 0.02
_YIELD_S = 0.2
"""For so long, who has just let go for another process stays away."""
_WISH_AGAIN_S = 0.05
_WISH_STALE_S = 1.0
"""Who still waits would have touched the wish since."""
T = TypeVar("T")


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
        self._depth = 0
        self.generation = 0
        self._last_use = 0.0
        self._is_closed = False
        self._pid = os.getpid()
        self._known_wish_ns = 0

    @contextmanager
    def use(self) -> Iterator[T]:
        """Hold the resource for a block; nests within a thread.

        Raises
        ------
        BusyError
            Another process holds it for longer than the timeout.
        ClosedError
            The session was closed, or this process was forked off the one that made it.
        """
        self._check_process()
        with self._guard:
            if self._resource is None:
                self._take_lock()
                self._open()
            self._depth += 1
            try:
                yield self._resource  # type: ignore[misc]
            finally:
                self._depth -= 1
                self._last_use = time.monotonic()
                if self._depth == 0 and (self._idle_s == 0 or self._is_wanted()):
                    self.release()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Hold the lock for a block with the resource closed, so that its files can be replaced."""
        self._check_process()
        with self._guard:
            if self._depth:
                raise RuntimeError("the resource is in use further up")
            if self._resource is None:
                self._take_lock()
            try:
                resource, self._resource = self._resource, None
                if resource is not None:
                    self._close_resource(resource)
                yield
            finally:
                self._lock.release()

    def release(self) -> None:
        """Close the resource and give the lock back, unless it is in use further up."""
        if self._pid != os.getpid():
            return  # both are the other process's: it goes on using them
        with self._guard:
            if self._resource is None or self._depth:
                return
            resource, self._resource = self._resource, None
            try:
                self._close_resource(resource)
            finally:
                self._lock.release()

    def close(self) -> None:
        """Release for good."""
        if self._pid != os.getpid():
            return
        with self._guard:
            self._is_closed = True
            self.release()

    def _take_lock(self) -> None:
        if self._is_closed:
            raise ClosedError("the store is closed; open it again")
        until = time.monotonic() + _YIELD_S
        while self._wish_ns() and time.monotonic() < until:
            time.sleep(_POLL_S)
        if self._lock.try_acquire():
            self._wanted.unlink(missing_ok=True)  # of who still waits, it will be back
            self._known_wish_ns = 0
        else:
            self._wait_for_lock()
            self._known_wish_ns = self._wish_ns()  # one's own; another's will be touched again

    def _wait_for_lock(self) -> None:
        until = time.monotonic() + self._timeout_s
        while True:
            self._wanted.touch(mode=0o600)
            left_s = until - time.monotonic()
            try:
                return self._lock.acquire(max(0.0, min(left_s, _WISH_AGAIN_S)))
            except BusyError as error:
                if left_s <= _WISH_AGAIN_S:
                    self._wanted.unlink(missing_ok=True)
                    raise BusyError("the graph", pid=error.pid, timeout_s=self._timeout_s) from None

    def _wish_ns(self) -> int:
        """Return when a wish was last uttered, 0 if that is too long ago or never."""
        try:
            uttered_ns = self._wanted.stat().st_mtime_ns
        except OSError:
            return 0
        return uttered_ns if abs(time.time_ns() - uttered_ns) < _WISH_STALE_S * 1e9 else 0

    def _is_wanted(self) -> bool:
        return self._wish_ns() > self._known_wish_ns

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise ClosedError(
                "the store was opened in another process, which this one was forked off; open it again here"
            )

    def _open(self) -> None:
        try:
            self._resource = self._open_resource()
        except BaseException:
            self._lock.release()
            raise
        self.generation += 1
        self._last_use = time.monotonic()
        if self._idle_s:
            threading.Thread(target=self._release_when_idle, name="memgraph-idle", daemon=True).start()

    def _release_when_idle(self) -> None:
        resource = self._resource
        while self._resource is resource:
            time.sleep(_POLL_S)
            with self._guard:
                if self._resource is not resource or self._depth:
                    continue
                if time.monotonic() - self._last_use >= self._idle_s or self._is_wanted():
                    self.release()
                    return
