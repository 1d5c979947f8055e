"""Reader/writer gate: one thread at a time writes, while others may read the last published state."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_S = 0.005


class Guard:
    """A re-entrant lock that knows whether another thread is waiting for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: set[int] = set()

    @property
    def is_awaited(self) -> bool:
        """Whether a thread is waiting for it now."""
        return bool(self._waiting)

    def acquire(self, timeout_s: float = -1.0) -> bool:
        """Acquire the lock; return whether this succeeded within `timeout_s` seconds (negative: no limit)."""
        if self._lock.acquire(blocking=False):
            return True
        here = threading.get_ident()
        self._waiting.add(here)
        try:
            return self._lock.acquire(timeout=timeout_s)
        finally:
            self._waiting.discard(here)

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class ReadGate:
    """The locks of a projector's threads.

    The holder of `guard` has the graph and may write. The state that readers see (index, cached rows, their position)
    changes only under `view` as well, and only briefly: in between, if the writer allows it, other threads read without
    `guard`. Such a reader runs *beside* the writer, and must not use the graph. `guard` is taken before `view`.
    """

    def __init__(self) -> None:
        self.guard = Guard()
        self.view = threading.RLock()
        self._is_open = False
        self._here = threading.local()

    @property
    def is_reading(self) -> bool:
        """Whether this thread is inside a read-only block, beside a writer or not."""
        return getattr(self._here, "is_reading", False)

    def open(self) -> None:
        """Let others read beside this thread, which holds `guard`: all that they need is in memory and current."""
        with self.view:
            self._is_open = True

    def close(self) -> None:
        """Stop others from reading beside this thread; wait for those that do."""
        with self.view:
            self._is_open = False

    @contextmanager
    def taken(self, *, beside: bool) -> Iterator[bool]:
        """Freeze the readers' state for a block; yield whether the block runs beside a writer, or holds `guard`.

        Parameters
        ----------
        beside : bool
            False: wait for `guard`, even if the writer admits readers.
        """
        while not self.guard.acquire(0.0):
            with self.view:
                if beside and self._is_open:
                    with self.reading():
                        yield True
                    return
            if self.guard.acquire(_LOOK_S):
                break
        try:
            with self.view:
                yield False
        finally:
            self.guard.release()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Mark a block of this thread as read-only."""
        self._here.is_reading = True
        try:
            yield
        finally:
            self._here.is_reading = False
