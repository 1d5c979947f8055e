"""The store's SQL database: connections, transactions, and the statements in ``schema/*.sql``. The only module that knows a vendor of databases."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from memgraph import assets
from memgraph.disk.files import make_private_file, make_private_folder, read_only_message, refused_writes
from memgraph.disk.lock import FORKED
from memgraph.errors import BusyError, ClosedError, DiskFullError, JournalError, ReadOnlyError, StorageError

SCHEMA_VERSION = 1
"""Version of the tables; a database of a later version is refused."""
_NAME = re.compile(r"^-- name: (\w+)[^\n]*\n", re.MULTILINE)
_PAGES = 1_000
"""Pages after which SQLite merges its write-ahead log into the file."""
_CACHE_KIB = 64_000
_ROWS_AT_ONCE = 1_000


@cache
def statements() -> Mapping[str, str]:
    """Return every statement of ``schema/*.sql`` by its name."""
    found: dict[str, str] = {}
    for stem, text in assets.texts("schema", ".sql").items():
        parts = _NAME.split(text)
        for name, statement in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"schema/{stem}.sql: the statement {name} has a name twice")
            found[name] = re.sub(r"--[^\n]*", "", statement).strip().rstrip(";")
    return found


class Transaction(Protocol):
    """Statements, by name, inside one transaction."""

    def one(self, name: str, *values: Any) -> tuple[Any, ...] | None:
        """Return the first row; None if there is none."""
        ...

    def rows(self, name: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows; to be used up before the transaction ends."""
        ...

    def run(self, name: str, *values: Any) -> int:
        """Run a statement and return the number of changed rows."""
        ...

    def many(self, name: str, values: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each sequence of values, and return the number of changed rows."""
        ...


class Database(Protocol):
    """One database of stores. Thread-safe; each thread has a connection of its own. Errors of the vendor are raised as ours.

    Attributes
    ----------
    tenant : int
        Number of the store in it; the first column of every key.
    refused : str or None
        Why it may not be written; None if it may.
    """

    tenant: int
    refused: str | None

    def reading(self) -> Any:
        """Begin a block that sees one state of the database (a context manager that gives a `Transaction`). Nests, also in `writing`."""
        ...

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in a block that writes."""
        ...

    def writing(self, timeout_s: float) -> Any:
        """Begin a block that writes, alone among all processes (a context manager that gives a `Transaction`). Nests.

        It is committed at the end of the outermost block, or rolled back by an exception. Raises a `BusyError`
        after `timeout_s` seconds.
        """
        ...

    def paused(self) -> Any:
        """End this thread's block of reads for a block; afterwards it goes on, and sees the database as it is by then."""
        ...

    def erase(self) -> None:
        """Overwrite what was deleted before: nothing of it is left in a file of the database."""
        ...

    def size_bytes(self) -> int:
        """Return how many bytes the database takes on the disk."""
        ...

    def renew(self) -> None:
        """Replace a damaged database by an empty one."""
        ...

    def close(self) -> None:
        """Close all connections. Idempotent."""
        ...


class _Connection:
    """A connection, and how deep in blocks its thread is."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw
        self.depth = 0
        self.is_writing = False


class SQLite:
    """A database file. One store, tenant 1.

    Parameters
    ----------
    path : Path
        Made if it is missing, mode 0600, unless it may not be written: then it is read as it is.
    is_durable : bool
        Whether a commit is on the disk when it returns. Else a power failure may take the last ones: what they hold must be elsewhere.
    refused : str, optional
        Why it is only read: as it is, without a log and locks.
    """

    tenant = 1

    def __init__(self, path: Path, *, is_durable: bool = True, refused: str | None = None) -> None:
        self.path = path
        self._synchronous = "FULL" if is_durable else "NORMAL"
        self._here = threading.local()
        self._idle: list[_Connection] = []
        self._all: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self._pid = os.getpid()
        self.refused = refused or refused_writes(path.parent, *([path] if path.exists() else []))
        if self.refused is None and not path.exists():
            make_private_folder(path.parent)
            make_private_file(path, b"")
        with self._errors(), self._connected() as connection:
            self._prepare(connection.raw)

    def _prepare(self, raw: sqlite3.Connection) -> None:
        (version,) = raw.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA_VERSION:
            raise JournalError(
                f"{self.path}: version {version} of its tables is unknown to this release; install a newer memgraph"
            )
        if version == 0 and self.refused is None:
            raw.execute("BEGIN IMMEDIATE")
            try:
                if raw.execute("PRAGMA user_version").fetchone()[0] == 0:
                    for name, statement in statements().items():
                        if name.startswith("create_"):
                            raw.execute(statement)
                    raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
                raw.execute("COMMIT")
            except BaseException:
                raw.execute("ROLLBACK")
                raise

    @contextmanager
    def _connected(self) -> Iterator[_Connection]:
        """Give this thread its connection: for its outermost block one that is idle, or a new one."""
        found: _Connection | None = getattr(self._here, "connection", None)
        if found is not None:
            yield found
            return
        if self._is_closed:
            raise ClosedError("the store is closed; open it again")
        if self._pid != os.getpid():
            raise ClosedError(FORKED)
        with self._lock:
            found = self._idle.pop() if self._idle else None
        found = self._here.connection = found or _Connection(self._new())
        try:
            yield found
        finally:
            self._here.connection = None
            with self._lock:
                self._idle.append(found)

    def _new(self) -> sqlite3.Connection:
        # an immutable file needs no lock and no shared memory, which a folder that may not be written cannot give
        mode = "mode=rw" if self.refused is None else "mode=ro&immutable=1"
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        raw = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
        for setting in (
            "busy_timeout = 10000",
            "trusted_schema = OFF",
            f"cache_size = -{_CACHE_KIB:d}",
            "temp_store = MEMORY",
            *(
                ()
                if self.refused
                else (
                    "journal_mode = WAL",
                    f"synchronous = {self._synchronous}",
                    "secure_delete = ON",
                    f"wal_autocheckpoint = {_PAGES:d}",
                )
            ),
        ):
            raw.execute(f"PRAGMA {setting}")
        with self._lock:
            self._all.append(raw)
        return raw

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a block that sees one state of the database. Nests, also in `writing`."""
        with self._connected() as connection:
            if connection.depth == 0:
                with self._errors():
                    connection.raw.execute("BEGIN")
            connection.depth += 1
            try:
                yield _Statements(connection.raw, self._errors)
            finally:
                connection.depth -= 1
                if connection.depth == 0:
                    with suppress(sqlite3.Error):
                        connection.raw.execute("COMMIT")

    @contextmanager
    def writing(self, timeout_s: float) -> Iterator[Transaction]:
        """Begin a block that writes, alone among all processes. Nests. Committed at the end of the outermost block."""
        with self._connected() as connection:
            if connection.depth:
                if not connection.is_writing:
                    raise RuntimeError("a write was begun inside a block of reads")
                connection.depth += 1
                try:
                    yield _Statements(connection.raw, self._errors)
                finally:
                    connection.depth -= 1
                return
            if self.refused:
                raise ReadOnlyError(read_only_message(self.refused))
            with self._errors(timeout_s):
                connection.raw.execute(f"PRAGMA busy_timeout = {int(1000 * timeout_s):d}")
                connection.raw.execute("BEGIN IMMEDIATE")
            connection.depth, connection.is_writing = 1, True
            try:
                yield _Statements(connection.raw, self._errors)
                with self._errors(timeout_s):
                    connection.raw.execute("COMMIT")
            except BaseException:
                if connection.raw.in_transaction:
                    connection.raw.execute("ROLLBACK")
                raise
            finally:
                connection.depth, connection.is_writing = 0, False

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in a block that writes."""
        connection: _Connection | None = getattr(self._here, "connection", None)
        return connection is not None and connection.is_writing

    @contextmanager
    def paused(self) -> Iterator[None]:
        """End this thread's block of reads for a block; afterwards it goes on, and sees the database as it is by then."""
        connection: _Connection | None = getattr(self._here, "connection", None)
        if connection is None:
            yield
            return
        connection.raw.execute("COMMIT")
        self._here.connection = None
        try:
            yield
        finally:
            self._here.connection = connection
            connection.raw.execute("BEGIN")

    def erase(self) -> None:
        """Overwrite what was deleted before: merge the write-ahead log into the file, and truncate it."""
        with self._errors(), self._connected() as connection:
            busy, _, _ = connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise BusyError("the database", pid=None, timeout_s=10)

    def renew(self) -> None:
        """Replace a damaged file by an empty one. Processes that have it open keep it until they close it."""
        with self._lock:
            self._idle = []
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        make_private_file(self.path, b"")
        with self._errors(), self._connected() as connection:
            self._prepare(connection.raw)

    def size_bytes(self) -> int:
        """Return the size of the file and its write-ahead log."""
        total = 0
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                total += Path(f"{self.path}{suffix}").stat().st_size
        return total

    def close(self) -> None:
        """Close all connections. Idempotent."""
        self._is_closed = True
        with self._lock:
            connections, self._all, self._idle = self._all, [], []
        if self._pid == os.getpid():
            for raw in connections:
                raw.close()

    @contextmanager
    def _errors(self, timeout_s: float = 10.0) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError("the database", pid=None, timeout_s=timeout_s) from None
            if code == sqlite3.SQLITE_FULL:
                raise DiskFullError("no space is left", path=self.path) from None
            if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
                raise ReadOnlyError(read_only_message(f"{self.path} may not be written")) from None
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise DamagedDatabaseError(f"is damaged: {error}", path=self.path) from None
            if isinstance(error, sqlite3.IntegrityError):
                raise ConflictError(f"was not written to: {error}", path=self.path) from None
            if isinstance(error, sqlite3.OperationalError):
                raise StorageError(f"cannot be used: {error}", path=self.path) from None
            raise


class DamagedDatabaseError(StorageError):
    """The database's file is not what was written."""


class ConflictError(StorageError):
    """A row that exists was to be inserted, or a value is missing."""


class _Statements:
    def __init__(self, raw: sqlite3.Connection, errors: Callable[[], Any]) -> None:
        self._raw = raw
        self._errors = errors

    def one(self, name: str, *values: Any) -> tuple[Any, ...] | None:
        with self._errors():
            found: tuple[Any, ...] | None = self._raw.execute(statements()[name], values).fetchone()
            return found

    def rows(self, name: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        with self._errors():
            found = self._raw.execute(statements()[name], values)
            while part := found.fetchmany(
                _ROWS_AT_ONCE
            ):  # not the cursor itself, which an abandoned iteration would close too late
                yield from part

    def run(self, name: str, *values: Any) -> int:
        with self._errors():
            return self._raw.execute(statements()[name], values).rowcount

    def many(self, name: str, values: Iterable[Sequence[Any]]) -> int:
        with self._errors():
            return self._raw.executemany(statements()[name], values).rowcount
