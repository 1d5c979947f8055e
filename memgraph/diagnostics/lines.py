"""Files of JSON lines: private, appended to by several processes, of bounded size.

A file is locked while a line is written to it or while it is renamed. A process that has waited for the lock checks that the file still has
its name, and opens the new one otherwise: so none renames a file that another process has just begun, or writes to one that was replaced.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import write_all

MAX_BYTES = 16 << 20
"""A file that has reached this size is renamed to ``NAME.1``, which replaces an earlier one."""
LOCK_TIMEOUT_S = 2.0
"""A process that was stopped while it had the lock must not stop the others."""
_POLL_S = 0.002


def predecessor_of(path: Path) -> Path:
    """Return the name that a file gets when it is full."""
    return path.with_name(f"{path.name}.1")


def append_line(
    path: Path, document: Mapping[str, Any], *, max_bytes: int = MAX_BYTES, timeout_s: float = LOCK_TIMEOUT_S
) -> None:
    """Append one document as a line of JSON, in one write. A new file is readable by its owner alone.

    Parameters
    ----------
    timeout_s : float
        How long to wait for other processes. After that the line is written without the lock, and the file is not renamed.

    Raises
    ------
    OSError
        The system refuses it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line, until = orjson.dumps(document) + b"\n", time.monotonic() + timeout_s
    while not _is_written(path, line, max_bytes, until):
        pass


def _is_written(path: Path, line: bytes, max_bytes: int, until: float) -> bool:
    """Write a line to the file that has a name now; False if it must be opened again, because it was renamed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        is_locked, status = _is_locked(descriptor, until), os.fstat(descriptor)
        is_file = stat.S_ISREG(status.st_mode)
        if is_locked and not _has_name(status, path):
            return False
        if is_locked and is_file and status.st_size >= max(max_bytes, 1) and _is_renamed(path):
            return False
        try:
            write_all(descriptor, line)
        except OSError:
            if is_locked and is_file:  # half a line would spoil the next one, too
                os.ftruncate(descriptor, status.st_size)
            raise
        return True
    finally:
        with suppress(OSError):  # where there are no locks; a child process that was forked meanwhile would keep one
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _is_renamed(path: Path) -> bool:
    """Rename a full file; False if the system refuses: then it grows further, which is better than losing lines."""
    try:
        path.replace(predecessor_of(path))
    except OSError:
        return False
    return True


def _is_locked(descriptor: int, until: float) -> bool:
    """Lock a file; False if others have it for too long. A file system without locks counts as locked."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_S)
        except OSError:
            return True
        else:
            return True


def _has_name(status: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except FileNotFoundError:
        return False
