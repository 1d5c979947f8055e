"""Small file operations with the guarantees the journal needs: private, atomic, synced."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import stat
import sys
import threading
from contextlib import suppress
from pathlib import Path

from memgraph.errors import StorageError

sync_data = getattr(os, "fdatasync", os.fsync)
"""Flush a descriptor's data to the device (macOS has no fdatasync)."""
_NO_FILE = {errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO}
"""What opening a link, a directory or a pipe for writing ends with."""


def make_private_folder(path: Path) -> None:
    """Make a directory and its parents, readable by their owner alone.

    Raises
    ------
    StorageError
        It cannot be made.
    """
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):  # mkdir's own `parents` would leave them readable for all
            folder.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(exist_ok=True)  # raises where the path is a file
    except OSError as error:
        raise StorageError(
            f"the directory cannot be created: {error.strerror}; choose another path", path=path
        ) from None


def write_private(path: Path, data: bytes) -> None:
    """Write a file whole or not at all (temporary file, fsync, rename), mode 0600."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = make_own(temporary)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):  # a read-only file system refuses even what is not there
            temporary.unlink(missing_ok=True)
        raise StorageError(f"cannot be written: {error.strerror}", path=path) from None


def make_private_file(path: Path, data: bytes) -> None:
    """Make a file whole or not at all, mode 0600; one that is there stays as it is."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    write_private(temporary, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}", path=path) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_small(path: Path, data: bytes) -> None:
    """Overwrite a private file in place, without a guarantee: what it says is only a help."""
    descriptor = open_own(path)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def make_own(path: Path) -> int:
    """Make a private file in the place of whatever is there, and return its descriptor for writing."""
    clear(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def open_own(path: Path) -> int:
    """Open a private file to be written in place, and return its descriptor: never a file that has another name, too.

    A link to another file, a second name of one, a pipe or a directory is removed, and a file is made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        return make_own(path)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    return make_own(path)


def read_own(path: Path) -> bytes:
    """Return the bytes of a file; `OSError` for what is none: a pipe would be waited for, and a link leads elsewhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        return file.read()


def clear_folder(path: Path) -> None:
    """Remove a directory that is in the place of a file."""
    if path.is_dir() and not path.is_symlink():
        clear(path)


def clear(path: Path) -> None:
    """Remove whatever is there: a link itself, a directory with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything; the system may take it in several bites."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def refused_writes(*paths: Path) -> str | None:
    """Return which of these paths exists and may not be written, and why, in words; None if there is none."""
    for path in paths:
        if os.access(path, os.F_OK) and not os.access(path, os.W_OK):
            is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
            return f"{path}: {os.strerror(errno.EROFS if is_read_only else errno.EACCES)}"
    return None


def only_readable(refused: str) -> str:
    """Return what to say of a store that may not be written, given what `refused_writes` says."""
    return f"{refused}: the store is read-only; give this user write access to it, or use a copy of it"


def room_left(path: Path) -> int:
    """Return by how many bytes a file at `path` can grow."""
    try:
        disk = os.statvfs(next(folder for folder in path.parents if folder.exists()))
        size = path.stat().st_size if path.is_file() else 0
    except OSError:
        return sys.maxsize  # what is wrong there, the next call says
    free = disk.f_bavail * disk.f_frsize
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return free if largest == resource.RLIM_INFINITY else min(free, max(0, largest - size))


def sync_folder(path: Path) -> None:
    """Make a new or renamed entry of a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
