"""The Kùzu adapter: with its own child process, the only module that imports kuzu. Every engine error leaves it as a `GraphError`."""

from __future__ import annotations

import importlib.util  # noqa: F401 - kuzu uses it without importing it
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import kuzu
import orjson

from memgraph.errors import BusyError, GraphError
from memgraph.graph.file import MOST_DATABASE_BYTES, GraphFile, pool_to_copy
from memgraph.graph.guard import check_parameters, check_read_only
from memgraph.graph.opened import sweep
from memgraph.graph.room import told
from memgraph.graph.schema import tables
from memgraph.graph.session import Session
from memgraph.graph.statements import (
    RECORD,
    STATE_KEY,
    creation_of_edges,
    creation_of_tables,
    edges_by_memory,
    edges_by_table,
    has_room_to_copy,
    lookup,
    lookup_of_edges,
    quoted,
    state_statement,
    statement,
    statements_of,
    to_row,
    to_text,
    whole,
    write_json,
)
from memgraph.graph.values import from_engine, type_of
from memgraph.journal.files import make_private_folder
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.rows import Rows
from memgraph.ports import Change, Key, Progress, Row

_COPY_FROM_ROWS = 3_000
"""New rows in one commit (some 250 memories with their edges) that are copied. From 1,000 on that is quicker already, but it takes
200 MB that the engine keeps, and rewrites the end of every table twice."""
_COPY_FROM_TABLE_ROWS = 30
_ROWS_A_COPY = 25_000
_MOST_PREPARED = 400
_MOST_SHAPES = 48
_SHAPES: WeakKeyDictionary[kuzu.Connection, set[tuple[str, ...]]] = WeakKeyDictionary()
_PREPARED: WeakKeyDictionary[kuzu.Connection, dict[Any, Any]] = WeakKeyDictionary()
_ORPHAN_S = 5.0
"""For so long, the child of a process that was killed may still be about to end."""
_LOOK_S = 0.02
_ENGINE_ERRORS = (RuntimeError, IndexError, ValueError, TypeError, OverflowError, OSError)
"""What the engine's binding raises: damaged files give text that is no text (ValueError), odd paths a TypeError."""


class KuzuEngine:
    """Rows in one Kùzu database file under `folder`."""

    def __init__(self, folder: Path, *, timeout_s: float = 10.0, idle_s: float = 2.0) -> None:
        self._folder = folder
        self._path = folder / "memgraph.kuzu"
        self._file = GraphFile(self._path)
        self._session: Session[kuzu.Connection] = Session(
            folder.parent / "graph.lock",
            open_resource=self._open_file,
            close_resource=self._close_file,
            timeout_s=timeout_s,
            idle_s=idle_s,
        )

    def open(self) -> AbstractContextManager[None]:
        """Hold the graph for a block of calls; the first that needs it opens it."""
        return self._session.held()

    @property
    def is_held(self) -> bool:
        """Whether this process has the graph now."""
        return self._session.is_held

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
        found = self._read(*lookup(table, key))
        return to_row(found[0]) if found else None

    def edges(self, table: str, keys: Collection[Key]) -> dict[Key, Row]:
        """Return those of these edges that are there, in one pass over the table."""
        rows = self._read(*lookup_of_edges(table, keys))
        return {(one, other): from_engine(edge) for one, other, edge in rows if (one, other) in keys}

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
            names = list(tables()[table].columns)
            wanted = ", ".join(["a.id", "b.id", *(f"e.{name}" for name in names)])
            query = f"MATCH (a:{ends[0]})-[e:{table}]->(b:{ends[1]}) RETURN {wanted}"
            for source, target, *values in self._read(query, {}):
                yield (source, target), from_engine(dict(zip(names, values, strict=True)))
        else:
            for values in self._read(f"MATCH (n:{table}) RETURN {whole(table)}", {}):
                row = to_row(values)
                yield row["id"], row

    def records(self) -> list[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text."""
        found = self._read(f"MATCH (n:Memory) RETURN n.id, {whole('Memory')}", {})
        return [(key, to_text(values)) for key, *values in found]

    def scan_columns(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a node table as an analyst sees them: from their columns, not from their record."""
        names = [name for name in tables()[table].columns if name != RECORD]
        # column by column, a tenth of the time that whole nodes take; and not all at once
        with self._session.use() as connection:
            for values in _streamed(connection, f"MATCH (n:{table}) RETURN {', '.join(f'n.{name}' for name in names)}"):
                row = from_engine(dict(zip(names, values, strict=True)))
                yield row["id"], row

    def state(self) -> Row | None:
        """Return the projection's state row."""
        row = self.get("Projection", STATE_KEY) or {}
        return orjson.loads(row["state"]) if "state" in row else None

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and the state in one transaction."""
        new_rows: dict[str, list[Change]] = defaultdict(list)
        for change in (one for one in changes if one.old is None):
            new_rows[change.table].append(change)
        bulk = sum(map(len, new_rows.values())) >= _COPY_FROM_ROWS and has_room_to_copy(self._path, changes)
        with self._session.use() as connection:
            self._file.before_writing(self._path, changes)
            if bulk:  # without it a COPY that fails leaves the engine unable to close
                self._checkpoint(connection)
            with _transaction(connection):
                for query, params in statements_of(changes, all_new_are_copied=bulk):
                    _run(connection, query, params)
                if bulk:
                    self._copy(connection, new_rows)
                else:
                    edges = [
                        change for changes in new_rows.values() for change in changes if isinstance(change.key, tuple)
                    ]
                    for group in edges_by_memory(edges):
                        for part in [group] if _is_cheap(connection, group) else edges_by_table(group):
                            _add_edges(connection, part)
                _run(connection, *state_statement(state))
            if bulk or self._file.has_long_log():
                self._checkpoint(connection)

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything: a new database is filled by COPY and then takes the old one's place."""
        rows: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            rows[change.table].append(change)
        fresh = self._path.with_suffix(".new")
        with self._session.closed(), told(self._folder):
            make_private_folder(self._folder)
            sweep(self._path)
            self._file.before_writing(fresh, [change for table in rows.values() for change in table])
            try:
                connection = _connect(fresh, pool_to_copy(len(rows["Memory"])))
                try:
                    # in no transaction: it counts when it takes the old one's place
                    self._copy(connection, rows, progress)
                    _run(connection, *state_statement(state))
                    _run(connection, "CHECKPOINT")
                finally:
                    _disconnect(connection)
            except BaseException:
                sweep(self._path)
                raise
            self._file.replace(fresh)

    def cypher(self, query: str, params: Mapping[str, Any]) -> Rows:
        """Run a reading query from outside and return its rows as plain data.

        Raises
        ------
        QueryError
            The query is refused by the guard or by the engine.
        """
        check_parameters(checked := check_read_only(query), params)
        with self._session.lent():
            return self._file.query(checked, params)

    def _open_file(self) -> kuzu.Connection:
        is_new = self._file.before_opening()
        connection = _connect(self._path, self._file.pool_bytes())
        if is_new:
            self._checkpoint(connection)
        return connection

    def _checkpoint(self, connection: kuzu.Connection) -> None:
        """Bring the log into the file: what a kill leaves of a log is not trusted, so it shall be short."""
        _run(connection, "CHECKPOINT")
        self._file.after_checkpoint()

    def _close_file(self, connection: kuzu.Connection) -> None:
        if not self._file.can_take_log():
            with suppress(GraphError):  # it writes to the file even where there is nothing to write
                _run(connection, "CALL force_checkpoint_on_close=false")
        _disconnect(connection)
        self._file.after_closing()

    def _read(self, query: str, params: Mapping[str, Any]) -> list[list[Any]]:
        with self._session.use() as connection:
            return _run(connection, query, params)

    def _copy(
        self, connection: kuzu.Connection, rows: Mapping[str, Sequence[Change]], progress: Progress | None = None
    ) -> None:
        """Bring new rows in, nodes before edges: by COPY where a table has many, else by statement."""
        total, done = sum(map(len, rows.values())), 0
        with told(self._folder), TemporaryDirectory(prefix="load-", dir=self._folder) as folder:
            for name, table in tables().items():
                changes = rows.get(name, ())
                if len(changes) < _COPY_FROM_TABLE_ROWS:
                    for change in changes:
                        if table.ends:
                            _add_edges(connection, [change])
                        else:
                            _run(connection, *statement(change))
                    done += len(changes)
                    continue
                for start in range(0, len(changes), _ROWS_A_COPY):
                    part = changes[start : start + _ROWS_A_COPY]
                    path = Path(folder) / f"{name}.json"
                    write_json(path, table, part)
                    _run(connection, f"COPY {name} FROM {quoted(path)}")
                    path.unlink()
                    done += len(part)
                    if progress:
                        progress(done, total)


def _connect(path: Path, pool_bytes: int) -> kuzu.Connection:
    """Open a database, with its tables."""
    connection = _connection(path, pool_bytes)
    try:
        if missing := creation_of_tables({row[1] for row in _run(connection, "CALL show_tables() RETURN *")}):
            with _transaction(connection):  # one, because each commit waits for the disk
                for query in missing:
                    _run(connection, query)
    except GraphError:
        with suppress(GraphError):
            _disconnect(connection)
        raise
    return connection


def _connection(path: Path, pool_bytes: int) -> kuzu.Connection:
    until = time.monotonic() + _ORPHAN_S
    while True:
        try:
            sizes: dict[str, Any] = {"buffer_pool_size": pool_bytes, "max_db_size": MOST_DATABASE_BYTES}
            return kuzu.Connection(kuzu.Database(str(path), auto_checkpoint=False, max_num_threads=1, **sizes))
        except _ENGINE_ERRORS as error:
            if "Could not set lock" not in str(error):
                shown = str(path).encode("utf-8", "backslashreplace").decode()
                raise GraphError(
                    f"the graph at {shown} cannot be opened and can be rebuilt from the journal", engine_says=str(error)
                ) from None
        if time.monotonic() > until:
            raise BusyError("the graph's file", pid=None, timeout_s=_ORPHAN_S)
        time.sleep(_LOOK_S)


def _disconnect(connection: kuzu.Connection) -> None:
    database = connection.database
    _PREPARED.pop(connection, None)  # what was prepared must not outlive its database
    try:
        try:
            connection.close()
        finally:
            database.close()
    except _ENGINE_ERRORS as error:
        raise GraphError("the graph did not close", engine_says=str(error)) from None


def _run(connection: kuzu.Connection, query: str, params: Mapping[str, Any] | None = None) -> list[list[Any]]:
    """Run one statement and return its rows."""
    params = dict(params or {})
    try:
        return list(_rows(connection.execute(_prepared(connection, query, params), params)))
    except _ENGINE_ERRORS as error:
        raise GraphError(f"the graph engine refused `{query[:80]}`", engine_says=str(error)) from None


def _streamed(connection: kuzu.Connection, query: str) -> Iterator[list[Any]]:
    """Run one statement of one's own and yield its rows as they are asked for."""
    try:
        yield from _rows(connection.execute(query))
    except _ENGINE_ERRORS as error:
        raise GraphError(f"the graph engine refused `{query[:80]}`", engine_says=str(error)) from None


def _prepared(connection: kuzu.Connection, query: str, params: Mapping[str, Any]) -> Any:
    """Return the statement, prepared once for a connection: preparing costs half of what a small one takes.

    Prepared for one set of types, so not for what leaves a type open: nulls, empty lists.
    """
    types = tuple(type_of(value) for value in params.values())
    if not types or None in types:
        return query
    known = _PREPARED.setdefault(connection, {})
    if (query, types) not in known:
        if len(known) >= _MOST_PREPARED:
            known.clear()
        statement = kuzu.PreparedStatement(connection, query, dict(params))
        if not statement.is_success():
            raise RuntimeError(statement.get_error_message())
        known[query, types] = statement
    return known[query, types]


def _rows(result: Any) -> Iterator[list[Any]]:
    while result.has_next():
        yield result.get_next()
    result.close()


@contextmanager
def _transaction(connection: kuzu.Connection) -> Iterator[None]:
    """All or nothing. An error inside has mostly rolled back already, hence the suppressed ROLLBACK."""
    _run(connection, "BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        with suppress(GraphError):
            _run(connection, "ROLLBACK")
        raise
    _run(connection, "COMMIT")


def _is_cheap(connection: kuzu.Connection, group: Sequence[Change]) -> bool:
    """Whether a memory's edges shall be made in one statement, in a third of the time of one for each table.

    The engine keeps what it has planned for a statement, half a megabyte for sixteen edges, for as long as it is open: so that
    is for the shapes that come first, and they come again most.
    """
    shapes = _SHAPES.setdefault(connection, set())
    shape = tuple(change.table for change in group)
    if shape not in shapes and len(shapes) < _MOST_SHAPES:
        shapes.add(shape)
    return shape in shapes


def _add_edges(connection: kuzu.Connection, changes: Sequence[Change]) -> None:
    """Make new edges in one statement, which makes none of them if one end is not there."""
    if _run(connection, *creation_of_edges(changes)) != [[1]]:
        shown = ", ".join(f"{change.table} {' → '.join(change.key)}" for change in changes)
        raise GraphError(f"an edge has no node at one of its ends: {shown}")
