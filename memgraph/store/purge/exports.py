"""Copies of memories outside the database: the files that were exported, which a purge names, and the answers that `memgraph serve` keeps for a day.

The list of exports is a small file: an export is a read, which also works where nothing can be written, and changes no memory.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
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
ANSWERS = "server/answers.sqlite"
_REMOVED = "This was carried out; a purge has removed the answer."
_BUSY_S = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
  id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, request_id TEXT NOT NULL, seq INTEGER NOT NULL, began REAL NOT NULL,
  status INTEGER, answer BLOB
) WITHOUT ROWID
"""


def known_exports(home: Path) -> list[KnownExport]:
    """Return the files that were written, oldest first."""
    found = _read(home / FILE)
    if found is None:
        logger.warning("%s cannot be read: earlier exports are not known", home / FILE)
    return found or []


def note_exports(home: Path, kind: str, *paths: Path, at: str) -> None:
    """Remember files that were written at a time, or log that this failed; a list that cannot be read is kept as ``exports.json.damaged``."""
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


def open_answers(path: Path) -> sqlite3.Connection:
    """Open the file, for all threads; it is made if it is missing."""
    path.touch(mode=0o600)
    rows = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    rows.execute("PRAGMA journal_mode = WAL")
    rows.execute("PRAGMA synchronous = FULL")  # an answer is on the disk before it is sent
    rows.execute("PRAGMA secure_delete = ON")  # it may quote memories
    rows.execute(_TABLE)
    rows.execute("CREATE INDEX IF NOT EXISTS by_age ON answers (began)")
    return rows


def blank_answers(path: Path) -> bool:
    """Replace the kept answers by ones without words, so that a request is still not carried out again; return whether there were any."""
    if not path.exists():
        return False
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)) as rows:
            rows.execute("PRAGMA secure_delete = ON")
            found = rows.execute("SELECT id, answer FROM answers WHERE answer IS NOT NULL").fetchall()
            for row_id, answer in found:
                rows.execute("UPDATE answers SET answer = ? WHERE id = ?", (_blank(answer), row_id))
            (is_busy, *_) = rows.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        raise StorageError(f"answers cannot be removed: {error}; remove the file if it is damaged", path=path) from None
    if is_busy:
        raise StorageError("is in use by `memgraph serve`; stop the server, and open the store again", path=path)
    return bool(found)


def _blank(answer: bytes) -> bytes:
    kept = orjson.loads(answer)
    data = kept.get("data", kept)
    ids = data.get("memory_ids", []) if isinstance(data, dict) else []
    if "detail" in kept:
        return orjson.dumps({"detail": _REMOVED, "error": kept.get("error", ""), "memory_ids": ids})
    return orjson.dumps({"text": _REMOVED, "data": {"memory_ids": ids}})
