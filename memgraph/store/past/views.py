"""Views of the past that are kept: graph and index of a moment, each in a directory of its own under ``past/``.

A view is made in a temporary directory, which then gets its name: it is there wholly or not at all. Who has one open holds a
shared lock on a file in it, so that only what nobody uses is removed; the lock of a process that was killed is gone with it.
These are the system's own locks, by `fcntl.flock`, and not filelock's as elsewhere: it has no shared ones.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

from memgraph.disk.files import make_private_folder
from memgraph.errors import StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

MOST_KEPT = 4
"""The least recently used beyond these are removed."""
_USED = "used"
_ABANDONED_AFTER_S = 3600.0
"""A directory without a name that is so old has no maker any more."""


class Lease:
    """A view in use: until `release`, nobody removes it.

    Attributes
    ----------
    folder : Path
        Where graph and index lie.
    """

    def __init__(self, folder: Path, descriptor: int) -> None:
        self.folder = folder
        self._descriptor: int | None = descriptor

    @property
    def is_there(self) -> bool:
        """Whether nobody has removed it all the same."""
        return (self.folder / _USED).exists()

    def release(self) -> None:
        """Let go of it; twice is fine."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


class KeptViews:
    """The views of one store, by their keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, key: str, make: Callable[[Path], None]) -> Lease:
        """Return a view, made now unless it is kept.

        Parameters
        ----------
        make : callable
            Fills the directory that it is given.

        Raises
        ------
        StorageError
            The system refuses.
        """
        place = self._folder / key
        try:
            while (lease := _lease(place)) is None:
                self._make(place, make)
            os.utime(place)
        except OSError as error:
            if self._folder.exists() and not self._folder.is_dir():
                problem = "is not a directory, but views of the past need a directory of this name; move the file"
                raise StorageError(problem, path=self._folder) from None
            raise StorageError(f"a view of the past cannot be stored here: {error.strerror}", path=place) from None
        self._tidy()
        return lease

    def _make(self, place: Path, make: Callable[[Path], None]) -> None:
        make_private_folder(self._folder)
        temporary = Path(mkdtemp(prefix=".", dir=self._folder))
        try:
            make(temporary)
            (temporary / _USED).touch(mode=0o600)
            if place.exists() and not (place / _USED).exists():
                shutil.rmtree(place)  # no view ever was like this
            try:
                temporary.rename(place)
            except OSError:
                if not place.exists():  # else another process has made it meanwhile
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _tidy(self) -> None:
        """Remove views that were not used for longest, and what was left half-made. It saves room, so a failure is only told."""
        try:
            aged = sorted((folder.stat().st_mtime, folder) for folder in self._folder.iterdir())
            named = [folder for _, folder in aged if not folder.name.startswith(".") and (folder / _USED).exists()]
            for folder in named[:-MOST_KEPT]:
                _remove(folder)
            for used_at, folder in aged:
                if folder.name.startswith(".") and used_at < time.time() - _ABANDONED_AFTER_S:
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            logger.warning("old views of the past could not be removed: %s", error.strerror)


def _lease(place: Path) -> Lease | None:
    """Return a view that is there, in use from now on; None if there is none, or it was removed just now."""
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
    """Remove a view unless somebody uses it."""
    descriptor = os.open(place / _USED, os.O_RDONLY | os.O_CLOEXEC)
    gone = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        place.rename(gone)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
    shutil.rmtree(gone, ignore_errors=True)
