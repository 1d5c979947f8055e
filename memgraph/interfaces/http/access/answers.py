"""Answers to writes, kept under the client's idempotency key: a repeated request is answered, not carried out again.

Before a write a row names it, with a fresh request id; the commits that it makes have ids derived from that, in the journal. Its answer
is kept, synced, before it is sent; so is its failure if it had stored something by then. If the process is killed between commit and
answer, the journal says what the write stored.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

import orjson

from memgraph.disk.files import make_private_folder
from memgraph.errors import DiskFullError, InvalidInputError, StorageError
from memgraph.interfaces.http.access.refusals import KeyReusedError, KeyRunningError, PartlyStoredError, status_of
from memgraph.interfaces.operations import Answer
from memgraph.interfaces.refusals import remote_message_of
from memgraph.journal.envelope import Event
from memgraph.journal.sql import is_full
from memgraph.logs import logger_of
from memgraph.model.events.memories import MemoryAdded
from memgraph.store.commit.writer import Requests
from memgraph.store.purge.exports import open_answers

logger = logger_of(__name__)
KEPT_S = 86_400.0
_CLEANED_EVERY_S = 3_600.0
MAX_KEY_CHARS = 255


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
        self._running: set[str] = set()
        self._cleaned = now()
        make_private_folder(path.parent)
        with self._storing():
            self._rows = open_answers(path)
        self._clean()

    def once(
        self,
        key: str,
        *,
        owner: str,
        request: Mapping[str, Any],
        requests: Requests,
        run: Callable[[], Answer],
        is_one_commit: bool = False,
    ) -> tuple[Answer, bool]:
        """Return the answer to a request, and whether it was kept; carry it out if it was not before.

        Parameters
        ----------
        owner : str
            Whose key it is: two clients may choose the same.
        request : mapping
            The operation and its arguments: a key is for one request.
        is_one_commit : bool
            What `run` stores is in one commit: it is stored whole or not at all.

        Raises
        ------
        KeyReusedError
            The key was used for another request.
        KeyRunningError
            The key's request still runs.
        PartlyStoredError
            `run` raised an error, now or before, and had stored something.
        Exception
            What `run` raises if nothing was stored. The key can be used again.
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
            if row is not None and row[4] is not None:
                kept = orjson.loads(row[4])
                if row[3] != HTTPStatus.OK:
                    raise PartlyStoredError(row[3], kept, is_replayed=True)
                return Answer.parse(kept), True
            if row is not None and (events := requests.made_by(row[1], after=row[2])):
                return self._kept(row_id, recovered(events, is_complete=is_one_commit)), True
            request_id, seq = (row[1], row[2]) if row else (str(uuid4()), requests.seq)
            if row is None:
                self._do(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, NULL, NULL)",
                    row_id,
                    fingerprint,
                    request_id,
                    seq,
                    self._now(),
                )
            try:
                with requests.naming(request_id):
                    answer = run()
            except Exception as error:
                events = requests.made_by(request_id, after=seq)
                if not events:
                    self._do("DELETE FROM answers WHERE id = ?", row_id)
                    raise
                raise self._failed(row_id, error, events) from error
            return self._kept(row_id, answer), False

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._guard:
            self._rows.close()

    def _kept(self, row_id: str, answer: Answer) -> Answer:
        self._keep(row_id, HTTPStatus.OK, answer.model_dump(mode="json"))
        return answer

    def _failed(self, row_id: str, error: Exception, events: list[Event]) -> PartlyStoredError:
        """Keep the failure of a write that had stored something, and return it."""
        logger.error("a write failed with %s after it had stored something", type(error).__name__)
        status = status_of(error)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:  # which would ask for the same request again
            status = HTTPStatus.INTERNAL_SERVER_ERROR
        detail = f"{remote_message_of(error)}; before that at least this was stored: {_stored(events)}. To try again, use a new key"
        document: dict[str, Any] = {"detail": detail, "error": type(error).__name__, "memory_ids": _added(events)}
        if isinstance(error, InvalidInputError):
            document["field"] = error.field
        self._keep(row_id, status, document)
        return PartlyStoredError(status, document, is_replayed=False)

    def _keep(self, row_id: str, status: int, document: dict[str, Any]) -> None:
        statement = "UPDATE answers SET status = ?, answer = ? WHERE id = ?"
        self._do(statement, int(status), orjson.dumps(document), row_id)

    def _clean(self) -> None:
        """Delete old answers."""
        self._cleaned = self._now()
        self._do("DELETE FROM answers WHERE began < ?", self._cleaned - KEPT_S)

    def _row(self, row_id: str) -> tuple[str, str, int, int, bytes | None] | None:
        with self._guard, self._storing(), closing(self._rows.cursor()) as cursor:
            kept = "SELECT fingerprint, request_id, seq, status, answer FROM answers WHERE id = ? AND began >= ?"
            cursor.execute(kept, (row_id, self._now() - KEPT_S))
            found: tuple[str, str, int, int, bytes | None] | None = cursor.fetchone()
        return found

    def _do(self, statement: str, *values: object) -> None:
        with self._guard, self._storing():
            self._rows.execute(statement, values)

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if is_full(error):
                raise DiskFullError("no space is left for answers", path=self._path) from None
            problem = f"answers cannot be kept: {error}; free some disk space, or remove the file if it is damaged"
            raise StorageError(problem, path=self._path) from None

    @contextmanager
    def _alone(self, row_id: str) -> Iterator[None]:
        """Let one request of a key run at a time. Another one does not wait: it would hold one of the few threads.

        Raises
        ------
        KeyRunningError
        """
        with self._guard:
            if row_id in self._running:
                raise KeyRunningError(
                    "the request of this Idempotency-Key still runs; send it again later for its answer"
                )
            self._running.add(row_id)
        try:
            if self._now() - self._cleaned > _CLEANED_EVERY_S:
                self._clean()
            yield
        finally:
            with self._guard:
                self._running.discard(row_id)


def recovered(events: list[Event], *, is_complete: bool) -> Answer:
    """Return the answer to a request that stored something, and whose own answer was lost with the process.

    Parameters
    ----------
    is_complete : bool
        The request makes one commit, so that all of it was stored.
    """
    text = "The server ended before it answered; at least this was stored:"
    if is_complete:
        text = "This was carried out; the server ended before it answered."
    data = {"memory_ids": _added(events), "is_recovered": True, "is_complete": is_complete}
    return Answer(text=f"{text} {_stored(events)}", data=data)


def _added(events: list[Event]) -> list[str]:
    return [event.payload.memory.id for event in events if isinstance(event.payload, MemoryAdded)]


def _stored(events: list[Event]) -> str:
    """Return what events stored, in words: new memories by their ids, and the types of the others."""
    ids = _added(events)
    others = sorted({event.payload.TYPE for event in events if not isinstance(event.payload, MemoryAdded)})
    return ", ".join([*(f"memory {one}" for one in ids), *others])


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
