"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memgraph.errors import StorageError

_MOST_PREFIX_CHARS = 100
"""Of a file's name in that of its temporary one: names have a limit."""


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files, readable by their owner alone: all of them as temporary ones first, which then take their places.

    Raises
    ------
    StorageError
        One cannot be written; then none has changed.
    """
    made: dict[Path, Path] = {}
    try:
        for path, content in contents.items():
            with _refusals(path):
                descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_MOST_PREFIX_CHARS]}.")
                made[path] = Path(name)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(content)
                    stream.flush()
                    os.fsync(stream.fileno())
                if path.is_dir():
                    raise IsADirectoryError(None, "it is a directory")
        for path in contents:
            with _refusals(path):
                made.pop(path).replace(path)
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


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot be written: {error.strerror}; name another place", path=path) from None
