"""Operating-system locks between processes, with the holder's pid for the error message."""

from __future__ import annotations

import fcntl
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memgraph.disk.files import read_own, write_small
from memgraph.errors import BusyError, ClosedError, StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

_LOOK_S = 0.01
WRITER = "the journal's writer lock"
FORKED = "the store was opened before this process was forked; open it again in this process"


class Lock(ABC):
    """An exclusive lock between processes (and between stores of one process). Not re-entrant."""

    what: str  # is locked, for the error message

    def acquire(self, timeout_s: float) -> None:
        """Take the lock. Raise `BusyError`, which names the holder, if another one kept it for `timeout_s` seconds."""
        until = time.monotonic() + timeout_s
        while not self.try_acquire():
            if time.monotonic() >= until:
                raise BusyError(self.what, pid=self.holder(), timeout_s=timeout_s)
            time.sleep(_LOOK_S)

    @abstractmethod
    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock. Idempotent."""

    @abstractmethod
    def is_held(self) -> bool:
        """Return whether any process holds the lock now, without leaving a trace."""

    @contextmanager
    def held(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock, taken as by `acquire`."""
        self.acquire(timeout_s)
        try:
            yield
        finally:
            self.release()

    def holder(self) -> int | None:
        """Return the pid of the last process that took the lock, if that is known."""
        return None

    def taken_at(self) -> float | None:
        """Return when the lock was last taken, in seconds since the epoch, if that is known."""
        return None


class ProcessLock(Lock):
    """A lock on a file. Beside it ``<path>.pid`` names the last holder."""

    def __init__(self, path: Path, what: str) -> None:
        self.what = what
        self._path = path
        self._pid_path = path.with_name(path.name + ".pid")
        self._pid = os.getpid()
        self._descriptor: int | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        if self._pid != os.getpid():
            raise ClosedError(FORKED)
        try:
            if self._descriptor is None and not self._takes(os.O_CREAT):  # else Ctrl-C came before the lock was used
                return False
        except OSError as error:
            raise StorageError(f"cannot be locked: {error.strerror}", path=self._path) from None
        try:
            write_small(self._pid_path, str(os.getpid()).encode())
        except OSError as error:  # for example on a full disk; others then see no pid, or an old one
            logger.info("%s cannot be written: %s", self._pid_path, error.strerror)
        return True

    def _takes(self, flags: int) -> bool:
        descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        with suppress(BlockingIOError), ExitStack() as opened:
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:  # else it was removed meanwhile
                self._descriptor = descriptor
                opened.pop_all()
                return True
        return False

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._pid != os.getpid():
            return  # it belongs to the parent process
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing it would not do where a child has it, too
            os.close(descriptor)

    def is_held(self) -> bool:
        """Return whether any process holds the lock now, without leaving a trace."""
        other = ProcessLock(self._path, self.what)
        try:
            is_held = not other._takes(0)
        except OSError:
            return False  # there is no file, or it cannot be opened, so no process of this user holds the lock
        other.release()
        return is_held

    def taken_at(self) -> float | None:
        """Return when the lock was last taken, in seconds since the epoch."""
        try:
            return self._pid_path.stat().st_mtime
        except OSError:
            return None

    def holder(self) -> int | None:
        """Return the pid of the last process that took the lock."""
        try:
            return int(read_own(self._pid_path))
        except (OSError, ValueError):
            return None


def writer_lock(folder: Path) -> ProcessLock:
    """Return the lock that the writer of a store holds, given the store's directory."""
    return ProcessLock(folder / "lock", WRITER)
