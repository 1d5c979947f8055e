"""Values on their way into and out of the engine.

Rows hold canonical time strings, the engine naive UTC datetimes. Rows hold lists of records, the engine records of equally
long lists: it loses a column of lists of structs whose first rows on disk had none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Row

_PLAIN = frozenset({str, int, float, bool, datetime})


def to_engine(value: Any, kind: str) -> Any:
    """Return a row's value as a query parameter of a column's type."""
    if value is None:
        return None
    if kind == "TIMESTAMP":
        return from_iso(value).replace(tzinfo=None)
    return to_json(value, kind)


def to_json(value: Any, kind: str) -> Any:
    """Return a row's value as it stands in a JSON file for COPY, where times are strings."""
    if not kind.startswith("STRUCT"):
        return value
    inside = kind[kind.index("(") + 1 : kind.rindex(")")]
    names = [field.split()[0] for field in inside.split(",")]
    return {name: [item.get(name) for item in value] for name in names} if value else None


def from_engine(values: Mapping[str, Any]) -> Row:
    """Return a row from the engine's values, without what is not set."""
    row: Row = {}
    for name, value in values.items():
        if name.startswith("_"):
            continue
        own = _from_engine(value)
        if own is None or own == []:
            continue
        row[name] = own
    return row


def _from_engine(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, dict):
        lists = {name: items for name, items in value.items() if items is not None}
        if not lists:
            return None
        return [
            {name: part for name, part in zip(lists, parts, strict=True) if part is not None}
            for parts in zip(*lists.values(), strict=True)
        ]
    return value


def type_of(value: Any) -> Any:
    """Return what tells a parameter's type from others: its class, that of a list's items, those of a record's fields."""
    kind = type(value)
    if kind in _PLAIN:
        return kind
    if kind is list:
        kinds = set(map(type, value))
        return (list, kinds.pop()) if len(kinds) == 1 and kinds <= _PLAIN else None
    if kind is dict:
        types = tuple((name, type_of(part)) for name, part in value.items())
        return None if not types or any(part is None for _, part in types) else types
    return None
