"""Temporary folders that do not outlive their owner for long.

The owner holds the system's lock on the folder itself, which is released when the process ends, however it ends. So whoever finds
a folder that can be locked knows that nobody uses it any more, and removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize


class TemporaryFolder:
    """A folder that only its owner can read, removed by `remove` or, at the latest, when the object or the program ends.

    Parameters
    ----------
    parent : Path
        The directory to make it in.
    prefix : str
        How its name begins: `remove_abandoned` finds it by that.

    Attributes
    ----------
    path : Path
    remove : callable
        Remove it with all that is in it. Idempotent.

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self, parent: Path, prefix: str) -> None:
        while True:
            path = Path(mkdtemp(prefix=prefix, dir=parent))
            try:
                descriptor = _locked(path)
            except OSError:
                path.rmdir()
                raise
            if descriptor is not None:
                break  # else it was taken for an abandoned one before it could be locked
        self.path = path
        self.remove = finalize(self, _remove, path, descriptor, os.getpid())


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove this user's temporary folders with this prefix whose owner has ended."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError):  # somebody else has just removed it
            if path.lstat().st_uid == os.geteuid() and (descriptor := _locked(path)) is not None:
                _remove(path, descriptor, os.getpid())


def _locked(path: Path) -> int | None:
    """Lock a folder and return the descriptor that holds the lock; None if somebody else has it, or has removed it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_there = path.lstat().st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        is_there = False
    except OSError:
        os.close(descriptor)
        raise
    if is_there:
        return descriptor
    os.close(descriptor)
    return None


def _remove(path: Path, descriptor: int, pid: int) -> None:
    if pid == os.getpid():  # a process that was forked off owns nothing of it
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)
