"""Files that are written whole or not at all."""

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
"""Of a file's name in that of its temporary one: names have a limit."""
_PRIVATE = 0o600


class _Place(NamedTuple):
    """Where a file really lies, behind all links, and who may do what with it."""

    path: Path
    mode: int


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files: all of them as temporary ones first, which then take their places.

    A new file is readable by its owner alone, one that is there keeps its mode. A symbolic link stays one: what it leads to is
    written. What is there and is no regular file (a device, a pipe, a directory) is left as it is.

    Raises
    ------
    StorageError
        One cannot be written; then none has changed.
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
    """Make a directory, and those above it, where there is none.

    Raises
    ------
    StorageError
        It cannot be made.
    """
    with _refusals(path):
        path.mkdir(parents=True, exist_ok=True)


def _place(path: Path) -> _Place:
    """Return where to write a file.

    Raises
    ------
    StorageError
        Something is there that no file may replace, or it has no name.
    """
    if not path.name:
        raise StorageError("a file's name is needed", path=path)
    with _refusals(path):
        real = Path(os.path.realpath(path))
        try:
            mode = real.lstat().st_mode
        except FileNotFoundError:
            return _Place(real, _PRIVATE)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a directory")
        if not stat.S_ISREG(mode):
            raise OSError(None, "it is no regular file")
        return _Place(real, stat.S_IMODE(mode))


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}; name another place", path=path) from None
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise StorageError(f"cannot be written: {error}; name another place", path=path) from None
