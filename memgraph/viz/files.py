"""Atomic writing of files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memgraph.errors import StorageError

_MOST_PREFIX_CHARS = 100
"""Maximum part of a file's name in its temporary file's name, because names have a maximum length."""
_PRIVATE = 0o600


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files atomically: all as temporary files, which then replace the targets; if one cannot be written, none has changed.

    A new file is readable only by its owner; an existing one keeps its mode. A symbolic link is kept, and its target is written. A
    device, pipe or directory is not replaced.
    """
    places = {path: _place(path) for path in contents}
    made: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            with _refusals(path):
                real, mode = places[path]
                descriptor, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:_MOST_PREFIX_CHARS]}.")
                made[path] = Path(name)
                with os.fdopen(descriptor, "wb") as stream:
                    os.fchmod(descriptor, mode)
                    stream.write(content)
                    stream.flush()
                    os.fsync(descriptor)
        for path in contents:
            with _refusals(path):
                made[path].replace(places[path][0])
                del made[path]
    finally:
        for left in made.values():
            left.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Create a directory and its parents if they do not exist."""
    with _refusals(path):
        path.mkdir(parents=True, exist_ok=True)


def _place(path: Path) -> tuple[Path, int]:
    """Return the path, with all symbolic links resolved, and the mode with which to write a file."""
    if not path.name:
        raise StorageError("must name a file", path=path)
    with _refusals(path):
        real = Path(os.path.realpath(path))
        try:
            mode = real.lstat().st_mode
        except FileNotFoundError:
            return real, _PRIVATE
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a directory")
        if not stat.S_ISREG(mode):
            raise OSError(None, "it is not a regular file")
        return real, stat.S_IMODE(mode)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # a ValueError: the path has a NUL, or half of a surrogate pair
        why = error.strerror if isinstance(error, OSError) else error
        raise StorageError(f"cannot be written: {why}; choose another path", path=path) from None
