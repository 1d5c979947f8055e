"""The store's SQL database: connections, transactions, and the statements in ``schema/*.sql``. The only module that knows a vendor of databases."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from memgraph import assets
from memgraph.config import ADDRESS, Server
from memgraph.disk.files import READ_ONLY, make_private_file, make_private_folder, refused_writes
from memgraph.disk.lock import FORKED, Lock, writer_lock
from memgraph.errors import (
    BusyError,
    ClosedError,
    JournalError,
    MemGraphError,
    MissingExtraError,
    ReadOnlyError,
    StorageError,
)

MOVED = "moved.json"
"""Says where a store was moved to, in the directory that it was moved from."""
SCHEMA_VERSION = 1
"""Version of the tables; a database of a later version is refused."""
_NAME = re.compile(r"^-- name: (\w+)[^\n]*\n", re.MULTILINE)
_PAGES = 1_000
"""Pages after which SQLite merges its write-ahead log into the file."""
_SHARED_BYTES = 1 << 15
"""Least size of the memory that processes share, which SQLite keeps in a file."""
_CACHE_KIB = 64_000
_NOT_WRITTEN = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
)
"""What SQLite says on a disk without space, or if a file may not grow."""
_WAIT_S = 10.0
_LOOK_S = 0.02
_FETCHED = 500
_MANY = 1_000
"""Rows that are sent at once."""


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


class DamagedDatabaseError(StorageError):
    """The database's file is not what was written."""


class ConflictError(StorageError):
    """A row has a key that another one has."""


class FullDatabaseError(StorageError):
    """There is no space for what was to be written. Nothing of it was."""

    def __init__(self, path: Path | str, problem: object) -> None:
        super().__init__(f"nothing was recorded: {problem}; free some disk space and try again", path=path)


class Transaction:
    """Statements, by name, inside one transaction."""

    def __init__(self, raw: Any, database: Database) -> None:
        self._raw = raw
        self._sql = database._sql  # noqa: SLF001 - the same module
        self._database = database

    def one(self, name: str, *values: Any) -> tuple[Any, ...] | None:
        """Return the first row; None if there is none."""
        found: tuple[Any, ...] | None = self._do(self._do(self._raw.execute, self._sql(name), values).fetchone)
        return found

    def rows(self, name: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows; to be used up before the transaction ends."""
        cursor = self._do(self._raw.execute, self._sql(name), values)
        try:
            while found := self._do(cursor.fetchmany, _FETCHED):
                yield from found
        finally:
            with suppress(sqlite3.ProgrammingError):  # an abandoned iteration may outlive the database
                cursor.close()

    def run(self, name: str, *values: Any) -> int:
        """Run a statement and return the number of changed rows."""
        return int(self._do(self._raw.execute, self._sql(name), values).rowcount)

    def many(self, name: str, values: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each sequence of values, which may come of statements of this transaction; return the number of changed rows."""
        rest, changed = iter(values), 0
        while part := list(islice(rest, _MANY)):
            cursor = self._do(self._raw.cursor)
            self._do(cursor.executemany, self._sql(name), part)
            changed += int(cursor.rowcount)
        return changed

    def _do(self, call: Callable[..., Any], *values: Any) -> Any:
        try:
            return call(*values)
        except self._database.failures as error:
            raise self._database._ours(error) from None  # noqa: SLF001 - the same module


class _Connection:
    """A connection, to which of the files that replaced each other, and how deep in blocks its thread is."""

    def __init__(self, raw: Any, renewals: int) -> None:
        self.raw = raw
        self.renewals = renewals
        self.depth = 0
        self.is_writing = False
        self.is_usable = True


class Database(ABC):
    """One database of stores, thread-safe, with a connection for each thread; `name` and `tenant` are of the store in it, `refused` says why it may not be written."""

    path: Path | str
    refused: str | None = None
    has_tables = True
    """Whether there are tables to look into."""
    failures: tuple[type[Exception], ...]
    """The vendor's errors."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tenant = 1
        self._here = threading.local()
        self._all: list[Any] = []
        self._idle: list[_Connection] = []
        self._guard = threading.Lock()
        self._users = 1
        self._in_use = 0
        self._renewals = 0
        self._pid = os.getpid()
        self.on_closed: list[Callable[[], None]] = []
        self.refusal: Callable[[], MemGraphError] = partial(ClosedError, "the store is closed; open it again")
        """Returns the error of who uses it when it is closed."""

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from the one that opened it, which alone may use it."""
        return self._pid != os.getpid()

    @abstractmethod
    def lock(self) -> Lock:
        """Return the lock that a writer holds from its first look to its last commit: what it has read stays valid meanwhile."""

    @abstractmethod
    def erase(self) -> None:
        """Overwrite what was deleted before: nothing of it is left in a file of the database."""

    @abstractmethod
    def shrink(self) -> None:
        """Give back the space of what was removed."""

    def check(self) -> None:  # noqa: B027 - a server checks its pages itself
        """Check that tables and indexes agree; else raise a `DamagedDatabaseError`."""

    @abstractmethod
    def size_bytes(self) -> int:
        """Return the size of its files."""

    @abstractmethod
    def _connected(self) -> Any:
        """Return a new connection."""

    @abstractmethod
    def _begin(self, raw: Any, *, is_writing: bool, timeout_s: float) -> None:
        """Begin a transaction."""

    @abstractmethod
    def _is_in_transaction(self, raw: Any) -> bool:
        """Return whether a transaction is open, or the connection is lost."""

    @abstractmethod
    def _sql(self, name: str) -> str:
        """Return a statement as the vendor reads it."""

    @abstractmethod
    def _ours(self, error: Exception, timeout_s: float = _WAIT_S) -> Exception:
        """Return what to raise for one of `failures`."""

    @contextmanager
    def _errors(self, timeout_s: float = _WAIT_S) -> Iterator[None]:
        """Raise the vendor's errors in a block as ours."""
        try:
            yield
        except self.failures as error:
            raise self._ours(error, timeout_s) from None

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a block that sees one state of the database. Nests, also in `writing`."""
        with self._connection() as connection:
            if connection.depth == 0:
                self._begin_on(connection, is_writing=False, timeout_s=_WAIT_S)
            connection.depth += 1
            try:
                yield Transaction(connection.raw, self)
            finally:
                connection.depth -= 1
                if connection.depth == 0:
                    self._roll_back(connection)

    @contextmanager
    def writing(self, timeout_s: float) -> Iterator[Transaction]:
        """Begin a block that writes, alone among all processes: committed durably at its end, or rolled back by an exception. Nests."""
        with self._connection() as connection:
            if connection.depth:
                if not connection.is_writing:
                    raise RuntimeError("a write was begun inside a block of reads")
                connection.depth += 1
                try:
                    yield Transaction(connection.raw, self)
                finally:
                    connection.depth -= 1
                return
            if self.refused:
                raise ReadOnlyError(self.refused)
            self._begin_on(connection, is_writing=True, timeout_s=timeout_s)
            connection.depth, connection.is_writing = 1, True
            try:
                yield Transaction(connection.raw, self)
                with self._errors(timeout_s):
                    connection.raw.execute("COMMIT")
            except BaseException:
                self._roll_back(connection)
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
        """End this thread's block of reads, if it is in one, for a block; afterwards it goes on, and sees the database as it is by then."""
        connection: _Connection | None = getattr(self._here, "connection", None)
        if connection is None or connection.is_writing:
            yield
            return
        self._roll_back(connection)
        try:
            with self.beside():
                yield
        finally:
            self._begin_on(connection, is_writing=False, timeout_s=_WAIT_S)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Leave this thread's block of reads, if it is in one, for a block that sees the database as it is; afterwards it goes on as it was."""
        connection: _Connection | None = getattr(self._here, "connection", None)
        if connection is None or connection.is_writing:
            yield
            return
        self._here.connection = None
        try:
            yield
        finally:
            self._here.connection = connection

    def retain(self) -> None:
        """Let another object use it, which closes it, too."""
        with self._guard:
            self._users += 1

    def close(self) -> None:
        """Close all connections, once all users have closed it, and no thread is in a block any more."""
        with self._guard:
            self._users -= 1
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        with self._guard:
            if self._users > 0 or self._in_use or not self._all or self.is_forked:
                return
            connections, self._all, self._idle = self._all, [], []
        for raw in connections:
            raw.close()
        for call in self.on_closed:
            call()

    def stamp(self) -> list[int] | None:
        """Return a stamp that changes with every write of any process; None if the database has none."""
        return None

    def is_put_aside(self) -> bool:
        """Return whether the file was removed, replaced or moved since it was opened: what is written to it now would be lost."""
        return False

    @contextmanager
    def _connection(self) -> Iterator[_Connection]:
        """Give this thread its connection: for its outermost block one that is idle, or a new one."""
        found: _Connection | None = getattr(self._here, "connection", None)
        if found is not None:
            yield found
            return
        with self._guard:
            self._require_open()
            self._in_use += 1
            found = self._idle.pop() if self._idle else None
        try:
            self._here.connection = found = found or _Connection(self._new(), self._renewals)
            yield found
        finally:
            self._here.connection = None
            with self._guard:
                self._in_use -= 1
                if found is not None and found.is_usable:
                    self._idle.append(found)
            self._close_if_unused()

    def _new(self) -> Any:
        """Return a new connection, which `close` closes."""
        with self._errors():
            raw = self._connected()
        with self._guard:
            self._all.append(raw)
        return raw

    def _require_open(self) -> None:
        if self.is_forked:
            raise ClosedError(FORKED)
        if self._users <= 0:
            raise self.refusal()

    def _check_version(self, version: int) -> None:
        if version > SCHEMA_VERSION:
            raise JournalError(
                f"{self.path}: version {version} of its tables is unknown to this release; install a newer memgraph"
            )

    def _begin_on(self, connection: _Connection, *, is_writing: bool, timeout_s: float) -> None:
        """Begin a transaction; if the connection is lost, or to a file that was replaced, on another one in its place."""
        if connection.renewals != self._renewals:
            connection.raw, connection.renewals = self._new(), self._renewals
        try:
            with self._errors(timeout_s):
                self._begin(connection.raw, is_writing=is_writing, timeout_s=timeout_s)
        except MemGraphError:
            if not self._is_lost(connection.raw):
                self._roll_back(connection)
                raise
            connection.raw = self._new()
            with self._errors(timeout_s):
                self._begin(connection.raw, is_writing=is_writing, timeout_s=timeout_s)

    def _is_lost(self, raw: Any) -> bool:  # noqa: ARG002
        """Whether a connection was closed by the other side."""
        return False

    def _roll_back(self, connection: _Connection) -> None:
        try:
            with self._errors():
                if self._is_in_transaction(connection.raw):
                    connection.raw.execute("ROLLBACK")
        except MemGraphError:
            connection.is_usable = False
            with suppress(MemGraphError), self._errors():  # the connection is lost; the next block makes another
                connection.raw.close()


class SQLite(Database):
    """A database file, made if it is missing (mode 0600) unless it may not be written; unless it `is_durable`, a power failure may take the last commits."""

    def __init__(
        self, path: Path, *, refused: str | None = None, keeps: object = None, is_durable: bool = True
    ) -> None:
        super().__init__("")
        self.path: Path = path
        self._moved = path.with_name(MOVED)
        self.failures = (sqlite3.Error, UnicodeDecodeError)
        self._synchronous = "FULL" if is_durable else "NORMAL"
        self._keeps = keeps
        denied = refused_writes(path.parent, *([path] if path.exists() else []))
        self._is_fixed = denied is not None
        self.refused = refused or denied
        if not self._is_fixed and not path.exists():
            make_private_folder(path.parent)
            make_private_file(path, b"")
        try:
            self._open()
        except (DamagedDatabaseError, JournalError, BusyError):
            self.close()
            raise
        except MemGraphError as error:  # such as on a full disk, which has no room for the log
            if self._is_fixed or not (path.is_file() and path.stat().st_size):
                self.close()
                raise
            self._is_fixed, self.refused = True, str(error)
            self._open()

    def _open(self) -> None:
        with self._errors(), self._connection() as connection:
            self._prepare(connection.raw)
            self._file = self.path.stat().st_ino

    def is_put_aside(self) -> bool:
        """Return whether the file was removed, replaced or moved since it was opened: what is written to it now would be lost."""
        try:
            return self.path.stat().st_ino != self._file or self._moved.exists()
        except FileNotFoundError:
            return True

    def lock(self) -> Lock:
        """Return the lock of writers: a file beside the database, which names the holder's process."""
        return writer_lock(self.path.parent)

    def erase(self) -> None:
        """Overwrite what was deleted before: merge the write-ahead log into the file, and truncate it."""
        with self._errors(), self._connection() as connection:
            connection.raw.execute(f"PRAGMA busy_timeout = {int(1000 * _WAIT_S):d}")
            busy, _, _ = connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise BusyError("the database", pid=None, timeout_s=_WAIT_S)

    def renew(self) -> None:
        """Replace a damaged file by an empty one. Processes that have it open keep it until they close it."""
        with self._guard:
            self._idle = []
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        make_private_file(self.path, b"")
        self._renewals += 1
        self._open()

    def shrink(self) -> None:
        """Give back the space of what was removed: rewrite the file. Only saves space, so nobody waits for it, and a full disk does not matter."""
        with suppress(BusyError, FullDatabaseError), self._errors(), self._connection() as connection:
            connection.raw.execute("PRAGMA temp_store = FILE")  # not the whole copy in memory
            try:
                connection.raw.execute("VACUUM")
            finally:
                connection.raw.execute("PRAGMA temp_store = MEMORY")
            connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> None:
        """Check every page of the file, and that tables and indexes agree; else raise a `DamagedDatabaseError`."""
        with self._errors(), self._connection() as connection:
            (found,) = connection.raw.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(found)

    def size_bytes(self) -> int:
        """Return the size of the file and its write-ahead log."""
        return _size(self.path) + _size(f"{self.path}-wal")

    def stamp(self) -> list[int] | None:
        """Return which file it is, its size, and when it was changed, a time that the system alone sets; None while commits are in the log."""
        if _size(f"{self.path}-wal"):
            return None
        found = self.path.stat()
        return [found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns]

    def _prepare(self, raw: sqlite3.Connection) -> None:
        (version,) = raw.execute("PRAGMA user_version").fetchone()
        self._check_version(version)
        if version == 0 and not self._is_fixed:
            raw.execute("BEGIN IMMEDIATE")
            try:
                if raw.execute("PRAGMA user_version").fetchone()[0] == 0:
                    for name, statement in statements().items():
                        if name.startswith("create_"):
                            raw.execute(statement)
                    raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
                raw.execute("COMMIT")
            except BaseException:
                if raw.in_transaction:  # Ctrl-C may come just after it
                    raw.execute("ROLLBACK")
                raise

    def _connected(self) -> sqlite3.Connection:
        # an immutable file needs no shared memory, which only a writer can make; one without space leaves it short
        is_open = _size(f"{self.path}-wal") > 0 or _size(f"{self.path}-shm") >= _SHARED_BYTES
        mode = "mode=rw" if not self._is_fixed else "mode=ro" if is_open else "mode=ro&immutable=1"
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        raw = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=256)
        settings = [
            "busy_timeout = 10000",
            "trusted_schema = OFF",
            f"cache_size = -{_CACHE_KIB:d}",
            "temp_store = MEMORY",
        ]
        if not self._is_fixed:
            settings += ["journal_mode = WAL", f"synchronous = {self._synchronous}", "secure_delete = ON"]
            settings += [f"wal_autocheckpoint = {_PAGES:d}"]
        until = time.monotonic() + _WAIT_S
        for setting in settings:
            while True:
                try:
                    raw.execute(f"PRAGMA {setting}")
                    break
                except sqlite3.OperationalError as error:
                    # two that set the mode of a new file at the same moment refuse each other, without the wait that is set
                    if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                        raise
                    time.sleep(_LOOK_S)
        return raw

    def _begin(self, raw: sqlite3.Connection, *, is_writing: bool, timeout_s: float) -> None:
        if is_writing:
            raw.execute(f"PRAGMA busy_timeout = {int(1000 * timeout_s):d}")
            raw.execute("BEGIN IMMEDIATE")
        else:
            raw.execute("BEGIN")

    def _is_in_transaction(self, raw: sqlite3.Connection) -> bool:
        return raw.in_transaction

    def _sql(self, name: str) -> str:
        return statements()[name]

    def _damaged(self, problem: object) -> DamagedDatabaseError:
        what = " ".join(str(problem).split())
        advice = "`memgraph repair` says what can be kept, `memgraph repair --from-backup FILE` restores it"
        return DamagedDatabaseError(f"is damaged: {what}; {advice}", path=self.path)

    def _ours(self, error: Exception, timeout_s: float = _WAIT_S) -> Exception:
        if isinstance(error, UnicodeDecodeError):  # SQLite's own message quotes what is damaged
            return self._damaged("it holds text that is none")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return BusyError("the database", pid=None, timeout_s=timeout_s)
        if is_full(error):
            return FullDatabaseError(self.path, error)
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return ReadOnlyError(f"{self.path} may not be written: {READ_ONLY}")
        is_damage = any(one in str(error) for one in ("Could not decode", "no such table", "integer overflow"))
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or is_damage:
            return self._damaged(error)
        if isinstance(error, sqlite3.IntegrityError):
            return ConflictError(f"refuses a row: {error}", path=self.path)
        if code == sqlite3.SQLITE_CANTOPEN:
            return StorageError(f"cannot be read: {error}", path=self.path)
        if isinstance(error, sqlite3.ProgrammingError):
            self._require_open()
            return error
        return StorageError(f"cannot be used: {error}", path=self.path)


class Postgres(Database):
    """A database on a PostgreSQL server, with tables in the schema ``memgraph``, of many stores; unless it `creates`, missing tables are not made."""

    def __init__(self, url: str, name: str, *, creates: bool = True) -> None:
        super().__init__(name)
        self.tenant = 0  # until its name is looked up
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("Stores on PostgreSQL", package="psycopg", extra="postgres") from None
        self._vendor, self.failures = psycopg, (psycopg.Error,)
        self._url = url
        self.path: str = str(Server(url, name))
        try:
            with self._errors(), self._connection() as connection:
                self._prepare(connection.raw, creates=creates)
        except BaseException:
            self.close()
            raise

    def lock(self) -> Lock:
        """Return the lock of writers: one of the server's advisory locks, which ends with its connection."""
        return _AdvisoryLock(self)

    def erase(self) -> None:
        """Rewrite the tables without what was deleted before. The server's own write-ahead log keeps it until that is recycled."""
        with self._errors(), self._connection() as connection:
            connection.raw.execute(f"SET lock_timeout = {int(1000 * _WAIT_S):d}")
            try:
                for table in self._tables():
                    connection.raw.execute(f'VACUUM FULL "{table}"')
            finally:
                connection.raw.execute("RESET lock_timeout")

    def shrink(self) -> None:
        """Let the server use the space of what was removed."""
        with self._errors(), self._connection() as connection:
            for table in self._tables():
                connection.raw.execute(f'VACUUM "{table}"')

    def size_bytes(self) -> int:
        """Return the size of all tables, of all stores."""
        with self._errors(), self._connection() as connection:
            found = connection.raw.execute(
                "SELECT SUM(pg_total_relation_size(format('memgraph.%I', tablename)::regclass)) FROM pg_tables WHERE schemaname = 'memgraph'"
            )
            return int(found.fetchone()[0] or 0)

    def _tables(self) -> list[str]:
        return re.findall(r"CREATE TABLE (\w+)", "\n".join(statements().values()))

    def _prepare(self, raw: Any, *, creates: bool) -> None:
        is_standby, is_fixed = raw.execute(
            "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
        ).fetchone()
        if is_standby or is_fixed:
            is_what = (
                "is a standby, which may only be read: write to its primary"
                if is_standby
                else f"may not be written: {READ_ONLY}"
            )
            self.refused = f"{self.path} {is_what}"
        version = self._version(raw)
        if version is None and creates and self.refused is None:
            with raw.transaction():
                raw.execute("SELECT pg_advisory_xact_lock(hashtext('memgraph schema'))")
                version = self._version(raw)
                if version is None:
                    raw.execute("CREATE SCHEMA IF NOT EXISTS memgraph")
                    raw.execute("CREATE TABLE memgraph_version (version INTEGER NOT NULL)")
                    for name in statements():
                        if name.startswith("create_"):
                            raw.execute(self._sql(name))
                    raw.execute("INSERT INTO memgraph_version VALUES (%s)", (SCHEMA_VERSION,))
                    version = SCHEMA_VERSION
        self.has_tables = version is not None
        self._check_version(version or 0)

    def _version(self, raw: Any) -> int | None:
        # the table of tables: what the server remembers of names may be of before another client made them
        made = "SELECT 1 FROM pg_tables WHERE schemaname = 'memgraph' AND tablename = 'memgraph_version'"
        if raw.execute(made).fetchone() is None:
            return None
        found = raw.execute("SELECT version FROM memgraph.memgraph_version").fetchone()
        return int(found[0]) if found else None

    def _connected(self) -> Any:
        try:
            return self._vendor.connect(
                self._url, autocommit=True, options="-c search_path=memgraph", connect_timeout=10
            )
        except self._vendor.ProgrammingError:  # its message may quote the password
            raise StorageError(f"is no address of a database: {ADDRESS}", path=self.path) from None

    def _is_lost(self, raw: Any) -> bool:
        return bool(raw.closed)

    def _begin(self, raw: Any, *, is_writing: bool, timeout_s: float) -> None:
        if not is_writing:
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        if self.tenant:
            lock = f"SELECT seq FROM head WHERE tenant = {self.tenant:d} FOR UPDATE"  # noqa: S608 - a number of ours
        else:  # two stores never get one number
            lock = "SELECT pg_advisory_xact_lock(hashtext('memgraph schema'))"
        try:  # at once: each way to the server and back takes time
            raw.execute(f"BEGIN; SET LOCAL lock_timeout = {max(1, int(1000 * timeout_s)):d}; {lock}")
        except self._vendor.Error:
            if not raw.closed:
                raw.execute("ROLLBACK")
            raise

    def _is_in_transaction(self, raw: Any) -> bool:
        return bool(raw.info.transaction_status)

    @cache  # noqa: B019 - as many as there are statements
    def _sql(self, name: str) -> str:
        text = statements()[name].replace("%", "%%").replace("?", "%s")
        # ids are of one store: those of two that write at the same time may be equal
        text = text.replace(" id INTEGER PRIMARY KEY", " id BIGINT NOT NULL, PRIMARY KEY (id, tenant)")
        return re.sub(r"\bWITHOUT ROWID\b", "", re.sub(r"\bBLOB\b", "BYTEA", text))

    def _ours(self, error: Exception, timeout_s: float = _WAIT_S) -> Exception:
        vendor = self._vendor
        if isinstance(error, vendor.errors.LockNotAvailable):
            return BusyError("the database", pid=None, timeout_s=timeout_s)
        if isinstance(error, vendor.errors.ReadOnlySqlTransaction | vendor.errors.InsufficientPrivilege):
            return ReadOnlyError(f"{self.path}: {_first_line(error)}: {READ_ONLY}")
        if isinstance(error, vendor.IntegrityError):
            return ConflictError(f"refuses a row: {_first_line(error)}", path=self.path)
        if isinstance(error, vendor.errors.DiskFull):
            return FullDatabaseError(self.path, "no space is left on the server")
        if isinstance(error, vendor.OperationalError | vendor.InterfaceError):
            advice = "see that the server runs and lets this user in, then try again"
            return StorageError(f"cannot be used: {_first_line(error)}; {advice}", path=self.path)
        return StorageError(f"refuses: {_first_line(error)}", path=self.path)


class _AdvisoryLock(Lock):
    """A lock of the server for one store, held by a connection of its own."""

    def __init__(self, database: Postgres) -> None:
        self._database = database
        self._raw: Any = None
        self._is_mine = False

    def acquire(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        while not self.try_acquire():
            if time.monotonic() > until:
                raise BusyError("the journal's writer lock", pid=None, timeout_s=timeout_s)
            time.sleep(_LOOK_S)

    def try_acquire(self) -> bool:
        if self._is_mine and not self._raw.closed:
            return False
        try:
            self._is_mine = self._taken()
        except StorageError:
            if self._raw is None or not self._raw.closed:
                raise
            self._is_mine = self._taken()  # the connection was lost since it was used last
        return self._is_mine

    def _taken(self) -> bool:
        if self._raw is None or self._raw.closed:
            self._raw = self._database._new()  # noqa: SLF001 - the same module
        with self._database._errors():  # noqa: SLF001
            found = self._raw.execute(
                "SELECT pg_try_advisory_lock(hashtext('memgraph writer'), hashtext(%s))", (self._database.name,)
            )
            return bool(found.fetchone()[0])

    def release(self) -> None:
        self._is_mine = False
        if self._raw is not None:
            with suppress(MemGraphError), self._database._errors():  # noqa: SLF001 - a lost connection holds no lock
                self._raw.execute("SELECT pg_advisory_unlock_all()")

    def is_held(self) -> bool:
        if self.try_acquire():
            self.release()
            return False
        return True


def is_full(error: BaseException) -> bool:
    """Return whether SQLite failed because there is no space. It calls some of that an error of input and output."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL or code in _NOT_WRITTEN


def _size(path: Path | str) -> int:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return 0


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
