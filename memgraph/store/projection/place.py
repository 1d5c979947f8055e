"""Location of a store's graph and index: its own directory or, if that is read-only, a temporary copy.

The engine must be able to write, with its locks and notes. A copy makes the store readable without that: it is
verified, and updated or rebuilt from the journal like the original, and is removed with the last store object that uses
it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from memgraph.disk.files import make_private_folder, refused_writes
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.errors import StorageError
from memgraph.logs import logger_of

logger = logger_of(__name__)

_PREFIX = "memgraph-read-only-"


class Place(NamedTuple):
    """The location of graph and index.

    Attributes
    ----------
    folder : Path
        Contains the folders ``graph`` and ``index``.
    copy : TemporaryFolder or None
        The temporary folder, if this is a copy.
    refused : str
        Which part of the store is not writable, and why, in words; empty if all of it is.
    """

    folder: Path
    copy: TemporaryFolder | None = None
    refused: str = ""


def place_of(home: Path, *, has_key: bool = True) -> Place:
    """Return where a store's graph and index can be used; they are copied if they are not writable in place.

    Without the store's key they cannot be verified: they are rebuilt in the other place, and the originals are left
    alone.

    Raises
    ------
    StorageError
        A copy is needed and cannot be made.
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
            if path.is_file() and os.access(path, os.R_OK):  # missing files are rebuilt from the journal
                make_private_folder(copy.path / path.parent.name)
                shutil.copyfile(path, copy.path / path.parent.name / path.name)
    except OSError as error:
        problem = (
            f"is read-only, and its graph cannot be copied: {error.strerror}; set TMPDIR to a directory with free space"
        )
        raise StorageError(problem, path=home) from None
    logger.info("%s: using a copy of graph and index at %s", refused, copy.path)
    return Place(copy.path, copy, refused)
