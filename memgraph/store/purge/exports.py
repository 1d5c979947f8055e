"""The files that memgraph wrote from a store, so that a purge can name those that may still hold what it removed.

A small file beside the journal: an export is a read, which also works where nothing can be written, and changes no memory.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson

from memgraph.disk.files import read_own, write_private
from memgraph.errors import InvalidInputError, StorageError
from memgraph.logs import logger_of
from memgraph.model.results.purges import KnownExport
from memgraph.model.timestamps import to_iso

logger = logger_of(__name__)

_FILE = "exports.json"
_MOST = 1_000
"""Maximum number of files that are remembered; the oldest are forgotten first."""


def known_exports(home: Path) -> list[KnownExport]:
    """Return the files that were written, oldest first."""
    try:
        entries = orjson.loads(read_own(home / _FILE))
        found = [KnownExport.parse({**entry, "is_there": Path(entry["path"]).exists()}) for entry in entries]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, InvalidInputError):
        logger.warning("%s cannot be read: earlier exports are not known", home / _FILE)
        return []
    return found


def note_exports(home: Path, kind: str, *paths: Path) -> None:
    """Remember files that were written. If the system refuses, they are not remembered."""
    at = to_iso(datetime.now(UTC))
    new = {
        str(path.absolute()): KnownExport(path=str(path.absolute()), at=at, kind=kind, is_there=True) for path in paths
    }
    kept = [one for one in known_exports(home) if one.path not in new]
    entries = [one.model_dump(mode="json", exclude={"is_there"}) for one in [*kept, *new.values()][-_MOST:]]
    try:
        write_private(home / _FILE, orjson.dumps(entries))
    except StorageError as error:
        logger.info("an export is not remembered: %s", error.loggable)
