"""Answers to writes, kept under the client's idempotency key: a repeated request is answered, not carried out again.

Before a write a row names it, with a fresh request id; the commits that it makes have ids derived from that, in the journal. Its answer
is kept, synced, before it is sent. If the process is killed between commit and answer, the journal says whether the write was made.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Condition, RLock
from typing import Any
from uuid import uuid4

import orjson

from memgraph.disk.files import make_private_folder
from memgraph.errors import InvalidInputError, MemGraphError, StorageError
from memgraph.interfaces.operations import Answer
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded
from memgraph.store.commit.requests import Requests

KEPT_S = 86_400.0
MAX_KEY_CHARS = 255
_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
  id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, request_id TEXT NOT NULL, seq INTEGER NOT NULL, began REAL NOT NULL, answer BLOB
) WITHOUT ROWID
"""


class KeyReusedError(MemGraphError):
    """An idempotency key was used for another request before."""


class Answers:
    """The answers of one store. Thread-safe; one process at a time.

    Parameters
    ----------
    path : Path
        The file; it is created.
    now : callable
        Seconds since the epoch.

    Raises
    ------
    StorageError
        The file cannot be opened.
    """

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._guard = RLock()
        self._turn = Condition()
        self._running: Counter[str] = Counter()
        make_private_folder(path.parent)
        with self._storing():
            path.touch(mode=0o600)
            self._rows = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._rows.execute("PRAGMA journal_mode = WAL")
            self._rows.execute("PRAGMA synchronous = FULL")  # an answer is on the disk before it is sent
            self._rows.execute("PRAGMA secure_delete = ON")  # it may quote memories
            self._rows.execute(_TABLE)
            self._rows.execute("CREATE INDEX IF NOT EXISTS by_age ON answers (began)")

    def once(
        self,
        key: str,
        *,
        owner: str,
        request: Mapping[str, Any],
        requests: Requests,
        run: Callable[[], Answer],
    ) -> tuple[Answer, bool]:
        """Return the answer to a request, and whether it was kept; carry it out if it was not before.

        Parameters
        ----------
        owner : str
            Whose key it is: two clients may choose the same.
        request : mapping
            The operation and its arguments: a key is for one request.

        Raises
        ------
        KeyReusedError
            The key was used for another request.
        MemGraphError
            What `run` raises. The key can be used again then, unless something was stored.
        """
        if not 0 < len(key) <= MAX_KEY_CHARS or not key.isascii() or not key.isprintable():
            raise InvalidInputError(f"must be 1 to {MAX_KEY_CHARS} printable ASCII characters", field="Idempotency-Key")
        row_id = _hash(f"{owner}\x1f{key}".encode())
        fingerprint = _hash(orjson.dumps(request, option=orjson.OPT_SORT_KEYS))
        with self._alone(row_id):
            row = self._row(row_id)
            if row is not None and row[0] != fingerprint:
                raise KeyReusedError(
                    "this Idempotency-Key was used for another request; choose a new key for each request"
                )
            if row is not None and row[3] is not None:
                return Answer.parse(orjson.loads(row[3])), True
            if row is not None and (events := requests.made_by(row[1], after=row[2])):
                return self._kept(row_id, recovered(events)), True
            request_id, seq = (row[1], row[2]) if row else (str(uuid4()), requests.seq)
            if row is None:
                self._do("DELETE FROM answers WHERE began < ?", self._now() - KEPT_S)
                self._do(
                    "INSERT INTO answers VALUES (?, ?, ?, ?, ?, NULL)",
                    row_id,
                    fingerprint,
                    request_id,
                    seq,
                    self._now(),
                )
            try:
                with requests.naming(request_id):
                    answer = run()
            except MemGraphError:
                if not requests.made_by(request_id, after=seq):
                    self._do("DELETE FROM answers WHERE id = ?", row_id)
                raise
            return self._kept(row_id, answer), False

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._guard:
            self._rows.close()

    def _kept(self, row_id: str, answer: Answer) -> Answer:
        self._do("UPDATE answers SET answer = ? WHERE id = ?", orjson.dumps(answer.model_dump(mode="json")), row_id)
        return answer

    def _row(self, row_id: str) -> tuple[str, str, int, bytes | None] | None:
        with self._guard, self._storing(), closing(self._rows.cursor()) as cursor:
            kept = "SELECT fingerprint, request_id, seq, answer FROM answers WHERE id = ? AND began >= ?"
            cursor.execute(kept, (row_id, self._now() - KEPT_S))
            found: tuple[str, str, int, bytes | None] | None = cursor.fetchone()
        return found

    def _do(self, statement: str, *values: object) -> None:
        with self._guard, self._storing():
            self._rows.execute(statement, values)

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            problem = f"answers cannot be kept: {error}; free some disk space, or remove the file if it is damaged"
            raise StorageError(problem, path=self._path) from None

    @contextmanager
    def _alone(self, row_id: str) -> Iterator[None]:
        """Let one request of a key run at a time: the next gets its answer."""
        with self._turn:
            self._turn.wait_for(lambda: not self._running[row_id])
            self._running[row_id] = 1
        try:
            yield
        finally:
            with self._turn:
                del self._running[row_id]
                self._turn.notify_all()


def recovered(events: list[Event]) -> Answer:
    """Return the answer to a request that was carried out, and whose own answer was lost with the process."""
    ids = [event.payload.memory.id for event in events if isinstance(event.payload, MemoryAdded)]
    text = "This was carried out; the server ended before it answered."
    return Answer(
        text="\n".join([text, *(f"Saved: {one}" for one in ids)]), data={"memory_ids": ids, "is_recovered": True}
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
