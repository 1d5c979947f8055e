"""The files that memgraph wrote from a store, so that a purge can name those that may still hold what it removed.

A small file beside the journal: an export is a read, which also works where nothing can be written, and changes no memory.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import orjson

from memgraph.disk.files import read_own, write_private
from memgraph.errors import InvalidInputError, StorageError
from memgraph.logs import logger_of
from memgraph.model.results.maintenance import KnownExport

logger = logger_of(__name__)

FILE = "exports.json"
_MOST = 1_000
"""Maximum number of files that are remembered; the oldest are forgotten first."""


def known_exports(home: Path) -> list[KnownExport]:
    """Return the files that were written, oldest first."""
    found = _read(home / FILE)
    if found is None:
        logger.warning("%s cannot be read: earlier exports are not known", home / FILE)
    return found or []


def note_exports(home: Path, kind: str, *paths: Path, at: str) -> None:
    """Remember files that were written. If the system refuses, they are not remembered.

    A list that cannot be read is kept beside the new one, as ``exports.json.damaged``, followed by a number from the second on.

    Parameters
    ----------
    at : str
        The present time.
    """
    path = home / FILE
    known = _read(path)
    if known is None:
        try:
            aside = _set_aside(path)
        except OSError as error:
            logger.warning("%s cannot be read or moved (%s): an export is not remembered", path, error.strerror)
            return
        logger.warning("%s cannot be read: it is kept as %s; a new list begins", path, aside.name)
    new = {str(one.absolute()): KnownExport(path=str(one.absolute()), at=at, kind=kind, is_there=True) for one in paths}
    kept = [one for one in known or [] if one.path not in new]
    entries = [one.model_dump(mode="json", exclude={"is_there"}) for one in [*kept, *new.values()][-_MOST:]]
    try:
        write_private(path, orjson.dumps(entries))
    except StorageError as error:
        logger.info("an export is not remembered: %s", error.loggable)


def _read(path: Path) -> list[KnownExport] | None:
    """Return the list, which is empty if there is no file; None if it cannot be read."""
    try:
        entries = orjson.loads(read_own(path))
        return [KnownExport.parse({**entry, "is_there": Path(entry["path"]).exists()}) for entry in entries]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, InvalidInputError):
        return None


def _set_aside(path: Path) -> Path:
    """Rename a list that cannot be read, so that a person can still read it."""
    names = (path.with_name(f"{path.name}.damaged{number or ''}") for number in count())
    aside = next(one for one in names if not os.path.lexists(one))
    return path.rename(aside)
