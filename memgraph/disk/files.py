"""Files: private, atomic and synced writes, and the disk space that there is for them."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from memgraph.errors import DiskFullError, GraphError, StorageError

READ_ONLY = "the store is read-only; give this user write access to it, or use a copy of it"
_NO_FILE = {errno.ELOOP, errno.EMLINK, errno.EISDIR, errno.ENXIO}
"""Error numbers of opening a link, a directory or a pipe for writing."""
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""Error numbers of linking on a file system without hard links, such as those of memory sticks."""


@contextmanager
def storage_errors(path: Path, problem: str) -> Iterator[None]:
    """Raise errors of the operating system in the block as `StorageError`: the problem, then the system's reason."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{problem}: {error.strerror}", path=path) from None


def make_private_folder(path: Path) -> None:
    """Make a directory and its parents, readable only by their owner."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):  # mkdir's own `parents` would make them readable for everybody
            folder.mkdir(mode=0o700, exist_ok=True)
        path.mkdir(exist_ok=True)  # raises where the path is a file
    except OSError as error:
        raise StorageError(
            f"the directory cannot be created: {error.strerror}; choose another path", path=path
        ) from None


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically, mode 0600."""
    with storage_errors(path, "cannot be written"):
        write_atomically(path, data, mode=0o600)


def write_atomically(path: Path, data: bytes, *, mode: int | None, confirm: Callable[[], None] | None = None) -> None:
    """Replace a file: it has the old content or the new, also after a power cut, and if `confirm`, called when all is written, raises."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = make_own(temporary, mode=0o666 if mode is None else 0o600)
        try:
            write_all(descriptor, data)
            if mode is not None:
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if confirm is not None:
            confirm()
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # a read-only file system refuses even to remove a file that does not exist
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_private_file(path: Path, data: bytes) -> bool:
    """Create a file atomically, mode 0600, and return whether it was created. An existing one is left unchanged."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    write_private(temporary, data)
    try:
        with storage_errors(path, "cannot be written"), suppress(FileExistsError):
            name_anew(temporary, path)
            sync_folder(path.parent)
            return True
        return False
    finally:
        temporary.unlink(missing_ok=True)


def name_anew(temporary: Path, path: Path) -> None:
    """Give a file a path that must be free, else raise `FileExistsError`. Never replaces a file, also on a file system without hard links."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        temporary.replace(path)  # of an empty file of our own


def write_small(path: Path, data: bytes) -> None:
    """Overwrite a private file in place. Neither atomic nor synced."""
    descriptor = open_own(path)
    try:
        os.pwrite(descriptor, data, 0)
        if os.fstat(descriptor).st_size > len(data):  # to empty it first would make the system wait for the disk
            os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)


def make_own(path: Path, *, mode: int = 0o600) -> int:
    """Create a file, private by default, replacing whatever has its path, and return its descriptor for writing."""
    clear(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def open_own(path: Path) -> int:
    """Open a private file for writing in place; a link, a pipe or a directory that has its path is removed, and a new file is made."""
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


def read_own(path: Path, most: int = -1) -> bytes:
    """Return the bytes of a regular file, at most so many if given. Raise `OSError` for a pipe, which would block, and for a link."""
    with open_regular(path) as file:
        return file.read(most)


def open_regular(path: Path, *, follows_links: bool = False) -> BinaryIO:
    """Open a regular file for reading. Raise `OSError` for anything else: a pipe, which would block, and, unless wanted, a link."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def clear_folder(path: Path) -> None:
    """Remove a directory whose path is needed for a file."""
    if path.is_dir() and not path.is_symlink():
        clear(path)


def clear(path: Path) -> None:
    """Remove whatever has this path: a link itself, a directory with its contents."""
    while path.is_dir() and not path.is_symlink():
        with suppress(FileNotFoundError):  # another process removes it, too
            shutil.rmtree(path)
    path.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all the data, in as many calls as the system needs."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def refused_writes(*paths: Path) -> str | None:
    """Return the message for the first of these paths that exists and may not be written; None if there is none."""
    for path in paths:
        if os.access(path, os.F_OK) and not os.access(path, os.W_OK):
            is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
            return f"{path}: {os.strerror(errno.EROFS if is_read_only else errno.EACCES)}: {READ_ONLY}"
    return None


def free_bytes(path: Path) -> int:
    """Return the number of bytes by which a file at `path` can grow."""
    try:
        disk = os.statvfs(next(folder for folder in path.parents if folder.exists()))
        size = path.stat().st_size if path.is_file() else 0
    except OSError:
        return sys.maxsize  # the write that follows reports what is wrong
    free = disk.f_bavail * disk.f_frsize
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return free if largest == resource.RLIM_INFINITY else min(free, max(0, largest - size))


def sync_folder(path: Path) -> None:
    """Sync a directory, so that a new or renamed entry is durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
"""Errors of the operating system that mean there is no space."""


def require_free(path: Path, needed: int) -> None:
    """Raise `DiskFullError` unless a file at `path` can grow by `needed` bytes on this disk and within the process's limit on file sizes."""
    if (free := free_bytes(path)) < needed:
        raise DiskFullError(
            f"{free / 1e6:,.1f} MB of disk space are free, but the graph may need {needed / 1e6:,.0f} MB", path=path
        )


@contextmanager
def as_graph_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the operating system in the block as `GraphError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            raise DiskFullError(reason, path=folder) from error
        raise GraphError(f"{folder} cannot be written: {reason}") from error


def size_on_disk(folder: Path) -> int:
    """Return the number of bytes of all files under a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # another process has just removed it
                total += (Path(parent) / name).stat().st_size
    return total


def beyond(size: int, max_memory_mb: int) -> str | None:
    """Return a sentence if a store's size is above the setting `max_memory_mb`; 0 is no limit."""
    if not max_memory_mb or size <= max_memory_mb * 1_000_000:
        return None
    return f"the store takes {size / 1e6:,.1f} MB, more than max_memory_mb = {max_memory_mb:,}"
