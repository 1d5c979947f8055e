"""Whose turn it is: one thread at a time writes, and meanwhile others may read what was published last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_S = 0.005


class Guard:
    """A re-entrant lock that knows whether another thread waits for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: set[int] = set()

    @property
    def is_awaited(self) -> bool:
        """Whether a thread waits for it now."""
        return bool(self._waiting)

    def acquire(self, timeout_s: float = -1.0) -> bool:
        """Take the lock; return whether it was taken within `timeout_s` seconds (negative: no limit)."""
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


class Turns:
    """The locks of a projector's threads.

    Who has `guard` has the graph and may write. What readers see (index, cached rows, how far they are) changes only under
    `view` as well, and only for moments: between them, while the writer says so, other threads read without `guard`. Such a
    reader is said to be *beside* the writer; it must do without the graph. `guard` is taken before `view`.
    """

    def __init__(self) -> None:
        self.guard = Guard()
        self.view = threading.RLock()
        self._is_open = False
        self._here = threading.local()

    @property
    def is_reading(self) -> bool:
        """Whether this thread is inside a block that reads and does nothing else, beside a writer or not."""
        return getattr(self._here, "is_reading", False)

    def open(self) -> None:
        """Let others read beside this thread, which has `guard`: all that they need is in memory and current."""
        with self.view:
            self._is_open = True

    def close(self) -> None:
        """Let nobody read beside this thread any more; waits for those who do."""
        with self.view:
            self._is_open = False

    @contextmanager
    def taken(self, *, beside: bool) -> Iterator[bool]:
        """Hold still what readers see for a block; tell whether the block is beside a writer, or has `guard`.

        Parameters
        ----------
        beside : bool
            False: wait for `guard` whatever the writer says.
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
        """Mark a block of this thread as one that reads and does nothing else."""
        self._here.is_reading = True
        try:
            yield
        finally:
            self._here.is_reading = False
