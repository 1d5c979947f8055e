"""OS locks on descriptors of their own, with the holder's pid for the error message."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from memgraph.errors import BusyError, StorageError
from memgraph.journal.files import write_small


class ProcessLock:
    """An exclusive lock between processes (and between stores of one process). Not re-entrant.

    Parameters
    ----------
    path : Path
        Lock file; beside it ``<path>.pid`` names the last holder.
    what : str
        Named in the error.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._lock = FileLock(path, thread_local=False, mode=0o600)
        self._pid_path = path.with_name(path.name + ".pid")
        self._what = what

    def acquire(self, timeout_s: float) -> None:
        """Take the lock.

        Raises
        ------
        BusyError
            Somebody else has held it for `timeout_s` seconds; names their pid.
        """
        try:
            self._lock.acquire(timeout=timeout_s, poll_interval=0.01)
        except Timeout:
            raise BusyError(self._what, pid=self.holder(), timeout_s=timeout_s) from None
        except OSError as error:
            raise StorageError(f"cannot be locked: {error.strerror}", path=Path(self._lock.lock_file)) from None
        try:
            write_small(self._pid_path, str(os.getpid()).encode())
        except OSError as error:
            self._lock.release()
            raise StorageError(f"cannot be written: {error.strerror}", path=self._pid_path) from None

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        try:
            self.acquire(0)
        except BusyError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def holder(self) -> int | None:
        """Return the pid of the last process that took it."""
        try:
            return int(self._pid_path.read_text())
        except (OSError, ValueError):
            return None
