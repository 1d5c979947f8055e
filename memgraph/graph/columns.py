"""Converts rows to the engine's columns and back.

Rows hold canonical time strings, the engine naive UTC datetimes. Rows hold lists of records, the engine one list for each part
of the record. A missing field is '' in a STRING column, [] in a list, and null in any other (``schema/001_nodes.cypher`` says why).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import orjson

from memgraph.errors import GraphError
from memgraph.graph.schema import Table
from memgraph.model.memory import Role, fields_with
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Row

OF_USE = tuple(sorted(fields_with(Role.USE)))
"""Columns changed by each use of a memory. They are not part of its record: to change one, the engine rewrites 100,000 records."""
BETWEEN = "\x1f"
"""Separates the texts of columns."""
_PLAIN = frozenset({str, int, float, bool, datetime})
_EMPTY_PART: dict[str, Any] = {"STRING[]": "", "BOOLEAN[]": False, "DOUBLE[]": 0.0}
"""Placeholder in a list for a part that a record lacks, because lists hold no nulls."""


def columns_of(table: Table, row: Row) -> Row:
    """Return a row's fields as columns."""
    columns: Row = {}
    for name, value in row.items():
        if name in table.columns:
            columns[name] = value
        else:
            for part, column in table.parts[name].items():
                nothing = _EMPTY_PART[table.columns[column]]
                columns[column] = [item.get(part, nothing) for item in value]
    return columns


def record_of(row: Row) -> bytes:
    """Return a memory's record: its row as JSON text, without the columns that a use changes."""
    kept = {name: value for name, value in row.items() if name not in OF_USE}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)


def visible(table: Table, row: Row) -> Row:
    """Return the row that `from_engine` makes of this row's columns: all fields that are set."""
    return {name: value for name, value in columns_of(table, row).items() if value != ""}


def row_text(record: str, used: Mapping[str, Any]) -> str:
    """Return a memory's row as JSON text from its record and the columns that a use changes, without parsing the record."""
    rest = orjson.dumps(from_engine(used)).decode()
    return f"{record[:-1]},{rest[1:]}" if rest != "{}" else record


def nothing_of(kind: str) -> Any:
    """Return the value of an unset column of this type."""
    return [] if kind.endswith("[]") else "" if kind == "STRING" else None


def to_param(value: Any, kind: str) -> Any:
    """Return a column's value as a query parameter; None for an unset column."""
    if value is None:
        return nothing_of(kind)
    return from_iso(value).replace(tzinfo=None) if kind == "TIMESTAMP" else value


def from_engine(values: Mapping[str, Any]) -> Row:
    """Return the engine's values as a row of those that are set.

    Raises
    ------
    GraphError
        A value cannot be one that was written.
    """
    row: Row = {}
    for name, value in values.items():
        if value is None or value == "" or value == [] or name.startswith("_"):
            continue
        if isinstance(value, datetime):
            try:
                row[name] = to_iso(value)
            except ValueError as error:
                raise GraphError(f"a time in the column {name} cannot be read", engine_says=str(error)) from None
        else:
            row[name] = value
    return row


def type_of(value: Any) -> Any:
    """Return a parameter's type: its class or, for a list, that of its items; None if the value does not determine the type."""
    kind = type(value)
    if kind in _PLAIN:
        return kind
    if kind is list:
        kinds = set(map(type, value))
        return (list, kinds.pop()) if len(kinds) == 1 and kinds <= _PLAIN else None
    return None


def text_of(table: Table, row: Row) -> str:
    """Return a row's columns as the text that the engine makes of them with `text_expressions`."""
    texts, places = _layout(table)
    filled = list(texts)
    for name, value in columns_of(table, row).items():
        place, as_text = places[name]
        filled[place] = as_text(value)
    return BETWEEN.join(filled)


def text_expressions(table: Table, alias: str, names: Iterable[str]) -> list[str]:
    """Return Cypher expressions that convert columns to text as `text_of` does."""
    return [
        f"{alias}.{name}" if table.columns[name] == "STRING" else f"coalesce(CAST({alias}.{name} AS STRING), '')"
        for name in names
    ]


def _time_as_text(value: str) -> str:
    whole, fraction = value[:10] + " " + value[11:19], value[20:23].rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


_AS_TEXT: dict[str, Callable[[Any], str]] = {
    "STRING": str,
    "TIMESTAMP": _time_as_text,
    "BOOLEAN": str,
    "INT64": str,
    "DOUBLE": lambda value: f"{value:f}",
    "STRING[]": lambda items: f"[{','.join(items)}]",
    "BOOLEAN[]": lambda items: f"[{','.join(map(str, items))}]",
    "DOUBLE[]": lambda items: f"[{','.join(f'{item:f}' for item in items)}]",
}
"""How the engine casts a value of each type to STRING."""


@cache
def _layout(table: Table) -> tuple[tuple[str, ...], dict[str, tuple[int, Callable[[Any], str]]]]:
    kinds = table.columns.items()
    nothing = tuple("[]" if kind.endswith("[]") else "" for kind in table.columns.values())
    return nothing, {name: (place, _AS_TEXT[kind]) for place, (name, kind) in enumerate(kinds)}
