"""The events of a journal as a purge reads them: as the journal holds them, without validating them again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

import orjson
from pydantic import BaseModel

from memgraph.journal.envelope import Line
from memgraph.model.events.registry import PAYLOADS

_MADE = frozenset({"model", "embedding_model"})
"""Fields of memgraph's own words."""
_MADE_TEXT = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
)
"""Ids, hashes and times."""


class Record(NamedTuple):
    """An event: what its head says of it, and its payload."""

    seq: int
    commit_id: str
    type: str
    actor: str
    task_id: str | None
    content: Mapping[str, Any]


def records(lines: Iterable[Line]) -> Iterator[Record]:
    """Iterate over the events of lines that were verified before."""
    for line in lines:
        head, content = orjson.loads(line.head), orjson.loads(line.payload or b"{}")
        yield Record(line.seq, head["commit_id"], line.type, head["actor"], head["task_id"], content)


def strings_in(value: object, name: str = "") -> Iterator[str]:
    """Iterate over the words in a JSON value: its strings, and the names of a task's values.

    Names of fields, fixed values such as a type, ids, hashes, times and names of embedding models are not words: a purge of “memory” or
    of “2026” would otherwise find every event.

    Parameters
    ----------
    name : str
        The field that holds the value.
    """
    if isinstance(value, str):
        is_made = name in _MADE or value in fixed_values().get(name, ())
        if not is_made and not _MADE_TEXT.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in fixed_values():
                yield str(key)
            yield from strings_in(part, str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings_in(part, name)


@cache
def fixed_values() -> Mapping[str, frozenset[str]]:
    """Return the names of the fields of all events, each with the values that it is restricted to, if it is."""
    found: dict[str, set[str]] = {}
    seen: set[type[BaseModel]] = set()
    waiting: list[type[BaseModel]] = list(PAYLOADS.values())
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        for name, field in model.model_fields.items():
            values = found.setdefault(name, set())
            for part in _parts(field.annotation):
                if get_origin(part) is Literal:
                    values |= {one for one in get_args(part) if isinstance(one, str)}
                elif isinstance(part, type) and get_origin(part) is None and issubclass(part, BaseModel):
                    waiting.append(part)
    return {name: frozenset(values) for name, values in found.items()}


def _parts(annotation: object) -> Iterator[object]:
    """Yield a type and, unless it is a literal, the types that it is made of."""
    yield annotation
    if get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _parts(part)


def texts_of(record: Record) -> Iterator[str]:
    """Iterate over the contents of memories that an event states."""
    for name in ("memory", "changed"):
        content = record.content.get(name, {}).get("content")
        if content:
            yield content
    if candidate := record.content.get("candidate_content"):
        yield candidate
