"""Operating-system locks between processes, with the holder's pid for the error message."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from memgraph.disk.files import read_own, write_small
from memgraph.errors import BusyError, ClosedError, StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

FORKED = "the store was opened before this process was forked; open it again in this process"


class Lock(ABC):
    """An exclusive lock between processes (and between stores of one process). Not re-entrant."""

    @abstractmethod
    def acquire(self, timeout_s: float) -> None:
        """Take the lock. Raise `BusyError` if another one kept it for `timeout_s` seconds."""

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
    """A lock on a file. Beside it ``<path>.pid`` names the last holder; `what` is locked, for the error message."""

    def __init__(self, path: Path, what: str) -> None:
        self._lock = FileLock(path, thread_local=False, mode=0o600)
        self._pid_path = path.with_name(path.name + ".pid")
        self._what = what
        self._pid = os.getpid()

    def acquire(self, timeout_s: float) -> None:
        """Take the lock; the `BusyError` names the holder."""
        if self._pid != os.getpid():
            raise ClosedError(FORKED)
        try:
            self._lock.acquire(timeout=timeout_s, poll_interval=0.01)
        except Timeout:
            pid = self.holder()  # an old one, if the process that has the lock stopped before it wrote its own
            raise BusyError(self._what, pid=pid if pid and is_running(pid) else None, timeout_s=timeout_s) from None
        except OSError as error:
            raise StorageError(f"cannot be locked: {error.strerror}", path=Path(self._lock.lock_file)) from None
        try:
            write_small(self._pid_path, str(os.getpid()).encode())
        except OSError as error:  # for example on a full disk; others then see no pid, or an old one
            logger.info("%s cannot be written: %s", self._pid_path, error.strerror)

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        try:
            self.acquire(0)
        except BusyError:
            return False
        return True

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._pid == os.getpid():  # else the lock belongs to the parent process
            self._lock.release(force=True)  # also a lock that an interrupted `acquire` had taken

    def is_held(self) -> bool:
        """Return whether any process holds the lock now, without leaving a trace."""
        if not Path(self._lock.lock_file).exists():
            return False
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return True
        except OSError:
            return False  # the file cannot be opened, so no process of this user holds the lock
        self._lock.release()
        return False

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


def is_running(pid: int) -> bool:
    """Return whether a process of any user has this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def writer_lock(folder: Path) -> ProcessLock:
    """Return the lock that the writer of a store holds, given the store's directory."""
    return ProcessLock(folder / "lock", "the journal's writer lock")
