"""Location of a store's rows and index: its own directory or, if that is read-only, a temporary copy.

A database must be writable, with its log. A copy makes the store readable without that: it is verified, and updated or rebuilt from the
journal like the original, and is removed with the last store object that uses it.
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
    """The location of rows and index.

    Attributes
    ----------
    folder : Path
        Contains the database and the folder ``index``.
    copy : TemporaryFolder or None
        The temporary folder, if this is a copy.
    refused : str
        Which part of the store is not writable, and why, in words; empty if all of it is.
    """

    folder: Path
    copy: TemporaryFolder | None = None
    refused: str = ""


def place_of(home: Path, *, has_key: bool = True) -> Place:
    """Return where a store's rows and index can be used; they are copied if they are not writable in place.

    Without the store's key they cannot be verified: they are rebuilt in the other place, and the originals are left
    alone.

    Raises
    ------
    StorageError
        A copy is needed and cannot be made.
    """
    database = list(home.glob("memgraph.db*"))
    refused = refused_writes(home, *database)
    if refused is None and has_key:
        return Place(home)
    refused = refused or "the store's key is missing"
    try:
        parent = Path(gettempdir())
        remove_abandoned(parent, _PREFIX)
        copy = TemporaryFolder(parent, _PREFIX)
        for path in (*database, home / "index" / "index.npz") if has_key else ():
            if (
                path.is_file() and os.access(path, os.R_OK) and path.suffix != ".db-shm"
            ):  # what is missing is rebuilt from the journal
                place = copy.path / path.relative_to(home)
                make_private_folder(place.parent)
                shutil.copyfile(path, place)
    except OSError as error:
        problem = (
            f"is read-only, and its rows cannot be copied: {error.strerror}; set TMPDIR to a directory with free space"
        )
        raise StorageError(problem, path=home) from None
    logger.info("%s: using a copy of rows and index at %s", refused, copy.path)
    return Place(copy.path, copy, refused)
