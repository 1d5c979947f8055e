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

import kuzu
import orjson

from memgraph.errors import GraphError, QueryError
from memgraph.graph.guard import check_read_only
from memgraph.graph.schema import Table, tables
from memgraph.graph.session import Session
from memgraph.graph.values import from_engine, plain, to_engine
from memgraph.journal.files import make_private_folder
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.ports import Change, Key, Progress, Row

logger = logging.getLogger("memgraph.graph")

_BUFFER_POOL_BYTES = 512 << 20
_MAX_DATABASE_BYTES = 1 << 36
_COPY_FROM_ROWS = 1_000
"""New rows in one commit from which COPY beats one statement each (some 100 memories with their edges); it also wastes space in the file."""
_COPY_FROM_TABLE_ROWS = 30
_EDGES_A_STATEMENT = 10
"""Parsing dominates: ten edges in one statement cost half of ten statements."""
_STATE_KEY = "projection"
_RECORD = "record"


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
            found = self._read(f"MATCH (n:{table} {{id: $id}}) RETURN {_whole(table)}", {"id": key})
        return _row(found[0][0]) if found else None

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every edge at a memory, both ways."""
        edges: list[tuple[str, Key, Row]] = []
        with self.open():
            for arrow in ("-[e]->", "<-[e]-"):
                query = f"MATCH (m:Memory {{id: $id}}){arrow}(n) RETURN label(e), n.id, e"
                for table, other, edge in self._read(query, {"id": memory_id}):
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
            for (node,) in self._read(f"MATCH (n:{table}) RETURN {_whole(table)}", {}):
                row = _row(node)
                yield row["id"], row

    def scan_columns(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a node table as an analyst sees them: from their columns, not from their record."""
        for (node,) in self._read(f"MATCH (n:{table}) RETURN n", {}):
            row = from_engine(node)
            row.pop(_RECORD, None)
            yield row["id"], row

    def state(self) -> Row | None:
        """Return the projection's state row."""
        row = self.get("Projection", _STATE_KEY) or {}
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
                for change in sorted(changes, key=_order):
                    if not (change.old is None and (bulk or isinstance(change.key, tuple))):
                        _run(connection, *_statement(change))
                if bulk:
                    self._copy(connection, new_rows)
                else:
                    edges = [
                        change for changes in new_rows.values() for change in changes if isinstance(change.key, tuple)
                    ]
                    for start in range(0, len(edges), _EDGES_A_STATEMENT):
                        _run(connection, *_create_edges(edges[start : start + _EDGES_A_STATEMENT]))
                _run(connection, *_state_statement(state))

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything: a new database is filled by COPY and then takes the old one's place."""
        rows: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            rows[change.table].append(change)
        fresh = self._path.with_suffix(".new")
        with self._session.closed():
            make_private_folder(self._folder)
            _remove(fresh)
            connection = _connect(fresh)
            try:
                with _transaction(connection):
                    self._copy(connection, rows, progress)
                    _run(connection, *_state_statement(state))
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
        check_read_only(query)
        with self.open() as connection, _transaction(connection, "READ ONLY"):
            try:
                result = connection.execute(query, dict(params))
                names = result.get_column_names()
                return [dict(zip(names, map(plain, row), strict=True)) for row in _rows(result)]
            except RuntimeError as error:
                raise QueryError(f"the query failed: {error}") from None

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
        with TemporaryDirectory(prefix="load-", dir=self._folder) as folder:
            for name, table in tables().items():
                changes = rows.get(name, ())
                if len(changes) < _COPY_FROM_TABLE_ROWS:
                    for change in changes:
                        _run(connection, *_statement(change))
                elif changes:
                    path = Path(folder) / f"{name}.json"
                    _write_json(path, table, changes)
                    _run(connection, f"COPY {name} FROM {_quoted(path)}")
                    path.unlink()
                done += len(changes)
                if progress and changes:
                    progress(done, total)


def _connect(path: Path) -> kuzu.Connection:
    """Open a database, with its tables."""
    try:
        database = kuzu.Database(str(path), buffer_pool_size=_BUFFER_POOL_BYTES, max_db_size=_MAX_DATABASE_BYTES)
        connection = kuzu.Connection(database)
    except (RuntimeError, IndexError, OSError) as error:
        raise GraphError(f"the graph at {path} cannot be opened: {error}; it can be rebuilt from the journal") from None
    try:
        known = {row[1] for row in _run(connection, "CALL show_tables() RETURN *")}
        for name, table in tables().items():
            if name not in known:
                _run(connection, table.statement)
        if not known:
            _run(connection, f"CREATE (:Projection {{id: '{_STATE_KEY}'}})")
    except GraphError:
        _disconnect(connection)
        raise
    return connection


def _disconnect(connection: kuzu.Connection) -> None:
    database = connection.database
    connection.close()
    database.close()


def _run(connection: kuzu.Connection, query: str, params: Mapping[str, Any] | None = None) -> list[list[Any]]:
    """Run one statement and return its rows."""
    try:
        return list(_rows(connection.execute(query, dict(params or {}))))
    except (RuntimeError, IndexError) as error:
        raise GraphError(f"the graph engine refused `{query[:80]}`: {error}") from None


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


def _order(change: Change) -> int:
    """Edges go before their nodes, nodes come before their edges."""
    is_edge = isinstance(change.key, tuple)
    if change.new is None:
        return 0 if is_edge else 1
    return 3 if is_edge else 2


def _statement(change: Change) -> tuple[str, dict[str, Any]]:
    """Return the statement, by primary key, that makes one change."""
    table = tables()[change.table]
    if change.old is None and isinstance(change.key, tuple):
        return _create_edges([change])
    if change.old is None:
        row = _with_record(table, change.new or {})
        fields = ", ".join(f"{name}: ${name}" for name in row)
        return f"CREATE (:{table.name} {{{fields}}})", _values(table, row)
    if isinstance(change.key, tuple):
        source, target = table.ends or ("", "")
        pattern = f"MATCH (:{source} {{id: $_a}})-[x:{table.name}]->(:{target} {{id: $_b}})"
        params: dict[str, Any] = {"_a": change.key[0], "_b": change.key[1]}
    else:
        pattern, params = f"MATCH (x:{table.name} {{id: $_id}})", {"_id": change.key}
    if change.new is None:
        return f"{pattern} DELETE x", params
    old, new = _with_record(table, change.old), _with_record(table, change.new)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    assignments = ", ".join(f"x.{name} = ${name}" for name in changed)
    return f"{pattern} SET {assignments}", params | _values(table, {name: new.get(name) for name in changed})


def _values(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_engine(value, table.columns[name]) for name, value in row.items()}


def _create_edges(changes: Sequence[Change]) -> tuple[str, dict[str, Any]]:
    """Return one statement that makes these edges; each node is matched once, by its primary key."""
    aliases: dict[tuple[str, str], str] = {}
    params: dict[str, Any] = {}
    edges = []
    for number, change in enumerate(changes):
        table = tables()[change.table]
        ends = [aliases.setdefault(end, f"n{len(aliases)}") for end in zip(table.ends or (), change.key, strict=True)]
        names = {name: f"e{number}_{name}" for name in change.new or {}}
        params |= {names[name]: value for name, value in _values(table, change.new or {}).items()}
        fields = ", ".join(f"{name}: ${param}" for name, param in names.items())
        edges.append(f"({ends[0]})-[:{change.table}{f' {{{fields}}}' if fields else ''}]->({ends[1]})")
    nodes = [f"({alias}:{table} {{id: ${alias}}})" for (table, _), alias in aliases.items()]
    params |= {alias: key for (_, key), alias in aliases.items()}
    return f"MATCH {', '.join(nodes)} CREATE {', '.join(edges)}", params


def _whole(table: str) -> str:
    """Return what to ask for to get a node's row: its record where the table has one."""
    return f"n.{_RECORD}" if _RECORD in tables()[table].columns else "n"


def _row(value: Any) -> Row:
    row: Row = orjson.loads(value) if isinstance(value, str) else from_engine(value)
    return row


def _with_record(table: Table, row: Row) -> Row:
    return {**row, _RECORD: orjson.dumps(row).decode()} if _RECORD in table.columns else row


def _state_statement(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    params = {"id": _STATE_KEY, "seq": state["seq"], "state": orjson.dumps(state).decode()}
    return "MATCH (p:Projection {id: $id}) SET p.seq = $seq, p.state = $state", params


def _write_json(path: Path, table: Table, changes: Sequence[Change]) -> None:
    """Write rows for COPY: JSON keeps strings, lists and structs as they are, and needs no further library."""
    with path.open("wb") as file:
        for index, change in enumerate(changes):
            row = _with_record(table, change.new or {})
            if isinstance(change.key, tuple):
                row = {"from": change.key[0], "to": change.key[1], **row}
            file.write(b",\n" if index else b"[")
            file.write(orjson.dumps({**dict.fromkeys(table.columns), **row} if index == 0 else row))
        file.write(b"]")


def _quoted(path: Path) -> str:
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    if any(char in text for char in "*?["):
        raise GraphError(
            f"{path}: the engine takes *, ? and [ in a path for patterns; move the store to another directory"
        )
    return f"'{text}'"


def _remove(path: Path) -> None:
    for victim in (path, path.with_name(path.name + ".wal")):
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            victim.unlink(missing_ok=True)
