"""Values on their way into and out of the engine: rows hold canonical time strings, the engine naive UTC datetimes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Row


def to_engine(value: Any, kind: str) -> Any:
    """Return a row's value as a query parameter of a column's type."""
    if value is None:
        return None
    if kind == "TIMESTAMP":
        return from_iso(value).replace(tzinfo=None)
    if kind.startswith("STRUCT"):
        return [_whole_struct(item, kind) for item in value]
    return value


def from_engine(values: Mapping[str, Any]) -> Row:
    """Return a row from the engine's values, without what is not set."""
    row: Row = {}
    for name, value in values.items():
        if value is None or value == [] or name.startswith("_"):
            continue
        row[name] = _from_engine(value)
    return row


def plain(value: Any) -> Any:
    """Return a query result's value as plain data: times as canonical strings."""
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if not name.startswith("_")}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def _from_engine(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, list) and isinstance(value[0], dict):
        return [{name: part for name, part in item.items() if part is not None} for item in value]
    return value


def _whole_struct(item: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a struct with all its fields: the engine infers the type of a list from each item."""
    inside = kind[kind.index("(") + 1 : kind.rindex(")")]
    return {name: item.get(name) for name in (field.split()[0] for field in inside.split(","))}
