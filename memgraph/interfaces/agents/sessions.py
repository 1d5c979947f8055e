"""What hooks keep of a session in the store's directory: ids and times, no texts. Lines of JSON that are only appended.

Hooks of one session may run at the same time: a line is written at once, so none is lost and none needs a lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memgraph.disk.files import make_private_folder
from memgraph.errors import MemGraphError
from memgraph.logs import logger_of

logger = logger_of(__name__)

FOLDER = "agents"
KEPT_DAYS = 30
_MAX_BYTES = 4_000_000
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Recalled:
    """A recall whose memories were given to the agent.

    Attributes
    ----------
    call_id : str
        The failed use of a tool that caused it, or "".
    """

    query_id: str
    memory_ids: tuple[str, ...]
    call_id: str = ""


class SessionLog:
    """The records of one session.

    Parameters
    ----------
    home : Path
        The store's directory.
    client, session_id : str
    """

    def __init__(self, home: Path, client: str, session_id: str) -> None:
        self.name = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()[:32]
        self._path = folder_of(home, client) / "sessions" / f"{self.name}.jsonl"

    def add(self, kind: str, **fields: Any) -> None:
        """Append a record. If the system refuses, the session goes on without it."""
        line = json.dumps({"kind": kind, "at": time.time(), **fields}).encode() + b"\n"
        try:
            make_private_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except (OSError, MemGraphError) as error:
            logger.warning("a record of a session cannot be written: %s", _reason(error))

    def records(self) -> list[dict[str, Any]]:
        """Return all records, oldest first; unreadable ones are left out."""
        return list(self._read())

    def recalls(self) -> list[Recalled]:
        """Return the recalls of the session."""
        return [
            Recalled(one["query_id"], tuple(one["memory_ids"]), one.get("call_id", ""))
            for one in self._read()
            if one["kind"] == "recalled"
        ]

    def shown(self) -> set[str]:
        """Return the ids of the memories that are in the session's context."""
        found: set[str] = set()
        for one in self._read():
            found = set() if one["kind"] == "lost context" else found.union(one.get("memory_ids", ()))
        return found

    def has_section(self, state: str) -> bool:
        """Return whether what belongs to the session is in its context in this state."""
        found = ""
        for one in self._read():
            if one["kind"] in {"lost context", "session"}:
                found = one.get("state", "")
        return found == state

    def last(self, kind: str) -> dict[str, Any] | None:
        """Return the last record of a kind."""
        return next((one for one in reversed(self.records()) if one["kind"] == kind), None)

    def _read(self) -> Iterator[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _MAX_BYTES))  # the newest records count
                data = file.read(_MAX_BYTES)
        except OSError:
            return
        for line in data.splitlines():
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict) and isinstance(record.get("kind"), str):
                    yield record


def folder_of(home: Path, client: str) -> Path:
    """Return the directory in the store for what concerns a client."""
    return home / FOLDER / client


def remove_old(home: Path, client: str, *, now: float) -> None:
    """Remove the records of sessions that had no event for `KEPT_DAYS`."""
    for path in (folder_of(home, client) / "sessions").glob("*.jsonl"):
        with suppress(OSError):
            if path.stat().st_mtime < now - KEPT_DAYS * _DAY_S:
                path.unlink()


def _reason(error: OSError | MemGraphError) -> str:
    return error.loggable if isinstance(error, MemGraphError) else str(error.strerror)
