"""Who has the graph: opened on demand, shared by turns between processes, released when idle.

The engine lets one process in at a time. A process therefore opens the graph for a block of calls and keeps it a little
longer, because opening costs some 20 ms; it lets go after the idle time, or at once when another process asks by leaving
the file ``graph.wanted``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from memgraph.errors import ClosedError
from memgraph.journal.lock import ProcessLock

_POLL_S = 0.02
_YIELD_S = 0.2
"""For so long, who has just let go for another process stays away."""
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

    @contextmanager
    def use(self) -> Iterator[T]:
        """Hold the resource for a block; nests within a thread.

        Raises
        ------
        BusyError
            Another process holds it for longer than the timeout.
        """
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
                if self._depth == 0 and (self._idle_s == 0 or self._wanted.exists()):
                    self.release()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Hold the lock for a block with the resource closed, so that its files can be replaced."""
        with self._guard:
            if self._depth:
                raise RuntimeError("the resource is in use further up")
            if self._resource is None:
                self._take_lock()
            else:
                resource, self._resource = self._resource, None
                self._close_resource(resource)
            try:
                yield
            finally:
                self._lock.release()

    def release(self) -> None:
        """Close the resource and give the lock back, unless it is in use further up."""
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
        with self._guard:
            self.release()
            self._is_closed = True

    def _take_lock(self) -> None:
        if self._is_closed:
            raise ClosedError("the store is closed; open it again")
        until = time.monotonic() + _YIELD_S
        while self._wanted.exists() and time.monotonic() < until:
            time.sleep(_POLL_S)
        if not self._lock.try_acquire():
            self._wanted.touch()
            try:
                self._lock.acquire(self._timeout_s)
            finally:
                self._wanted.unlink(missing_ok=True)
        else:
            self._wanted.unlink(missing_ok=True)

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
                if time.monotonic() - self._last_use >= self._idle_s or self._wanted.exists():
                    self.release()
                    return
