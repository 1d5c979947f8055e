"""The file of the answers that `memgraph serve` keeps for a day, of which a purge takes the words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import orjson

from memgraph.errors import StorageError

FILE = "server/answers.sqlite"
_REMOVED = "This was carried out; a purge has removed the answer."
_BUSY_S = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
  id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, request_id TEXT NOT NULL, seq INTEGER NOT NULL, began REAL NOT NULL,
  status INTEGER, answer BLOB
) WITHOUT ROWID
"""


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
