"""Writes changed rows to the engine: few by statement, many by COPY."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from memgraph.disk.files import as_graph_errors
from memgraph.errors import GraphError
from memgraph.graph.connection import KUZU, Connection, Vendor
from memgraph.graph.rows.loading import Loader, check_folder, load_arrow, load_json
from memgraph.graph.rows.statements import (
    creation_of_edges,
    edges_by_memory,
    edges_by_table,
    statement,
    statements_of,
)
from memgraph.graph.schema import tables
from memgraph.ports import Change, Progress

_MOST_SHAPES = 48
_TEXTS_A_HASH = 20_000
_BETWEEN_TEXTS = "\x1e"
_HASH = f"UNWIND string_split($texts, '{_BETWEEN_TEXTS}') AS text RETURN CAST(sum(hash(text)) AS STRING)"
_HASH_LIST = "UNWIND $texts AS text RETURN CAST(sum(hash(text)) AS STRING)"


@dataclass(frozen=True, slots=True)
class BulkLimits:
    """Numbers of rows from which rows are written by COPY.

    Attributes
    ----------
    new_rows : int
        New rows in one commit (about 250 memories with their edges). COPY is faster from 1,000 rows, but takes 200 MB that the
        engine keeps, and rewrites the end of every table twice.
    table_rows : int
        New rows of one table: fewer are created one by one.
    part_rows : int
        Rows copied at a time.
    large_bytes : int
        From this file size, about 30,000 memories, a commit that also changes rows copies nothing. With 100,000 memories, fifty
        changed ones and 3,000 copied rows in one commit fill a pool of 512 MB at COMMIT, after which the file cannot be read; either
        alone does no harm. Such a commit was not tried with only a larger pool.
    """

    new_rows: int = 3_000
    table_rows: int = 30
    part_rows: int = 25_000
    large_bytes: int = 150 << 20


def by_table(changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Group changes by table."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        found[change.table].append(change)
    return found


class RowWriter:
    """Writes changed rows through a connection, in the caller's transaction.

    Parameters
    ----------
    folder : Path
        Folder for temporary files.

    Raises
    ------
    ConfigError
        The engine cannot load files from there.
    """

    def __init__(self, vendor: Vendor, folder: Path, limits: BulkLimits) -> None:
        self._load: Loader = load_json if vendor is KUZU else load_arrow
        if vendor is KUZU:
            check_folder(folder)
        self._folder = folder
        self._limits = limits

    def copies(self, path: Path, changes: Sequence[Change]) -> bool:
        """Return whether the new rows among changes to the file at `path` are to be copied.

        In a large file the engine's buffer pool is too small for a COPY together with changed rows.
        """
        if sum(change.old is None for change in changes) < self._limits.new_rows:
            return False
        is_large = path.exists() and path.stat().st_size > self._limits.large_bytes
        return not (
            is_large
            and any(one.old is not None and (one.table == "Memory" or isinstance(one.key, tuple)) for one in changes)
        )

    def write(self, connection: Connection, changes: Sequence[Change], *, copies: bool) -> None:
        """Write changes returned by `memgraph.graph.rows.replacing.replaced`; with `copies`, write new rows by COPY."""
        for query, params in statements_of(changes, all_new_are_copied=copies):
            connection.run(query, params)
        new = [change for change in changes if change.old is None]
        if copies:
            self.copy(connection, new)
            return
        for group in edges_by_memory([change for change in new if isinstance(change.key, tuple)]):
            for part in [group] if _is_cheap(connection, group) else edges_by_table(group):
                _add_edges(connection, part)

    def copy(self, connection: Connection, changes: Sequence[Change], progress: Progress | None = None) -> None:
        """Write new rows, nodes before edges: by COPY if a table has many, else by statement."""
        rows: Mapping[str, Sequence[Change]] = by_table(changes)
        total, done = len(changes), 0
        with as_graph_errors(self._folder), TemporaryDirectory(prefix="load-", dir=self._folder) as folder:
            for name, table in tables().items():
                own = rows.get(name, ())
                if len(own) < self._limits.table_rows:
                    for change in own:
                        if table.ends:
                            _add_edges(connection, [change])
                        else:
                            connection.run(*statement(change))
                    done += len(own)
                    continue
                for start in range(0, len(own), self._limits.part_rows):
                    part = own[start : start + self._limits.part_rows]
                    self._load(connection, table, part, Path(folder))
                    done += len(part)
                    if progress:
                        progress(done, total)


def hash_sum(connection: Connection, texts: Sequence[str]) -> int:
    """Return the sum of the engine's hashes of texts."""
    total = 0
    for start in range(0, len(texts), _TEXTS_A_HASH):
        part = list(texts[start : start + _TEXTS_A_HASH])
        joined = _BETWEEN_TEXTS.join(part)  # splitting one text takes a third of the time of passing a list
        if joined.count(_BETWEEN_TEXTS) == len(part) - 1:
            [[found]] = connection.run(_HASH, {"texts": joined})
        else:
            [[found]] = connection.run(_HASH_LIST, {"texts": part})
        total += int(found)
    return total


def _is_cheap(connection: Connection, group: Sequence[Change]) -> bool:
    """Return whether a memory's edges are created in one statement, in a third of the time of one statement per table.

    The engine keeps a statement's plan, half a megabyte for sixteen edges, as long as it is open. So this is done only for the
    first statement shapes, which are also the most frequent.
    """
    shape = tuple(change.table for change in group)
    if shape not in connection.shapes and len(connection.shapes) < _MOST_SHAPES:
        connection.shapes.add(shape)
    return shape in connection.shapes


def _add_edges(connection: Connection, changes: Sequence[Change]) -> None:
    """Create new edges in one statement, which creates none if one end does not exist."""
    if connection.run(*creation_of_edges(changes)) != [[1]]:
        shown = ", ".join(f"{change.table} {' → '.join(change.key)}" for change in changes)
        raise GraphError(f"an edge has no node at one of its ends: {shown}")
