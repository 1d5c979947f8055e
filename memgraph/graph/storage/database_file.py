"""The graph's file: looked at before the engine opens it, given room before it writes, lent to a process that may die of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from memgraph.disk.files import make_private_folder, room_left
from memgraph.disk.seal import Seal
from memgraph.disk.space import need
from memgraph.disk.temporary import TemporaryFolder, remove_abandoned
from memgraph.errors import GraphError
from memgraph.graph.connection import MOST_DATABASE_BYTES, Vendor
from memgraph.graph.storage.open_note import OpenNote, log_of, remove
from memgraph.graph.worker.process import EndedError, EngineProcess, GaveWayError, Limits
from memgraph.logs import logger_of
from memgraph.model.results.rows import Rows
from memgraph.ports import Change

logger = logger_of(__name__)

BUFFER_POOL_BYTES = 512 << 20
_POOL_BYTES_A_MEMORY = 12_000
"""100,000 memories that are copied at once do not fit into 512 MB."""
_POOL_OF_FILE = 2
"""To bring a change of a text into the file, the engine holds that column of up to 131,072 rows, old and new: among 100,000 memories,
a file of 500 MB, it takes more than 512 MB. What is not needed is not taken."""
QUERY_TIMEOUT_S = 30.0
"""For a query from outside. The engine looks at the clock between batches of rows, so it may end somewhat later."""
GRACE_S = 2.0
"""So much later its process is killed."""
MAX_QUERY_ROWS = 100_000
MAX_ANSWER_BYTES = 256 << 20
QUERY_MEMORY_BYTES = 2 << 30
"""That a query may take beyond the buffer pool."""
_PROBE_TIMEOUT_S = 120.0
_CHECKPOINT_BYTES = 32 << 20
"""Bringing a log of one memory into the file has made it 25 MB larger; a longer log needs some times its own size more."""
_BYTES_A_MEMORY = 8_000
_BYTES_A_ROW = 300
"""What a bulk write takes at its peak, by measurement, and as much again."""
_COPY = "query-"
"""How the names of folders begin that hold a copy of the file for a query."""
_ASIDE = EngineProcess()
_ON_COPIES = EngineProcess()
"""Runs long queries, so that short ones need not wait for them."""


@dataclass(frozen=True, slots=True)
class LogLimits:
    """When the engine's log is brought into the file.

    Attributes
    ----------
    short_bytes : int
        At most so much is left at close, to be played back at the next opening: some thirty commits.
    long_bytes : int
        More is brought in at once: some thousand commits.
    most_writes : int
        So are so many. Until then the engine keeps some 80 kB of its buffer pool for each, however small: after 6,200 it was full.
    """

    short_bytes: int = 256 << 10
    long_bytes: int = 8 << 20
    most_writes: int = 500


def pool_to_copy(memories: int) -> int:
    """Return how large a buffer pool, in bytes, copies so many memories into a new file."""
    return max(BUFFER_POOL_BYTES, _POOL_BYTES_A_MEMORY * memories)


class GraphFile:
    """A graph's file and what lies beside it. The graph's lock is held when it is used."""

    def __init__(self, path: Path, vendor: Vendor, seal: Seal, limits: LogLimits) -> None:
        self.path = path
        self._vendor = vendor
        self._limits = limits
        self._log = log_of(path)
        self._note = OpenNote(path, seal)
        self._writes = 0

    def before_opening(self) -> bool:
        """Make sure that the engine may open the file, and return whether there is none yet.

        Raises
        ------
        GraphError
            It is damaged, or not the one that was closed last: rebuild it.
        DiskFullError
            There is no room for a new one; a graph that is there can be read on a full disk.
        """
        make_private_folder(self.path.parent)
        remove_abandoned(self.path.parent, _COPY)
        self._note.admit(self._probe)
        is_new = not self.path.exists()
        if is_new:
            need(self.path, _CHECKPOINT_BYTES)
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
        """Return how large a buffer pool serves the file."""
        size = self.path.stat().st_size if self.path.exists() else 0
        return max(BUFFER_POOL_BYTES, _POOL_OF_FILE * size)

    def before_checkpoint(self) -> None:
        """Make sure that nobody has written to the file since it was opened or last rewritten, before its bytes are sealed anew.

        Raises
        ------
        GraphError
            Somebody has.
        """
        if not self._note.is_unwritten():
            raise GraphError(f"{self.path} was changed while it was open")

    def after_checkpoint(self) -> None:
        """Note that everything is in the file."""
        self._writes = 0
        self._note.written()

    def before_writing(self, path: Path, changes: Sequence[Change]) -> None:
        """Make sure that there is room for changes, and for bringing them into the file at `path`.

        Raises
        ------
        DiskFullError
            There is not.
        """
        self._writes += 1
        memories = sum(change.table == "Memory" for change in changes)
        need(path, self._checkpoint_bytes() + memories * _BYTES_A_MEMORY + len(changes) * _BYTES_A_ROW)

    def has_log(self) -> bool:
        """Return whether the engine will play back a log when it opens the file."""
        return self._log_bytes() > 0

    def has_long_log(self) -> bool:
        """Return whether the log is long enough, or of so many writes, that it is to be brought into the file."""
        return self._writes >= self._limits.most_writes or self._log_bytes() > self._limits.long_bytes

    def can_take_log(self) -> bool:
        """Return whether there is a log worth bringing into the file, room for it, and nobody else has written to the file.

        A short one is sooner played back at the next opening: it takes a millisecond or two a commit, and bringing it in rewrites
        much of the file.
        """
        is_worth_it = self._log_bytes() > self._limits.short_bytes
        return is_worth_it and room_left(self.path) >= self._checkpoint_bytes() and self._note.is_unwritten()

    def after_closing(self, *, is_rewritten: bool) -> None:
        """Note that file and log are as they shall be found."""
        self._note.closed(is_rewritten=is_rewritten)

    def replace(self, fresh: Path) -> None:
        """Put another file, closed and without a log, in this one's place."""
        for old in self.path.parent.glob(f"{self.path.stem}.*"):
            if old != fresh:
                remove(old)
        fresh.replace(self.path)
        self._note.closed(is_rewritten=True)

    def query(
        self, query: str, params: Mapping[str, Any], gives_way: Callable[[], bool] | None = None
    ) -> Rows | Callable[[], Rows]:
        """Run a checked query from outside in another process, which opens the file: here it is closed meanwhile.

        Parameters
        ----------
        gives_way : callable, optional
            Tells whether the query is to give way to somebody who waits for the graph. It is then stopped, and a function is returned
            that runs it again, from the start, on a copy of the file: to be called when the graph has been released.

        Raises
        ------
        QueryError
            The query is refused by the engine, or had to be stopped.
        GraphError
            The file is not as it was closed.
        """
        self._note.check()
        request = {
            **self._request(),
            "query": query,
            "params": dict(params),
            "timeout_s": QUERY_TIMEOUT_S,
            "most_rows": MAX_QUERY_ROWS,
            "most_bytes": MAX_ANSWER_BYTES,
        }
        limits = Limits(QUERY_TIMEOUT_S + GRACE_S, BUFFER_POOL_BYTES + QUERY_MEMORY_BYTES)
        try:
            if gives_way is None:
                return _ASIDE.query(request, limits)
            try:
                patient = replace(limits, gives_way=lambda: gives_way() and self._has_room_for_copy())
                return _ASIDE.query(request, patient)
            except GaveWayError:
                if copy := self._copied():
                    return partial(_query_copy, copy, request | {"path": str(copy.path / self.path.name)}, limits)
                return _ASIDE.query(request, limits)
        except EndedError:
            self._note.suspect()  # was it the query, or the file?
            raise

    def _has_room_for_copy(self) -> bool:
        """Return whether a copy leaves the graph the room that it needs itself."""
        return room_left(self.path.with_name(_COPY)) >= self.size_bytes() + self._checkpoint_bytes()

    def _copied(self) -> TemporaryFolder | None:
        """Copy the closed file and its log aside; None where the system refuses.

        Raises
        ------
        GraphError
            The copy is not what was closed last.
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
        need(self.path, self._checkpoint_bytes())
        _ASIDE.probe(self._request(), Limits(_PROBE_TIMEOUT_S, BUFFER_POOL_BYTES + QUERY_MEMORY_BYTES))

    def _request(self) -> dict[str, Any]:
        return {
            "engine": self._vendor.name,
            "path": str(self.path.absolute()),
            "buffer_pool_bytes": BUFFER_POOL_BYTES,
            "most_database_bytes": MOST_DATABASE_BYTES,
        }

    def _checkpoint_bytes(self) -> int:
        return _CHECKPOINT_BYTES + 4 * self._log_bytes()

    def _log_bytes(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0


def _query_copy(folder: TemporaryFolder, request: Mapping[str, Any], limits: Limits) -> Rows:
    """Run a query on a copy of the file, and remove the copy."""
    try:
        return _ON_COPIES.query(request, limits)
    finally:
        folder.remove()
