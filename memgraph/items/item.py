"""An item, and its form as memories. Pure.

An item is one memory, or the parts of one text where it is longer than a memory: each part is linked to the one before. The
``content`` of the parts is the item's text, which is recalled and searched; their ``pattern`` is its record, cut into pieces: one line
of JSON about the item, then its value as JSON. Because of the record in it, no item is merged with another memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from memgraph.errors import InvalidInputError
from memgraph.index.columns import ITEM_SOURCE
from memgraph.model.base import MAX_NAME_CHARS, MAX_TEXT_CHARS, storable
from memgraph.model.ids import source_id
from memgraph.ports import Row

TAG = "namespace:"
"""Beginning of the tag with an item's namespace."""
EXPIRY = "its time to live has ended"
"""The ``invalidation_reason`` of an item that expires."""
MAX_PATH_CHARS = MAX_NAME_CHARS - len(TAG)

MEMORIES = "memgraph"
"""First label of the namespaces of memories that are no items."""
_SEEN = ("type", "outcome", "tags", "project_id", "session_id", "occurred_at", "confidence", "trust_class", "domain")

Namespace = tuple[str, ...]


class Item(NamedTuple):
    """A stored item. Times are ISO 8601, UTC."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: str
    updated_at: str
    memory_ids: list[str]
    """The memories that hold it, the first one first."""
    ttl: float | None = None
    """Minutes that it lives after it was put or last refreshed; None: it does not expire."""
    is_indexed: bool = True


class Found(NamedTuple):
    """An item that was found, with the score of its best part; None if nothing was asked.

    `has_evidence` is False of one that is only the most similar to the query.
    """

    item: Item
    score: float | None
    has_evidence: bool = True


class Put(NamedTuple):
    """A change to make: a value to store under a key; None deletes.

    Attributes
    ----------
    texts : sequence of str, optional
        What is recalled and searched. Default: the value as text, see `memgraph.items.items.text_of`.
    is_indexed : bool
        Whether it may be recalled and searched at all.
    ttl : float, optional
        Minutes after which it expires.
    """

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: Sequence[str] | None = None
    is_indexed: bool = True
    ttl: float | None = None


class Head(NamedTuple):
    """What the first line of a record says."""

    namespace: Namespace
    key: str
    parts: int
    put_at: str
    ttl: float | None
    is_indexed: bool


def part_id(namespace: Namespace, key: str, project: str | None, number: int = 0) -> str:
    """Return the id of an item's memory, or of a further part: equal places have equal ids."""
    place = orjson.dumps([ITEM_SOURCE, project or "", list(namespace), key]).decode()
    return source_id(place, number)


def path_of(namespace: Namespace, key: str) -> str:
    """Return an item's place for display."""
    return "/".join([*namespace, key])


def check_place(namespace: Namespace, key: str) -> None:
    """Reject a place that cannot be stored.

    Raises
    ------
    InvalidInputError
    """
    if not namespace or not all(isinstance(label, str) and label for label in namespace):
        raise InvalidInputError("must be texts, at least one", field="namespace", value=namespace)
    if not isinstance(key, str):
        raise InvalidInputError("must be a text", field="key", value=key)
    for field, text in (("namespace", "".join(namespace)), ("key", key)):
        try:
            storable(text)
        except ValueError as error:
            raise InvalidInputError(str(error), field=field, value=text) from None
    if len(path_of(namespace, key)) > MAX_PATH_CHARS:
        problem = f"may have at most {MAX_PATH_CHARS} characters together with the namespace"
        raise InvalidInputError(problem, field="key", value=key)


def dumped(value: Mapping[str, Any]) -> str:
    """Return a value as JSON.

    Raises
    ------
    InvalidInputError
        It has what JSON has not.
    """
    if not isinstance(value, Mapping):
        raise InvalidInputError("must be a mapping, or None to delete", field="value", value=value)
    try:
        return orjson.dumps(dict(value)).decode()
    except TypeError as error:
        raise InvalidInputError(f"cannot be written as JSON: {error}", field="value", value=value) from None


def pieces_of(head: Head, value: str) -> list[str]:
    """Return the record of an item, cut into what one field can hold."""
    line = orjson.dumps(head._asdict()).decode()
    whole = f"{line}\n{value}"
    return [whole[start : start + MAX_TEXT_CHARS] for start in range(0, len(whole), MAX_TEXT_CHARS)]


def head_of(row: Row) -> Head | None:
    """Return what the record of an item's first memory says; None of any other memory."""
    if row.get("source") != ITEM_SOURCE or not (record := row.get("pattern", "")).startswith("{"):
        return None
    try:
        fields = orjson.loads(record.partition("\n")[0])
        return Head(**{**fields, "namespace": tuple(fields["namespace"])})
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return None


def item_of(head: Head, rows: Sequence[Row]) -> Item | None:
    """Return the item that the rows of all its memories hold; None if one is missing or was changed."""
    if len(rows) != head.parts:
        return None
    record = "".join(row.get("pattern", "") for row in rows)
    try:
        value = orjson.loads(record.partition("\n")[2])
    except orjson.JSONDecodeError:
        return None
    ids = [row["id"] for row in rows]
    created = rows[0]["created_at"]
    return Item(head.namespace, head.key, value, created, max(created, head.put_at), ids, head.ttl, head.is_indexed)


def seen(row: Row) -> Item:
    """Return any memory as an item to read, in the namespace of its type."""
    value = {"text": row["content"], **{name: row[name] for name in _SEEN if row.get(name) not in (None, [])}}
    return Item((MEMORIES, row["type"]), row["id"], value, row["created_at"], row["updated_at"], [row["id"]])
