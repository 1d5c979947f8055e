"""Stores rows in an embedded graph engine: Kùzu or its fork Ladybug. Every engine error is raised as a `GraphError`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import as_graph_errors, make_private_folder
from memgraph.disk.seal import ReplacedKeyError, Seal
from memgraph.errors import GraphError, OutdatedGraphError
from memgraph.graph.columns import from_engine, visible
from memgraph.graph.connection import KUZU, Connection, Vendor
from memgraph.graph.guard import check_parameters, check_read_only, explaining
from memgraph.graph.rows.anchors import EdgeAnchors, again_beside
from memgraph.graph.rows.records import Records
from memgraph.graph.rows.replacing import edges_at, replaced
from memgraph.graph.rows.statements import (
    count_of,
    creation_of_tables,
    held_nodes,
    lookup,
    lookup_of_edges,
    state_statement,
    sums_of,
    with_records,
)
from memgraph.graph.rows.sums import Sums
from memgraph.graph.rows.writing import BulkLimits, RowWriter, hash_sum
from memgraph.graph.schema import STATE_TABLE, tables
from memgraph.graph.storage.database_file import GraphFile, LogLimits, QueryLimits, pool_to_copy
from memgraph.graph.storage.lease import Session
from memgraph.graph.storage.open_note import sweep
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.results.rows import Rows
from memgraph.ports import Change, Key, Progress, Row

_CROWDED_POOL = 0.25
"""Share of its buffer pool that an engine may keep in use: Ladybug (0.22.0) does not free what a COPY of edges took until it closes."""


class EmbeddedEngine:
    """Rows in one database file under `folder`.

    Parameters
    ----------
    folder : Path
    seal : Seal
        Authenticates the file and its state record.
    vendor : Vendor
    timeout_s, idle_s : float
        How long to wait for another process that holds the graph; the time without use after which it is released.
    patience_s : float
        How long others wait for a query before it continues on a copy.
    """

    def __init__(
        self,
        folder: Path,
        seal: Seal,
        vendor: Vendor = KUZU,
        *,
        timeout_s: float = 10.0,
        idle_s: float = 2.0,
        patience_s: float = 1.0,
        bulk: BulkLimits | None = None,
        log: LogLimits | None = None,
        queries: QueryLimits | None = None,
    ) -> None:
        self._folder = folder
        self._path = folder / f"memgraph.{vendor.name}"
        self._vendor = vendor
        self._seal = seal
        self._records = Records(seal)
        self._writer = RowWriter(vendor, folder, bulk or BulkLimits())
        self._file = GraphFile(self._path, vendor, seal, log or LogLimits(), queries or QueryLimits())
        self.patience_s = patience_s
        self._sums: Sums | None = None
        self._anchors = EdgeAnchors(is_known=False)
        self._is_spoilt = False
        self._sealed_with, self._replaced_keys = seal.name, 0
        self._session: Session[Connection] = Session(
            folder.parent / "graph.lock",
            open_resource=self._open_file,
            close_resource=self._close_file,
            timeout_s=timeout_s,
            idle_s=idle_s,
        )

    def open(self) -> AbstractContextManager[None]:
        """Hold the graph for a block of calls; the first call that needs it opens it."""
        return self._session.held()

    @property
    def is_held(self) -> bool:
        """Whether this process holds the graph now."""
        return self._session.is_held

    def acquire_if_free(self) -> bool:
        """Hold the graph for the calls that follow, unless another process holds it; return whether this process does."""
        return self._session.acquire_if_free()

    @property
    def generation(self) -> int:
        """Counts how often the graph was acquired, and how often the key that seals it was replaced.

        If two readings are equal, no other process has used the graph between them, and its rows are sealed with the present key.
        """
        if (name := self._seal.name) != self._sealed_with:
            self._sealed_with, self._replaced_keys = name, self._replaced_keys + 1
        return self._session.generation + self._replaced_keys

    def release(self) -> None:
        """Release the graph for other processes."""
        self._session.release()

    def close(self) -> None:
        """Close the graph for good."""
        self._session.close()

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its primary key (an edge: by its ends)."""
        if table == "Memory":
            with self._session.use() as connection:
                return self._records.one(connection, str(key))
        found = self._read(*lookup(table, key))
        return from_engine(found[0][0]) if found else None

    def edges(self, table: str, keys: Collection[Key]) -> dict[Key, Row]:
        """Return those of these edges that exist, in one pass over the table."""
        rows = self._read(*lookup_of_edges(table, keys))
        return {(one, other): from_engine(edge) for one, other, edge in rows if (one, other) in keys}

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every edge at a memory, in both directions."""
        with self._session.use() as connection:
            return list(edges_at(connection, "Memory", memory_id))

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return at most `limit` nodes with an edge of this table to the target."""
        one, other = tables()[table].ends or ("", "")
        found = self._read(
            f"MATCH (a:{one})-[:{table}]->(b:{other} {{id: $id}}) RETURN a.id LIMIT {limit:d}", {"id": target}
        )
        return [key for (key,) in found]

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every link between this memory and others, including NEXT, in both directions."""
        with self._session.use() as connection:
            return list(edges_at(connection, "Memory", memory_id, (*EXPLICIT_RELATIONS, "NEXT")))

    def held(self, table: str, source: str, moment: int | str | None) -> list[Row]:
        """Return the nodes to which a node has edges of this table and that held at a moment."""
        return [from_engine(node) for (node,) in self._read(*held_nodes(table, source, moment))]

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table."""
        if table != "Memory":
            yield from self.scan_columns(table)
            return
        for key, text in self.records():
            yield key, orjson.loads(text)

    def records(self) -> list[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text."""
        with self._session.use() as connection:
            return self._records.all(connection, self._written().rows.get("Memory", 0))

    def scan_columns(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table as a query sees them: a memory's from its columns, not from its record."""
        found = tables()[table]
        names = list(found.columns)
        # column by column, in a tenth of the time of whole nodes; and not all columns at once
        if found.ends:
            pattern, keys, alias = f"MATCH (a:{found.ends[0]})-[e:{table}]->(b:{found.ends[1]})", ["a.id", "b.id"], "e"
        else:
            pattern, keys, alias = f"MATCH (n:{table})", [], "n"
        wanted = ", ".join([*keys, *(f"{alias}.{name}" for name in names)])
        with self._session.use() as connection:
            for values in connection.stream(f"{pattern} RETURN {wanted}"):
                row = from_engine(dict(zip(names, values[len(keys) :], strict=True)))
                yield (values[0], values[1]) if found.ends else row["id"], row

    def columns(self, table: str, row: Row) -> Row:
        """Return a row as `scan_columns` should find it."""
        return visible(tables()[table], row)

    def count_rows(self) -> int:
        """Return the number of rows in all tables, as counted when they were written."""
        return sum(self._written().rows.values())

    def size_bytes(self) -> int:
        """Return the size of the file and its log."""
        return self._file.size_bytes()

    def state(self) -> Row | None:
        """Return the projection's state record; None in a graph that was never written.

        Raises
        ------
        GraphError
            The record is not what this store has written.
        """
        self._sums = Sums()
        found = self._read(f"MATCH (p:{STATE_TABLE}) RETURN p.state", {})
        if not found or not found[0][0]:
            return None
        try:
            said = self._seal.unsealed(found[0][0])
            self._sums = Sums.from_row(said["sums"])
            state: Row = said["state"]
        except ReplacedKeyError as error:
            raise OutdatedGraphError(f"the graph's state record {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise GraphError("the graph's state record cannot be read", engine_says=str(error)) from None
        return state

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and the state in one transaction."""
        stored = list(with_records(changes, self._seal.short_code))
        with self._session.held():
            with self._reopening_after_errors(), self._session.use() as connection:
                self._file.before_writing(self._path, changes)
                self._write(connection, stored, state)
                is_crowded = connection.pool_share() > _CROWDED_POOL
            if is_crowded:
                self._session.reopen()

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything: fill a new database by COPY, then replace the old one with it."""
        stored = list(with_records(changes, self._seal.short_code))
        memories = sum(change.table == "Memory" for change in stored)
        fresh = self._path.with_suffix(".new")
        with self._session.closed(), as_graph_errors(self._folder):
            self._sums = None
            make_private_folder(self._folder)
            sweep(self._path)
            self._file.before_writing(fresh, stored)
            try:
                connection = self._connected(fresh, pool_to_copy(memories))
                try:
                    # without a transaction: the new database takes effect when it replaces the old one
                    self._writer.copy(connection, stored, progress)
                    self._write_state(
                        connection, state, Sums().after(stored, lambda texts: hash_sum(connection, texts))
                    )
                    connection.checkpoint()
                finally:
                    connection.close()
            except BaseException:
                sweep(self._path)
                raise
            self._file.replace(fresh)

    def lost(self) -> list[str]:
        """Compare all columns with what was written, and return a description of each difference.

        Takes about 6 microseconds per memory and 1 per edge, nearly all of it in the engine.
        """
        with self._session.use() as connection:
            self.state()
            expected = self._sums or Sums()
            differing, hashes = [], [0, 0]
            for name, table in tables().items():
                if name == STATE_TABLE:
                    continue
                written = expected.rows.get(name, 0)
                found = [connection.run(query)[0] for query in sums_of(table)] if written else [[0, 0]]
                counts = [count for count, _ in found]
                if table.ends or not written:
                    counts += connection.run(count_of(table))[0]
                if wrong := [count for count in counts if count != written]:
                    differing.append(f"{name} has {wrong[0]:,} rows instead of {written:,}")
                for direction, (_, total) in enumerate((found[0], found[-1])):
                    hashes[direction] += int(total or 0)
        if not differing and set(hashes) != {expected.hashes}:
            differing = ["values of columns differ from what was written"]
        return differing

    def checkpoint(self) -> None:
        """Checkpoint: merge the engine's log into the file. The engine does so itself when the log is long, and at close."""
        with self._reopening_after_errors(), self._session.use() as connection:
            self._checkpoint(connection)

    def cypher(
        self, query: str, params: Mapping[str, Any], *, gives_way: Callable[[], bool] | None = None
    ) -> Rows | Callable[[], Rows]:
        """Run a user's read-only query, as `GraphEngine` says. A long one that gives way runs again on a copy, with its full time limit."""
        check_parameters(checked := check_read_only(query), params)
        with explaining(), self._session.lent():
            if gives_way is None:
                return self._file.query(checked, params)
            until = time.monotonic() + self.patience_s
            return self._file.query(
                checked, params, lambda: time.monotonic() > until and (gives_way() or self._session.is_wanted())
            )

    def _write(self, connection: Connection, stored: Sequence[Change], state: Mapping[str, Any]) -> None:
        sums = self._written().after(stored, lambda texts: hash_sum(connection, texts))
        changes = replaced(connection, stored)
        copies = self._writer.copies(self._path, changes)
        # without a checkpoint a COPY that fails leaves the engine unable to close
        if copies:
            self._checkpoint(connection)
            changes += again_beside(connection, changes)  # the COMMIT of a COPY is a checkpoint too
        with connection.transaction():
            self._writer.write(connection, changes, copies=copies)
            self._write_state(connection, state, sums)
        self._sums = sums
        if not copies:  # else the recreated edges are among the changes
            self._anchors.note(changes)
        if copies or self._file.has_long_log():
            self._checkpoint(connection, has_copied=bool(copies))

    @contextmanager
    def _reopening_after_errors(self) -> Iterator[None]:
        """Open the file again if a write fails, because Kùzu (0.11.3) may crash if it reads after a ROLLBACK."""
        try:
            yield
        except BaseException:
            self._is_spoilt = True
            self._session.reopen()
            raise

    def _open_file(self) -> Connection:
        is_new = self._file.before_opening()
        self._sums = None
        self._is_spoilt = False
        self._anchors = EdgeAnchors(is_known=not self._file.has_log())
        connection = self._connected(self._path, self._file.pool_bytes())
        if is_new:
            self._checkpoint(connection)
        return connection

    def _connected(self, path: Path, pool_bytes: int) -> Connection:
        """Open a database, and create missing tables."""
        connection = Connection(self._vendor, path, pool_bytes=pool_bytes)
        try:
            if missing := creation_of_tables({row[1] for row in connection.run("CALL show_tables() RETURN *")}):
                connection.create(missing)
        except GraphError:
            with suppress(GraphError):  # the first error is more informative
                connection.close()
            raise
        return connection

    def _checkpoint(self, connection: Connection, *, has_copied: bool = False) -> None:
        """Merge the log into the file. The log that a killed process leaves is not trusted, so it is kept short."""
        if not has_copied:  # a COPY writes to the file
            self._file.before_checkpoint()
        if again := self._anchors.again(connection):
            with connection.transaction():
                self._writer.write(connection, again, copies=False)
        connection.checkpoint()
        self._anchors.clear()
        self._file.after_checkpoint()

    def _close_file(self, connection: Connection) -> None:
        takes_log = not self._is_spoilt and self._file.can_take_log()
        try:
            if takes_log:
                self._checkpoint(connection)
        finally:
            connection.leave_log()
            connection.close()
        self._file.after_closing()

    def _read(self, query: str, params: Mapping[str, Any]) -> list[list[Any]]:
        with self._session.use() as connection:
            return connection.run(query, params)

    def _written(self) -> Sums:
        """Return the sums of what was written."""
        if self._sums is None:
            self.state()
        return self._sums or Sums()

    def _write_state(self, connection: Connection, state: Mapping[str, Any], sums: Sums) -> None:
        """Write the projection's state record."""
        sealed = self._seal.sealed({"state": dict(state), "sums": sums.as_row()})
        connection.run(*state_statement(int(state["seq"]), sealed.decode()))
