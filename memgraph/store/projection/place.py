"""Where a store's graph and index are used: in its own directory or, where that may only be read, in a temporary copy.

The engine, its locks and notes must be able to write. With a copy, reading needs none of that from the store: the copy is checked,
brought up to the journal or made anew from it as the original would be, and is removed with the last store that uses it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from memgraph.disk.files import make_private_folder, only_readable, refused_writes
from memgraph.disk.temporary import TemporaryFolder, remove_abandoned
from memgraph.errors import ReadOnlyError, StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

_PREFIX = "memgraph-read-only-"


class Place(NamedTuple):
    """Where graph and index lie.

    Attributes
    ----------
    folder : Path
        Has the folders ``graph`` and ``index``.
    copy : TemporaryFolder or None
        What keeps the copy, if it is one.
    refused : str
        What of the store may not be written, and why, in words; empty if all may.
    """

    folder: Path
    copy: TemporaryFolder | None = None
    refused: str = ""

    def check_own(self) -> None:
        """Raise `ReadOnlyError` if it is a copy."""
        if self.copy is not None:
            raise ReadOnlyError(only_readable(self.refused))


def place_of(home: Path, *, has_key: bool = True) -> Place:
    """Return where graph and index of a store can be used, copied if they may not be written where they are.

    Without the store's key it cannot be known whether they are the store's: they are made anew in the other place, and left alone.

    Raises
    ------
    StorageError
        There must be a copy, and the system refuses it.
    """
    graph = home / "graph"
    refused = refused_writes(home, home / "graph.lock", graph, *graph.glob("*"))
    if refused is None and has_key:
        return Place(home)
    refused = refused or "the store's key is missing"
    try:
        parent = Path(gettempdir())
        remove_abandoned(parent, _PREFIX)
        copy = TemporaryFolder(parent, _PREFIX)
        for path in (*graph.glob("*"), home / "index" / "index.npz") if has_key else ():
            if path.is_file() and os.access(path, os.R_OK):  # what is missing is made from the journal
                make_private_folder(copy.path / path.parent.name)
                shutil.copyfile(path, copy.path / path.parent.name / path.name)
    except OSError as error:
        problem = (
            f"is read-only, and its graph cannot be copied: {error.strerror}; set TMPDIR to a directory with free space"
        )
        raise StorageError(problem, path=home) from None
    logger.info("%s: using a copy of graph and index at %s", refused, copy.path)
    return Place(copy.path, copy, refused)
