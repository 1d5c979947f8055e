"""The result of a query: a list of dictionaries with column types, convertible to other libraries' tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from memgraph.errors import MissingExtraError, QueryError
from memgraph.model.timestamps import from_iso, to_iso

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    import pyarrow as pa

Row = dict[str, Any]

_LISTS = re.compile(r"(\[\d*\])+$")
_INT64 = range(-(2**63), 2**63)
_KINDS = {
    **dict.fromkeys(("BOOL", "BOOLEAN"), "boolean"),
    **dict.fromkeys("INT8 INT16 INT32 INT64 INT128 UINT8 UINT16 UINT32 UINT64 SERIAL".split(), "integer"),
    **dict.fromkeys("FLOAT DOUBLE DECIMAL".split(), "number"),
    **dict.fromkeys("TIMESTAMP TIMESTAMP_TZ TIMESTAMP_NS TIMESTAMP_MS TIMESTAMP_SEC".split(), "time"),
    "DATE": "date",
    "INTERVAL": "duration",
    **dict.fromkeys("STRING UUID".split(), "text"),
}
"""Maps the engine's scalar types to types of a table; all others become JSON text."""
_PANDAS = {
    "boolean": "boolean",
    "integer": "Int64",
    "number": "Float64",
    "time": "datetime64[ms, UTC]",
    "duration": "timedelta64[us]",
    "text": "string",
    "json": "string",
}


class Column(NamedTuple):
    """A column: its name and its Cypher type, such as ``STRING[]``."""

    name: str
    type: str


class Rows(list[Row]):
    """Rows of a query, each a dictionary of plain data; times are strings such as ``2026-02-19T08:30:00.000Z``.

    Attributes
    ----------
    columns : tuple of Column
        In order; known even if there are no rows.

    Notes
    -----
    In other libraries' tables, times are UTC timestamps, whole numbers have 64 bits, and lists of such values are lists.
    Records, nodes, edges and maps are JSON text.
    """

    def __init__(self, rows: Iterable[Row] = (), *, columns: Iterable[Column] = ()) -> None:
        super().__init__(rows)
        self.columns = tuple(columns)

    def arrow(self) -> pa.Table:  # type: ignore[name-defined]
        """Return the rows as a table of Apache Arrow.

        Raises
        ------
        MissingExtraError
            pyarrow is not installed.
        QueryError
            A whole number needs more than 64 bits.
        """
        library = _library("pyarrow", "Arrow tables and Parquet files", extra="parquet")
        types = {
            "boolean": library.bool_(),
            "integer": library.int64(),
            "number": library.float64(),
            "time": library.timestamp("ms", tz="UTC"),
            "date": library.date32(),
            "duration": library.duration("us"),
        }
        typed = self._typed(types, library.string(), library.list_)
        arrays = [library.array(self._values(column), type=own) for column, own in typed]
        return library.table(arrays, names=[column.name for column in self.columns])

    def polars(self) -> pl.DataFrame:
        """Return the rows as a data frame of Polars. Raises the same errors as `arrow`."""
        library = _library("polars", "Data frames of Polars", extra="polars")
        types = {
            "boolean": library.Boolean(),
            "integer": library.Int64(),
            "number": library.Float64(),
            "time": library.Datetime("ms", "UTC"),
            "date": library.Date(),
            "duration": library.Duration("us"),
        }
        typed = self._typed(types, library.String(), library.List)
        frame: pl.DataFrame = library.DataFrame(
            [library.Series(column.name, self._values(column), dtype=own) for column, own in typed]
        )
        return frame

    def pandas(self) -> pd.DataFrame:
        """Return the rows as a data frame of pandas, with nullable types. Raises the same errors as `arrow`."""
        library = _library("pandas", "Data frames of pandas", extra="pandas")
        series = {}
        for column in self.columns:
            kind, depth = _kind(column.type)
            own = "object" if depth else _PANDAS.get(kind, "object")
            series[column.name] = library.Series(self._values(column), dtype=own)
        frame: pd.DataFrame = library.DataFrame(series, columns=[column.name for column in self.columns])
        return frame

    def _typed(self, types: dict[str, Any], text: Any, list_of: Callable[[Any], Any]) -> Iterator[tuple[Column, Any]]:
        """Yield each column with its type in another library."""
        for column in self.columns:
            kind, depth = _kind(column.type)
            own = types.get(kind, text)
            for _ in range(depth):
                own = list_of(own)
            yield column, own

    def _values(self, column: Column) -> list[Any]:
        """Convert a column's values to those of a table."""
        kind, depth = _kind(column.type)
        return [_value(row[column.name], kind, depth, column.name) for row in self]


def json_text(value: Any) -> str:
    """Return a value as JSON text: times in ISO 8601, numbers that JSON cannot represent as text."""
    return json.dumps(jsonable(value), ensure_ascii=False)


def jsonable(value: Any) -> Any:
    """Return a row's value in a form that JSON can represent: a duration as seconds, other special values as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)
        case Decimal():
            return float(value)
        case datetime():
            return to_iso(value)
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes():
            return value.hex()
        case list():
            return [jsonable(item) for item in value]
        case dict():
            return {str(name): jsonable(item) for name, item in value.items()}
        case _:
            return str(value)


def _library(name: str, what: str, *, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(what, package=name, extra=extra) from None


def _kind(type_: str) -> tuple[str, int]:
    """Return a column's type in a table, and its depth of nested lists."""
    found = _LISTS.search(type_)
    depth = found[0].count("[") if found else 0
    scalar = type_[: found.start()] if found else type_
    kind = _KINDS.get(scalar.split("(")[0])
    return (kind, depth) if kind else ("json", 0)


def _value(value: Any, kind: str, depth: int, name: str) -> Any:
    if value is None:
        return None
    if depth:
        return [_value(item, kind, depth - 1, name) for item in value]
    match kind:
        case "integer":
            number = int(value)
            if number not in _INT64:
                raise QueryError(f"{number} in the column {name} needs more than 64 bits: cast it to DOUBLE or STRING")
            return number
        case "number":
            return float(value)
        case "time":
            return from_iso(value) if isinstance(value, str) else value
        case "text":
            return str(value)
        case "json":
            return json_text(value)
        case _:
            return value
