"""The Kùzu adapter: the only module that imports kuzu. Every engine error leaves it as a `GraphError`."""

from __future__ import annotations

import importlib.util  # noqa: F401 - kuzu uses it without importing it
import logging
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import kuzu
import orjson

from memgraph.errors import GraphError, QueryError
from memgraph.graph.guard import check_read_only
from memgraph.graph.schema import tables
from memgraph.graph.session import Session
from memgraph.graph.statements import (
    RECORD,
    STATE_KEY,
    creation_of_edges,
    order,
    quoted,
    state_statement,
    statement,
    to_row,
    whole,
    write_json,
)
from memgraph.graph.values import from_engine, plain
from memgraph.journal.files import make_private_folder
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.ports import Change, Key, Progress, Row

logger = logging.getLogger("memgraph.graph")

_BUFFER_POOL_BYTES = 512 << 20
_MAX_DATABASE_BYTES = 1 << 36
_COPY_FROM_ROWS = 1_000
"""New rows in one commit from which COPY beats one statement each (some 100 memories with their edges); it also wastes space in the file."""
_COPY_FROM_TABLE_ROWS = 30
_PLAIN = (str, int, float, bool)
_MOST_PREPARED = 200
_PREPARED: WeakKeyDictionary[kuzu.Connection, dict[str, Any]] = WeakKeyDictionary()
_EDGES_A_STATEMENT = 10
"""Parsing dominates: ten edges in one statement cost half of ten statements."""
_QUERY_TIMEOUT_S = 30.0
"""For a query from outside. The engine looks at the clock between batches of rows, so it may end somewhat later."""
MAX_QUERY_ROWS = 100_000
_ENGINE_ERRORS = (RuntimeError, IndexError, ValueError, TypeError, OverflowError, OSError)
"""What the engine's binding raises: damaged files give text that is no text (ValueError), odd paths a TypeError."""


class KuzuEngine:
    """Rows in one Kùzu database file under `folder`."""

    def __init__(self, folder: Path, *, timeout_s: float = 10.0, idle_s: float = 2.0) -> None:
        self._folder = folder
        self._path = folder / "memgraph.kuzu"
        self._session: Session[kuzu.Connection] = Session(
            folder.parent / "graph.lock",
            open_resource=self._open_file,
            close_resource=_disconnect,
            timeout_s=timeout_s,
            idle_s=idle_s,
        )

    def open(self) -> AbstractContextManager[Any]:
        """Hold the graph open for a block of calls."""
        return self._session.use()

    @property
    def generation(self) -> int:
        """Counts how often the graph was taken: between equal numbers no other process has had it."""
        return self._session.generation

    def release(self) -> None:
        """Give the graph up for other processes."""
        self._session.release()

    def close(self) -> None:
        """Give the graph up for good."""
        self._session.close()

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its primary key (an edge: by its ends)."""
        if isinstance(key, tuple):
            source, target = tables()[table].ends or ("", "")
            query = f"MATCH (a:{source} {{id: $a}})-[e:{table}]->(b:{target} {{id: $b}}) RETURN e"
            found = self._read(query, {"a": key[0], "b": key[1]})
        else:
            found = self._read(f"MATCH (n:{table} {{id: $id}}) RETURN {whole(table)}", {"id": key})
        return to_row(found[0][0]) if found else None

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every edge at a memory, both ways."""
        edges: list[tuple[str, Key, Row]] = []
        with self.open():
            for arrow in ("-[e]->", "<-[e]-"):
                query = f"MATCH (m:Memory {{id: $id}}){arrow}(n) RETURN label(e), n.id, e"
                for table, other, edge in self._read(query, {"id": memory_id}):
                    if other == memory_id and not arrow.endswith(">"):
                        continue  # a link to itself came with the first arrow
                    key = (memory_id, other) if arrow.endswith(">") else (other, memory_id)
                    edges.append((table, key, from_engine(edge)))
        return edges

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every link between memories at this one, NEXT included, both ways."""
        links: list[tuple[str, Key, Row]] = []
        kinds = "|".join((*EXPLICIT_RELATIONS, "NEXT"))
        query = "MATCH (a:Memory {id: $id}){}(b:Memory) RETURN label(e), b.id, e"
        with self.open():
            for table, target, edge in self._read(query.replace("{}", f"-[e:{kinds}]->"), {"id": memory_id}):
                links.append((table, (memory_id, target), from_engine(edge)))
            for table, source, edge in self._read(query.replace("{}", f"<-[e:{kinds}]-"), {"id": memory_id}):
                if source != memory_id:
                    links.append((table, (source, memory_id), from_engine(edge)))
        return links

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table."""
        ends = tables()[table].ends
        if ends:
            for source, target, edge in self._read(
                f"MATCH (a:{ends[0]})-[e:{table}]->(b:{ends[1]}) RETURN a.id, b.id, e", {}
            ):
                yield (source, target), from_engine(edge)
        else:
            for (node,) in self._read(f"MATCH (n:{table}) RETURN {whole(table)}", {}):
                row = to_row(node)
                yield row["id"], row

    def scan_columns(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a node table as an analyst sees them: from their columns, not from their record."""
        for (node,) in self._read(f"MATCH (n:{table}) RETURN n", {}):
            row = from_engine(node)
            row.pop(RECORD, None)
            yield row["id"], row

    def state(self) -> Row | None:
        """Return the projection's state row."""
        row = self.get("Projection", STATE_KEY) or {}
        return orjson.loads(row["state"]) if "state" in row else None

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and the state in one transaction."""
        new_rows: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            if change.old is None:
                new_rows[change.table].append(change)
        bulk = sum(map(len, new_rows.values())) >= _COPY_FROM_ROWS
        with self.open() as connection:
            if bulk:
                _run(connection, "CHECKPOINT")  # without it a COPY that fails leaves the engine unable to close
            with _transaction(connection):
                for change in sorted(changes, key=order):
                    if not (change.old is None and (bulk or isinstance(change.key, tuple))):
                        _run(connection, *statement(change))
                if bulk:
                    self._copy(connection, new_rows)
                else:
                    edges = [
                        change for changes in new_rows.values() for change in changes if isinstance(change.key, tuple)
                    ]
                    for start in range(0, len(edges), _EDGES_A_STATEMENT):
                        _add_edges(connection, edges[start : start + _EDGES_A_STATEMENT])
                _run(connection, *state_statement(state))

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything: a new database is filled by COPY and then takes the old one's place."""
        rows: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            rows[change.table].append(change)
        fresh = self._path.with_suffix(".new")
        with self._session.closed(), _files(self._folder):
            make_private_folder(self._folder)
            _remove(fresh)
            connection = _connect(fresh)
            try:
                with _transaction(connection):
                    self._copy(connection, rows, progress)
                    _run(connection, *state_statement(state))
                _run(connection, "CHECKPOINT")
            finally:
                _disconnect(connection)
            _remove(self._path)
            fresh.replace(self._path)

    def cypher(self, query: str, params: Mapping[str, Any]) -> list[Row]:
        """Run a reading query from outside and return its rows as plain data.

        Raises
        ------
        QueryError
            The query is refused by the guard or by the engine.
        """
        checked = check_read_only(query)
        # A database opened read-only would refuse no more than this transaction (COPY TO and LOAD FROM run in both, which
        # is what the guard is for), and beside the open one it would not see its latest rows.
        with self.open() as connection, _transaction(connection, "READ ONLY"):
            return _answer(connection, checked, dict(params))

    def _open_file(self) -> kuzu.Connection:
        make_private_folder(self._folder)
        is_new = not self._path.exists()
        connection = _connect(self._path)
        if is_new:
            logger.info("made an empty graph at %s", self._path)
        return connection

    def _read(self, query: str, params: Mapping[str, Any]) -> list[list[Any]]:
        with self.open() as connection:
            return _run(connection, query, params)

    def _copy(
        self, connection: kuzu.Connection, rows: Mapping[str, Sequence[Change]], progress: Progress | None = None
    ) -> None:
        """Bring new rows in, nodes before edges: by COPY where a table has many, else by statement."""
        total, done = sum(map(len, rows.values())), 0
        with _files(self._folder), TemporaryDirectory(prefix="load-", dir=self._folder) as folder:
            for name, table in tables().items():
                changes = rows.get(name, ())
                if len(changes) < _COPY_FROM_TABLE_ROWS:
                    for change in changes:
                        if table.ends:
                            _add_edges(connection, [change])
                        else:
                            _run(connection, *statement(change))
                elif changes:
                    path = Path(folder) / f"{name}.json"
                    write_json(path, table, changes)
                    _run(connection, f"COPY {name} FROM {quoted(path)}")
                    path.unlink()
                done += len(changes)
                if progress and changes:
                    progress(done, total)


def _connect(path: Path) -> kuzu.Connection:
    """Open a database, with its tables."""
    try:
        database = kuzu.Database(str(path), buffer_pool_size=_BUFFER_POOL_BYTES, max_db_size=_MAX_DATABASE_BYTES)
        connection = kuzu.Connection(database)
    except _ENGINE_ERRORS as error:
        shown = str(path).encode("utf-8", "backslashreplace").decode()
        raise GraphError(
            f"the graph at {shown} cannot be opened: {error}; it can be rebuilt from the journal"
        ) from None
    try:
        known = {row[1] for row in _run(connection, "CALL show_tables() RETURN *")}
        for name, table in tables().items():
            if name not in known:
                _run(connection, table.statement)
        if not known:
            _run(connection, f"CREATE (:Projection {{id: '{STATE_KEY}'}})")
    except GraphError:
        with suppress(GraphError):
            _disconnect(connection)
        raise
    return connection


def _disconnect(connection: kuzu.Connection) -> None:
    database = connection.database
    _PREPARED.pop(connection, None)  # what was prepared must not outlive its database
    try:
        try:
            connection.close()
        finally:
            database.close()
    except _ENGINE_ERRORS as error:
        raise GraphError(f"the graph did not close: {error}") from None


def _run(connection: kuzu.Connection, query: str, params: Mapping[str, Any] | None = None) -> list[list[Any]]:
    """Run one statement and return its rows."""
    params = dict(params or {})
    try:
        return list(_rows(connection.execute(_prepared(connection, query, params), params)))
    except _ENGINE_ERRORS as error:
        raise GraphError(f"the graph engine refused `{query[:80]}`: {error}") from None


def _prepared(connection: kuzu.Connection, query: str, params: Mapping[str, Any]) -> Any:
    """Return the statement, prepared once for a connection: preparing costs half of what a small one takes.

    Only for plain values: their types cannot differ from one run to the next, as those of lists and nulls can.
    """
    if not params or not all(type(value) in _PLAIN for value in params.values()):
        return query
    known = _PREPARED.setdefault(connection, {})
    if query not in known:
        if len(known) >= _MOST_PREPARED:
            known.clear()
        statement = kuzu.PreparedStatement(connection, query, dict(params))
        if not statement.is_success():
            raise RuntimeError(statement.get_error_message())
        known[query] = statement
    return known[query]


def _answer(connection: kuzu.Connection, query: str, params: dict[str, Any]) -> list[Row]:
    """Run one statement from outside, within its limits."""
    connection.set_query_timeout(int(_QUERY_TIMEOUT_S * 1_000))
    try:
        # Prepared, which refuses several statements before the first has run: `execute` would run them all.
        prepared = kuzu.PreparedStatement(connection, query, params)
        if not prepared.is_success():
            raise QueryError(f"the query failed: {prepared.get_error_message()}")
        result = connection.execute(prepared, params)
        if isinstance(result, list):
            raise QueryError("the query holds several statements; only one is run")
        if (count := result.get_num_tuples()) > MAX_QUERY_ROWS:
            result.close()
            raise QueryError(
                f"the query has {count:,} rows, {MAX_QUERY_ROWS:,} are the most: add LIMIT {MAX_QUERY_ROWS}"
            )
        names = result.get_column_names()
        return [dict(zip(names, map(plain, row), strict=True)) for row in _rows(result)]
    except _ENGINE_ERRORS as error:
        if str(error).startswith("Interrupted"):
            raise QueryError(f"the query took longer than {_QUERY_TIMEOUT_S:g} s and was stopped") from None
        raise QueryError(f"the query failed: {error}") from None
    finally:
        connection.set_query_timeout(0)


def _rows(result: Any) -> Iterator[list[Any]]:
    while result.has_next():
        yield result.get_next()
    result.close()


@contextmanager
def _transaction(connection: kuzu.Connection, mode: str = "") -> Iterator[None]:
    """All or nothing. An error inside has mostly rolled back already, hence the suppressed ROLLBACK."""
    _run(connection, f"BEGIN TRANSACTION {mode}")
    try:
        yield
    except BaseException:
        with suppress(GraphError):
            _run(connection, "ROLLBACK")
        raise
    _run(connection, "COMMIT")


@contextmanager
def _files(folder: Path) -> Iterator[None]:
    """Turn what the operating system refuses into a `GraphError`."""
    try:
        yield
    except OSError as error:
        raise GraphError(f"the graph in {folder} cannot be written: {error.strerror or error}") from error


def _add_edges(connection: kuzu.Connection, changes: Sequence[Change]) -> None:
    """Make new edges in one statement, which makes none of them if one end is not there."""
    if _run(connection, *creation_of_edges(changes)) != [[1]]:
        shown = ", ".join(f"{change.table} {' → '.join(change.key)}" for change in changes)
        raise GraphError(f"an edge has no node at one of its ends: {shown}")


def _remove(path: Path) -> None:
    for victim in (path, path.with_name(path.name + ".wal")):
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            victim.unlink(missing_ok=True)
