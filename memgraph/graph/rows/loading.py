"""Loads new rows into the engine by COPY, in the format that the engine reads."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import orjson

from memgraph.errors import ConfigError, MissingExtraError
from memgraph.graph.columns import columns_of, nothing_of, to_param
from memgraph.graph.connection import Connection
from memgraph.graph.schema import Table
from memgraph.ports import Change, Row

_ROWS_A_WRITE = 10_000
_ENDS = ("from", "to")


class Loader(Protocol):
    """Copies new rows of one table. A missing field is '' in a STRING column, [] in a list, and null in any other."""

    def __call__(self, connection: Connection, table: Table, changes: Sequence[Change], folder: Path) -> None:
        """Copy the rows; `folder` is for temporary files."""
        ...


def load_json(connection: Connection, table: Table, changes: Sequence[Change], folder: Path) -> None:
    """Copy rows from a JSON file: it keeps strings and lists as they are, and needs no further library."""
    names, rows = _rows(table, changes)
    nothing = {name: nothing_of(table.columns.get(name, "")) for name in names}
    nothing = {name: value for name, value in nothing.items() if value is not None}
    rows[0] = {**dict.fromkeys(names), **nothing, **rows[0]}  # the engine infers the columns from the first row
    path = folder / f"{table.name}.json"
    with path.open("wb") as file:
        for start in range(0, len(rows), _ROWS_A_WRITE):
            part = [{**nothing, **row} for row in rows[start : start + _ROWS_A_WRITE]]
            file.write(b"," if start else b"[")
            file.write(memoryview(orjson.dumps(part))[1:-1])
        file.write(b"]")
    connection.run(f"COPY {_target(table, names)} FROM {quoted(path)}")
    path.unlink()


def load_arrow(connection: Connection, table: Table, changes: Sequence[Change], folder: Path) -> None:  # noqa: ARG001
    """Copy rows from an Arrow table.

    Raises
    ------
    MissingExtraError
        pyarrow is not installed.
    """
    try:
        pa: Any = import_module("pyarrow")
    except ImportError:
        raise MissingExtraError("Bulk writes to Ladybug", package="pyarrow", extra="ladybug") from None
    scalars = {
        "STRING": pa.string(),
        "TIMESTAMP": pa.timestamp("us"),
        "BOOLEAN": pa.bool_(),
        "INT64": pa.int64(),
        "DOUBLE": pa.float64(),
    }
    names, rows = _rows(table, changes)
    arrays = {}
    for name in names:
        kind = table.columns.get(name, "STRING")
        own = scalars[kind.removesuffix("[]")]
        values = [to_param(row.get(name), kind) for row in rows]
        arrays[name] = pa.array(values, type=pa.list_(own) if kind.endswith("[]") else own)
    connection.run(f"COPY {_target(table, names)} FROM $rows", {"rows": pa.table(arrays)})


def _rows(table: Table, changes: Sequence[Change]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns to copy, and the rows. For nodes, columns that no row sets are left out and get their defaults."""
    rows: list[Row] = [columns_of(table, change.new or {}) for change in changes]
    if table.ends:
        ends = [dict(zip(_ENDS, change.key, strict=True)) for change in changes]
        return [*_ENDS, *table.columns], [{**end, **row} for end, row in zip(ends, rows, strict=True)]
    used = set().union(*rows)
    return [name for name in table.columns if name in used], rows


def _target(table: Table, names: Sequence[str]) -> str:
    return table.name if table.ends else f"{table.name}({', '.join(names)})"


def check_folder(path: Path) -> None:
    """Raise `ConfigError` if COPY would misread the paths of files in a folder as patterns."""
    if any(char in str(path) for char in "*?["):
        raise ConfigError(
            f"{path}: Kùzu interprets *, ? and [ in a path as patterns; move the store to another directory"
        )


def quoted(path: Path) -> str:
    """Return a path as COPY expects it."""
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
