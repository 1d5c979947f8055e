"""Temporary folders that are removed when their owner has ended.

The owner holds a lock on the folder itself, which the system releases when the process ends, however it ends. A folder that
can be locked is therefore no longer in use and may be removed.
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
    """A folder that only its owner can read, removed by `remove` or, at the latest, when the object or the process ends.

    Parameters
    ----------
    parent : Path
        The directory that will contain the folder.
    prefix : str
        Start of the folder's name, by which `remove_abandoned` finds it.

    Attributes
    ----------
    path : Path
    remove : callable
        Removes the folder and its contents. Idempotent.

    Raises
    ------
    OSError
        The folder cannot be made.
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
                break  # else another process removed it as abandoned before it could be locked
        self.path = path
        self.remove = finalize(self, _remove, path, descriptor, os.getpid())


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove this user's temporary folders with this prefix whose owner has ended."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError):  # another process has just removed it
            if path.lstat().st_uid == os.geteuid() and (descriptor := _locked(path)) is not None:
                _remove(path, descriptor, os.getpid())


def _locked(path: Path) -> int | None:
    """Lock a folder and return the descriptor that holds the lock; None if it is locked already or was removed."""
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
    if pid == os.getpid():  # a forked child does not own the folder
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)
