"""Folders that processes share: temporary ones, removed when their owner has ended, and cached views of the past."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

from memgraph.disk.files import make_private_folder
from memgraph.errors import StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

MOST_KEPT = 4
"""Number of cached views of a directory; the least recently used ones beyond it are removed."""
_USED = "used"
_UNFINISHED = "."
"""Start of the names of directories in which views are made, or which are being removed."""


class TemporaryFolder:
    """A private folder, removed by `remove` or when the process ends; its owner locks it, so that `remove_abandoned` knows which are in use."""

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
        self.remove = finalize(self, _remove_own, path, descriptor, os.getpid())


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove this user's temporary folders with this prefix whose owner has ended."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError):  # another process has just removed it
            if path.lstat().st_uid == os.geteuid() and (descriptor := _locked(path)) is not None:
                _remove_own(path, descriptor, os.getpid())


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


def _remove_own(path: Path, descriptor: int, pid: int) -> None:
    if pid == os.getpid():  # a forked child does not own the folder
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


class Lease:
    """A view in use, the directory of graph and index: it is not removed until `release`."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor: int | None = descriptor

    def check(self) -> None:
        """Raise a `StorageError` if the view was removed nevertheless."""
        if not (self.folder / _USED).exists():
            problem = "this view of the past was removed while it was open; open it again"
            raise StorageError(problem, path=self.folder)

    def release(self) -> None:
        """Release it. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class KeptViews:
    """The cached views of the past in one directory, by key, each made in a temporary one and renamed; users hold a shared lock on a file in it."""

    def __init__(self, folder: Path, *, most: int = MOST_KEPT) -> None:
        self._folder = folder
        self._most = most

    def take(self, key: str, make: Callable[[Path], None], *, since: int | None = None) -> Lease:
        """Return a view; unless it is cached, `make` fills its directory. Views of other states of the store than `since` are removed."""
        place = self._folder / (key if since is None else f"{since}-{key}")
        try:
            while (lease := _lease(place)) is None:
                self._make(place, make)
            os.utime(place)
        except OSError as error:
            if self._folder.exists() and not self._folder.is_dir():
                problem = "is not a directory, but views of the past need a directory of this name; move the file"
                raise StorageError(problem, path=self._folder) from None
            raise StorageError(f"a view of the past cannot be stored here: {error.strerror}", path=place) from None
        self._tidy(since)
        return lease

    def _make(self, place: Path, make: Callable[[Path], None]) -> None:
        make_private_folder(self._folder)
        temporary = TemporaryFolder(self._folder, _UNFINISHED)
        try:
            make(temporary.path)
            (temporary.path / _USED).touch(mode=0o600)
            if place.exists() and not (place / _USED).exists():
                shutil.rmtree(place)  # invalid: no view has this form
            try:
                temporary.path.rename(place)
            except OSError:
                if not place.exists():  # otherwise another process has made it meanwhile
                    raise
        finally:
            temporary.remove()

    def _tidy(self, since: int | None) -> None:
        """Remove outdated and the least recently used views, and abandoned directories. This only saves space: failures are just logged."""
        try:
            aged = sorted((folder.stat().st_mtime, folder) for folder in self._folder.iterdir())
            named = [
                folder for _, folder in aged if not folder.name.startswith(_UNFINISHED) and (folder / _USED).exists()
            ]
            outdated = [one for one in named if since is not None and not one.name.startswith(f"{since}-")]
            for folder in {*named[: -self._most], *outdated}:
                _remove(folder)
            remove_abandoned(self._folder, _UNFINISHED)
        except OSError as error:
            logger.warning("old views of the past could not be removed: %s", error.strerror)


def _lease(place: Path) -> Lease | None:
    """Return an existing view, in use from now on; None if there is none, or if it was just removed."""
    try:
        descriptor = os.open(place / _USED, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if (place / _USED).stat().st_ino == os.fstat(descriptor).st_ino:
            return Lease(place, descriptor)
    except FileNotFoundError:
        pass
    os.close(descriptor)
    return None


def _remove(place: Path) -> None:
    """Remove a view unless it is in use."""
    descriptor = os.open(place / _USED, os.O_RDONLY | os.O_CLOEXEC)
    gone = place.with_name(f"{_UNFINISHED}{place.name}.{os.getpid()}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        place.rename(gone)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
    shutil.rmtree(gone, ignore_errors=True)
