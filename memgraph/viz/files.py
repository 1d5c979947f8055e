"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from memgraph.errors import StorageError

_MOST_PREFIX_CHARS = 100
"""Maximum part of a file's name in its temporary file's name, because names have a maximum length."""
_PRIVATE = 0o600


class _Place(NamedTuple):
    """A file's path with all symbolic links resolved, and its mode."""

    path: Path
    mode: int


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files atomically: first all of them as temporary files, which then replace the targets.

    A new file is readable only by its owner; an existing one keeps its mode. A symbolic link is kept, and its target is written. A
    device, pipe or directory is not replaced.

    Raises
    ------
    StorageError
        A file cannot be written; then none has changed.
    """
    places = {path: _place(path) for path in contents}
    made: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            with _refusals(path):
                place = places[path]
                prefix = f".{place.path.name[:_MOST_PREFIX_CHARS]}."
                descriptor, name = tempfile.mkstemp(dir=place.path.parent, prefix=prefix)
                made[path] = Path(name)
                with os.fdopen(descriptor, "wb") as stream:
                    os.fchmod(descriptor, place.mode)
                    stream.write(content)
                    stream.flush()
                    os.fsync(descriptor)
        for path in contents:
            with _refusals(path):
                made[path].replace(places[path].path)
                del made[path]
    finally:
        for left in made.values():
            left.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Create a directory and its parents if they do not exist.

    Raises
    ------
    StorageError
        It cannot be created.
    """
    with _refusals(path):
        path.mkdir(parents=True, exist_ok=True)


def _place(path: Path) -> _Place:
    """Return the path and mode with which to write a file.

    Raises
    ------
    StorageError
        The path is a directory or another non-regular file, or has no name.
    """
    if not path.name:
        raise StorageError("must name a file", path=path)
    with _refusals(path):
        real = Path(os.path.realpath(path))
        try:
            mode = real.lstat().st_mode
        except FileNotFoundError:
            return _Place(real, _PRIVATE)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a directory")
        if not stat.S_ISREG(mode):
            raise OSError(None, "it is not a regular file")
        return _Place(real, stat.S_IMODE(mode))


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}; choose another path", path=path) from None
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise StorageError(f"cannot be written: {error}; choose another path", path=path) from None
