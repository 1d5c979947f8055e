"""A connection to one database file of an embedded engine. Kùzu and its fork Ladybug have the same interface."""

from __future__ import annotations

import importlib.util  # noqa: F401 - the engines use it without importing it
import resource
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from memgraph.errors import BusyError, ConfigError, GraphError, MissingExtraError
from memgraph.graph.columns import type_of
from memgraph.graph.zeroed_memory import zeroed_memory

ENGINE_ERRORS = (RuntimeError, IndexError, ValueError, TypeError, OverflowError, OSError, AttributeError, MemoryError)
"""Errors that an engine's binding raises: damaged files cause a ValueError (invalid text), odd paths a TypeError."""
_MOST_PREPARED = 400
_PREPARED = ("MATCH", "CREATE (", "UNWIND")
"""Beginnings of the statements that are prepared. Others run only once, or never within a transaction."""
_ORPHAN_S = 5.0
"""Time in which the child of a killed process may still be ending."""
_LOOK_S = 0.02


def most_database_bytes() -> int:
    """Return how large a database may become: 64 GiB, or a quarter of the address space that the process may have (``ulimit -v``).

    The engine reserves that much of the address space at once, in a power of two.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 36 if limit == resource.RLIM_INFINITY else min(1 << 36, 1 << max(24, limit.bit_length() - 3))


@dataclass(frozen=True, slots=True)
class Vendor:
    """A graph engine: Kùzu or a fork of it.

    Attributes
    ----------
    name : str
        Name of the engine and of its module.
    extra : str or None
        The extra that installs it; None if it is installed with memgraph.
    """

    name: str
    extra: str | None = None

    def module(self) -> Any:
        """Return the engine's Python module.

        Raises
        ------
        MissingExtraError
            The engine is not installed.
        ConfigError
            This process already uses the other engine, and both in one process crash it.
        """
        if others := sorted((VENDORS.keys() - {self.name}) & sys.modules.keys()):
            raise ConfigError(
                f"this process already uses the engine {others[0]!r}; use {self.name!r} in another process"
            )
        try:
            return import_module(self.name)
        except ImportError:
            if self.extra is None:
                raise
            what = f'Graphs of the engine "{self.name}"'
            raise MissingExtraError(what, package=self.name, extra=self.extra) from None


KUZU = Vendor("kuzu")
LADYBUG = Vendor("ladybug", extra="ladybug")
VENDORS = {vendor.name: vendor for vendor in (KUZU, LADYBUG)}


class Connection:
    """An open database. Every error of the engine is raised as a `GraphError`. Not thread-safe.

    Raises
    ------
    GraphError
        The file does not open.
    BusyError
        Another process has the database open.
    """

    def __init__(self, vendor: Vendor, path: Path, *, pool_bytes: int, read_only: bool = False) -> None:
        self._module = vendor.module()
        self._prepared: dict[Any, Any] = {}
        self.shapes: set[tuple[str, ...]] = set()
        """Statements that create edges and that the engine has planned."""
        self._files = (path, path.with_name(f"{path.name}.wal"))
        zeroed_memory.begin()
        try:
            self._connection = self._opened(path, buffer_pool_size=pool_bytes, read_only=read_only)
        except BaseException:
            zeroed_memory.end()
            raise
        self._keep_private()

    def run(self, query: str, params: Mapping[str, Any] | None = None) -> list[list[Any]]:
        """Run one statement and return its rows."""
        params = dict(params or {})
        try:
            return list(_rows(self._connection.execute(self._ready(query, params), params)))
        except ENGINE_ERRORS as error:
            raise GraphError(f"the graph engine refused `{query[:80]}`", engine_says=str(error)) from None

    def stream(self, query: str) -> Iterator[list[Any]]:
        """Run one of memgraph's own statements and yield its rows lazily."""
        try:
            yield from _rows(self._connection.execute(self._ready(query, {})))
        except ENGINE_ERRORS as error:
            raise GraphError(f"the graph engine refused `{query[:80]}`", engine_says=str(error)) from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block in a transaction. Most errors have already rolled it back, so an error of ROLLBACK is suppressed."""
        self.run("BEGIN TRANSACTION")
        try:
            yield
        except BaseException:
            with suppress(GraphError):
                self.run("ROLLBACK")
            raise
        self.run("COMMIT")
        self._keep_private()

    def checkpoint(self) -> None:
        """Checkpoint: merge the log into the database file."""
        self.run("CHECKPOINT")

    def pool_share(self) -> float:
        """Return the share of the buffer pool in use, from 0 to 1."""
        ((size, used),) = self.run("CALL bm_info() RETURN *")
        return float(used / size)

    def leave_log(self) -> None:
        """Disable the checkpoint at close, which writes to the file even if there is nothing to write."""
        with suppress(GraphError):
            self.run("CALL force_checkpoint_on_close=false")

    def create(self, statements: Collection[str]) -> None:
        """Run statements in one transaction, because each commit is synced to the disk."""
        with self.transaction():
            for statement in statements:
                self.run(statement)

    def close(self) -> None:
        """Close connection and database."""
        database = self._connection.database
        self._prepared.clear()  # prepared statements must not outlive their database
        try:
            try:
                self._connection.close()
            finally:
                database.close()
        except ENGINE_ERRORS as error:
            raise GraphError("the graph could not be closed", engine_says=str(error)) from None
        finally:
            zeroed_memory.end()

    def _keep_private(self) -> None:
        """Let only the owner read what the engine has created, which it lets everybody read."""
        for path in self._files:
            with suppress(OSError):  # it is not there yet, or another user's
                if path.stat().st_mode & 0o077:
                    path.chmod(0o600)

    def _opened(self, path: Path, **options: Any) -> Any:
        until = time.monotonic() + _ORPHAN_S
        options |= {"auto_checkpoint": False, "max_num_threads": 1, "max_db_size": most_database_bytes()}
        while True:
            try:
                return self._module.Connection(self._module.Database(str(path), **options))
            except ENGINE_ERRORS as error:
                if "Mmap for size" in str(error):
                    problem = "the address space of this process is too small for the graph engine: raise the limit (`ulimit -v`) to 2 GB or more"
                    raise ConfigError(problem) from None
                if "Could not set lock" not in str(error):
                    shown = str(path).encode("utf-8", "backslashreplace").decode()
                    problem = f"the graph at {shown} cannot be opened; it can be rebuilt from the journal"
                    raise GraphError(problem, engine_says=str(error)) from None
            if time.monotonic() > until:
                raise BusyError("the graph's file", pid=None, timeout_s=_ORPHAN_S)
            time.sleep(_LOOK_S)

    def _ready(self, query: str, params: Mapping[str, Any]) -> Any:
        """Return the statement, prepared once: preparation takes half the time of a small statement.

        A statement is prepared for one set of parameter types, so nulls and empty lists, which leave the type open, exclude it.
        """
        types = tuple(type_of(value) for value in params.values())
        if None in types or not query.startswith(_PREPARED):
            return query
        if (query, types) not in self._prepared:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            statement = self._module.PreparedStatement(self._connection, query, dict(params))
            if not statement.is_success():
                raise RuntimeError(statement.get_error_message())
            self._prepared[query, types] = statement
        return self._prepared[query, types]


def _rows(result: Any) -> Iterator[list[Any]]:
    try:
        while result.has_next():
            yield result.get_next()
    finally:
        result.close()
