"""OS locks on descriptors of their own, with the holder's pid for the error message."""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock, Timeout

from memgraph.disk.files import read_own, write_small
from memgraph.errors import BusyError, ClosedError, StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

FORKED = "the store was opened before this process was forked; open it again in this process"


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
        self._pid = os.getpid()

    def acquire(self, timeout_s: float) -> None:
        """Take the lock.

        Raises
        ------
        BusyError
            Somebody else has held it for `timeout_s` seconds; names their pid.
        ClosedError
            This process was forked off the one that made it.
        """
        if self._pid != os.getpid():
            raise ClosedError(FORKED)
        try:
            self._lock.acquire(timeout=timeout_s, poll_interval=0.01)
        except Timeout:
            raise BusyError(self._what, pid=self.holder(), timeout_s=timeout_s) from None
        except OSError as error:
            raise StorageError(f"cannot be locked: {error.strerror}", path=Path(self._lock.lock_file)) from None
        try:
            write_small(self._pid_path, str(os.getpid()).encode())
        except OSError as error:  # on a full disk, say: others are told no pid, or an old one
            logger.info("%s cannot be written: %s", self._pid_path, error.strerror)

    def try_acquire(self) -> bool:
        """Take the lock if it is free now."""
        try:
            self.acquire(0)
        except BusyError:
            return False
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._pid == os.getpid():  # else it is the other process's
            self._lock.release(force=True)  # also what an interrupted call has taken and nobody knew of

    def is_held(self) -> bool:
        """Tell whether somebody holds it now; leaves no mark."""
        if not Path(self._lock.lock_file).exists():
            return False
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return True
        except OSError:
            return False  # who cannot open it cannot tell, and nobody of this user holds it
        self._lock.release()
        return False

    def taken_at(self) -> float | None:
        """Return when it was last taken, in seconds since the epoch."""
        try:
            return self._pid_path.stat().st_mtime
        except OSError:
            return None

    def holder(self) -> int | None:
        """Return the pid of the last process that took it."""
        try:
            return int(read_own(self._pid_path))
        except (OSError, ValueError):
            return None
