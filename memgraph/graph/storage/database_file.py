"""The graph's file: checks before the engine opens it, disk space before it writes, and queries in a separate process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from memgraph.disk.files import free_bytes, make_private_folder, require_free
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.disk.seal import Seal
from memgraph.errors import GraphError
from memgraph.graph.connection import Vendor, most_database_bytes
from memgraph.graph.storage.open_note import OpenNote, log_of, remove
from memgraph.graph.worker.process import EndedError, EngineProcess, GaveWayError, Limits
from memgraph.logs import logger_of
from memgraph.model.results.rows import Rows
from memgraph.ports import Change

logger = logger_of(__name__)

BUFFER_POOL_BYTES = 512 << 20
_POOL_BYTES_A_MEMORY = 12_000
"""A COPY of 100,000 memories at once does not fit into 512 MB."""
_POOL_OF_FILE = 2
"""Buffer pool relative to the file. To merge a changed text into the file, the engine holds the old and new column of up to 131,072
rows: with 100,000 memories, a file of 500 MB, that takes more than 512 MB. The engine allocates only what it needs."""
_PROBE_TIMEOUT_S = 120.0
_CHECKPOINT_BYTES = 32 << 20
"""A checkpoint of one memory's log has made the file 25 MB larger; a longer log needs several times its own size in addition."""
_BYTES_A_MEMORY = 8_000
_BYTES_A_ROW = 300
"""Twice the measured peak of a bulk write."""
_COPY = "query-"
"""Prefix of folders that hold a copy of the file for a query."""
_SHORT_QUERIES = EngineProcess()
_LONG_QUERIES = EngineProcess()
"""Runs long queries on copies, so that short ones need not wait."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """Limits at which the engine's log is merged into the file (checkpoint).

    Attributes
    ----------
    short_bytes : int
        A log up to this size is kept at close and replayed at the next opening: about thirty commits.
    long_bytes : int
        A larger log is merged at once: about a thousand commits.
    most_writes : int
        More writes are merged at once. Until then the engine keeps about 80 kB of its buffer pool for each: after 6,200 it was full.
    """

    short_bytes: int = 256 << 10
    long_bytes: int = 8 << 20
    most_writes: int = 500


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of a user's query.

    Attributes
    ----------
    timeout_s : float
        The engine checks it between batches of rows, so a query may end somewhat later.
    rows, answer_bytes : int
        Maximum size of the answer.
    grace_s : float
        Time after the timeout at which the process of the query is killed.
    memory_bytes : int
        Maximum memory beyond the buffer pool.
    """

    timeout_s: float = 30.0
    rows: int = 100_000
    answer_bytes: int = 256 << 20
    grace_s: float = 2.0
    memory_bytes: int = 2 << 30

    @property
    def most_memory(self) -> int:
        """Maximum memory in bytes, with the buffer pool."""
        return BUFFER_POOL_BYTES + self.memory_bytes


def pool_to_copy(memories: int) -> int:
    """Return the size in bytes of the buffer pool for a COPY of this many memories into a new file."""
    return max(BUFFER_POOL_BYTES, _POOL_BYTES_A_MEMORY * memories)


class GraphFile:
    """A graph's file and the files beside it. Callers hold the graph's lock."""

    def __init__(self, path: Path, vendor: Vendor, seal: Seal, limits: LogLimits, queries: QueryLimits) -> None:
        self.path = path
        self._vendor = vendor
        self._limits = limits
        self._query_limits = queries
        self._log = log_of(path)
        self._note = OpenNote(path, seal)
        self._writes = 0

    def before_opening(self) -> bool:
        """Check that the engine may open the file, and return whether there is none yet.

        Raises
        ------
        GraphError
            The file is damaged, or changed since it was closed: rebuild it.
        DiskFullError
            There is too little space for a new file. An existing graph can be read on a full disk.
        """
        make_private_folder(self.path.parent)
        remove_abandoned(self.path.parent, _COPY)
        self._note.admit(self._probe)
        is_new = not self.path.exists()
        if is_new:
            require_free(self.path, _CHECKPOINT_BYTES)
            for other in self.path.parent.glob(f"{self.path.stem}.*"):
                logger.warning(
                    "removing %s: it belongs to another engine, and this store now uses %s", other, self._vendor.name
                )
                remove(other)
        self._note.opened()
        if is_new:
            logger.info("created a new graph at %s", self.path)
        return is_new

    def size_bytes(self) -> int:
        """Return the size of the file and its log."""
        return (self.path.stat().st_size if self.path.exists() else 0) + self._log_bytes()

    def pool_bytes(self) -> int:
        """Return the size of the buffer pool for the file."""
        size = self.path.stat().st_size if self.path.exists() else 0
        return max(BUFFER_POOL_BYTES, _POOL_OF_FILE * size)

    def before_checkpoint(self) -> None:
        """Check, before the file is sealed again, that nobody else has written to it since it was opened or last rewritten.

        Raises
        ------
        GraphError
            Another process has written to it.
        """
        if not self._note.is_unwritten():
            raise GraphError(f"{self.path} was changed while it was open")

    def after_checkpoint(self) -> None:
        """Record that the log is merged into the file."""
        self._writes = 0
        self._note.written()

    def before_writing(self, path: Path, changes: Sequence[Change]) -> None:
        """Check that there is disk space for changes, and for their checkpoint into the file at `path`.

        Raises
        ------
        DiskFullError
            There is too little space.
        """
        self._writes += 1
        memories = sum(change.table == "Memory" for change in changes)
        require_free(path, self._checkpoint_bytes() + memories * _BYTES_A_MEMORY + len(changes) * _BYTES_A_ROW)

    def has_log(self) -> bool:
        """Return whether the engine will replay a log when it opens the file."""
        return self._log_bytes() > 0

    def has_long_log(self) -> bool:
        """Return whether the log has reached a size or number of writes at which it is merged into the file."""
        return self._writes >= self._limits.most_writes or self._log_bytes() > self._limits.long_bytes

    def can_take_log(self) -> bool:
        """Return whether a checkpoint is worth it, there is disk space for it, and nobody else has written to the file.

        Replaying a short log at the next opening is cheaper: it takes a millisecond or two per commit, and a checkpoint rewrites much
        of the file.
        """
        is_worth_it = self._log_bytes() > self._limits.short_bytes
        return is_worth_it and free_bytes(self.path) >= self._checkpoint_bytes() and self._note.is_unwritten()

    def after_closing(self) -> None:
        """Record the present log as the expected one; the file is as it was after the last checkpoint."""
        self._note.closed(is_rewritten=False)

    def replace(self, fresh: Path) -> None:
        """Replace the file with another, which is closed and has no log."""
        for old in self.path.parent.glob(f"{self.path.stem}.*"):
            if old != fresh:
                remove(old)
        fresh.replace(self.path)
        self._note.closed(is_rewritten=True)

    def query(
        self, query: str, params: Mapping[str, Any], gives_way: Callable[[], bool] | None = None
    ) -> Rows | Callable[[], Rows]:
        """Run a user's checked query in another process, which opens the file; it is closed in this one meanwhile.

        Parameters
        ----------
        gives_way : callable, optional
            Returns whether the query must give way to another user of the graph. It is then stopped, and a function is returned that
            runs it again from the start on a copy of the file; call it after the graph has been released.

        Raises
        ------
        QueryError
            The query is refused by the engine, or had to be stopped.
        GraphError
            The file is not as it was when it was closed.
        """
        self._note.check()
        request = {
            **self._request(),
            "query": query,
            "params": dict(params),
            "timeout_s": self._query_limits.timeout_s,
            "most_rows": self._query_limits.rows,
            "most_bytes": self._query_limits.answer_bytes,
        }
        limits = Limits(self._query_limits.timeout_s + self._query_limits.grace_s, self._query_limits.most_memory)
        try:
            if gives_way is None:
                return _SHORT_QUERIES.query(request, limits)
            try:
                patient = replace(limits, gives_way=lambda: gives_way() and self._has_room_for_copy())
                return _SHORT_QUERIES.query(request, patient)
            except GaveWayError:
                if copy := self._copied():
                    return partial(_query_copy, copy, request | {"path": str(copy.path / self.path.name)}, limits)
                return _SHORT_QUERIES.query(request, limits)
        except EndedError:
            self._note.suspect()  # the query or a damaged file may be the cause
            raise

    def _has_room_for_copy(self) -> bool:
        """Return whether a copy leaves the graph the disk space that it needs itself."""
        return free_bytes(self.path.with_name(_COPY)) >= self.size_bytes() + self._checkpoint_bytes()

    def _copied(self) -> TemporaryFolder | None:
        """Copy the closed file and its log to a temporary folder; return None if the system refuses.

        Raises
        ------
        GraphError
            The copy differs from the file as it was closed.
        """
        try:
            folder = TemporaryFolder(self.path.parent.absolute(), _COPY)
            for path in (self.path, self._log):
                if path.exists():
                    shutil.copyfile(path, folder.path / path.name)
        except OSError as error:
            logger.info(
                "other processes must wait for a long query: the graph cannot be copied for it (%s)", error.strerror
            )
            return None
        self._note.check(folder.path / self.path.name)
        logger.info("a long query continues on a copy of the graph, because other processes are waiting for the graph")
        return folder

    def _probe(self) -> None:
        require_free(self.path, self._checkpoint_bytes())
        _SHORT_QUERIES.probe(self._request(), Limits(_PROBE_TIMEOUT_S, self._query_limits.most_memory))

    def _request(self) -> dict[str, Any]:
        return {
            "engine": self._vendor.name,
            "path": str(self.path.absolute()),
            "buffer_pool_bytes": BUFFER_POOL_BYTES,
            "most_database_bytes": most_database_bytes(),
        }

    def _checkpoint_bytes(self) -> int:
        return _CHECKPOINT_BYTES + 4 * self._log_bytes()

    def _log_bytes(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0


def _query_copy(folder: TemporaryFolder, request: Mapping[str, Any], limits: Limits) -> Rows:
    """Run a query on a copy of the file, and remove the copy."""
    try:
        return _LONG_QUERIES.query(request, limits)
    finally:
        folder.remove()
