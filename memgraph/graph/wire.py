"""The protocol between a process and its child: frames of JSON, with tags for values that JSON cannot represent.

Imports little, because the child imports it at its start, for which a query waits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from memgraph.model.timestamps import to_iso

_KIND = "$kind"
_LENGTH_BYTES = 4
_MOST_DEEP = 100
_INT64 = range(-(2**63), 2**63)
_MADE: dict[str, Callable[[Any], Any]] = {
    "map": lambda pairs: {unpack(key): unpack(value) for key, value in pairs},
    "int": int,
    "float": float,
    "bytes": bytes.fromhex,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "UUID": UUID,
    "Decimal": Decimal,
}


def frame(message: bytes) -> bytes:
    """Return a message prefixed with its length."""
    return len(message).to_bytes(_LENGTH_BYTES) + message


def taken(buffer: bytearray) -> bytes | None:
    """Remove the first whole message from a buffer and return it; None if there is none yet."""
    end = _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES])
    if len(buffer) < max(end, _LENGTH_BYTES):
        return None
    message = bytes(buffer[_LENGTH_BYTES:end])
    del buffer[:end]
    return message


def received(descriptor: int) -> bytes | None:
    """Wait for a whole message on a descriptor; return None at its end."""
    buffer = bytearray()
    while (message := taken(buffer)) is None:
        lacking = _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES]) - len(buffer)
        part = os.read(descriptor, lacking if len(buffer) >= _LENGTH_BYTES else _LENGTH_BYTES - len(buffer))
        if not part:
            return None
        buffer += part
    return message


def encoded(value: Any) -> bytes:
    """Return plain data as JSON, which `decoded` converts back to equal data; raise `TypeError` or `ValueError` for what no query takes."""
    return orjson.dumps(_packed(value, 0))


def decoded(message: bytes) -> Any:
    """Return the data that a message holds."""
    value = orjson.loads(message)
    return unpack(value) if f'"{_KIND}"'.encode() in message else value


def plain(value: Any) -> Any:
    """Return a query result's value as plain data: times as canonical strings, nodes and edges without internal fields, a path as nodes and edges."""
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, dict):
        if value.keys() == {"_nodes", "_rels"}:
            return {"nodes": plain(value["_nodes"]), "edges": plain(value["_rels"])}
        is_node = "_label" in value or "_LABEL" in value  # the spelling of Kùzu and of Ladybug
        hidden = {"record"} if is_node else ()  # the whole row again, as text
        return {
            name: plain(item)
            for name, item in value.items()
            if not (isinstance(name, str) and name.startswith("_")) and name not in hidden
        }
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def unpack(value: Any) -> Any:
    """Return the value that was packed."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if isinstance(value, dict):
        if _KIND in value:
            return _MADE[value[_KIND]](value["value"])
        return {name: unpack(item) for name, item in value.items()}
    return value


def _packed(value: Any, depth: int) -> Any:
    """Return a value in a form that JSON can represent."""
    if depth > _MOST_DEEP:
        raise ValueError("is nested too deeply")
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)  # the text of a member of a string enumeration
        case int():
            return int(value) if value in _INT64 else _marked("int", str(int(value)))
        case float():
            return float(value) if math.isfinite(value) else _marked("float", str(float(value)))
        case list():
            return [_packed(item, depth + 1) for item in value]
        case dict():
            if _KIND not in value and all(type(name) is str for name in value):
                return {name: _packed(item, depth + 1) for name, item in value.items()}
            pairs = [[_packed(name, depth + 1), _packed(item, depth + 1)] for name, item in value.items()]
            return _marked("map", pairs)
        case datetime():  # the engine keeps UTC and would drop an offset
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return _marked("datetime", naive.isoformat())
        case date():
            return _marked("date", value.isoformat())
        case timedelta():
            return _marked("timedelta", [value.days, value.seconds, value.microseconds])
        case bytes():
            return _marked("bytes", value.hex())
        case UUID() | Decimal():
            return _marked(type(value).__name__, str(value))
        case _:
            raise TypeError(f"contains a {type(value).__name__}, which is not a valid query parameter")


def _marked(kind: str, value: Any) -> dict[str, Any]:
    return {_KIND: kind, "value": value}
