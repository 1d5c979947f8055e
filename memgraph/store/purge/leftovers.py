"""Files of a store that may repeat memories and are neither journal, graph nor index."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson

from memgraph.disk.files import clear
from memgraph.disk.folders import remove_abandoned
from memgraph.errors import StorageError

_FOLDERS = ("past", "agents/overviews", "quarantine", "journal-0.2")
"""Views of the past and of agents; overviews of projects; what repairs cut off the journal; the journal of an earlier release that was moved."""
_ANSWERS = "server/answers.sqlite"
"""The answers that `memgraph serve` keeps for a day (`memgraph.interfaces.http.access.answers`)."""
_REMOVED = "This was carried out; a purge has removed the answer."
_BUSY_S = 10.0
REPAIRING = ".repairing-"
"""Start of the names of the folders in which `memgraph repair --from-backup` unpacks backups."""


def remove_leftovers(home: Path) -> list[str]:
    """Remove them, and return their names, relative to the store's directory.

    Raises
    ------
    StorageError
        The system refuses.
    """
    found = [*(home / name for name in _FOLDERS), *_temporary(home)]
    try:
        removed = [path for path in found if path.exists()]
        unpacked = list(home.glob(f"{REPAIRING}*"))
        remove_abandoned(home, REPAIRING)  # a repair that is under way purges again, with the lock held
        for path in removed:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)  # another process may be making a file in it
            clear(path) if path.exists() else None
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}", path=Path(error.filename or home)) from None
    removed += [path for path in unpacked if not path.exists()]
    names = [str(path.relative_to(home)) for path in removed]
    return [*names, _ANSWERS] if _blank_answers(home / _ANSWERS) else names


def _temporary(home: Path) -> Iterator[Path]:
    """Yield what a killed process left, and copies of the graph for long queries."""
    yield from home.glob(".*.tmp")
    yield from home.glob("*/.*.tmp")
    yield from home.glob("graph/query-*")
    yield from home.glob("graph/load-*")


def _blank_answers(path: Path) -> bool:
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
