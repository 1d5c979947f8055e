"""The events of a journal as a purge reads them: as the journal holds them, without validating them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from memgraph.journal.segments import Line


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
        event = orjson.loads(line.data)
        head = event["head"]
        yield Record(
            head["seq"], head["commit_id"], head["type"], head["actor"], head["task_id"], event["payload"] or {}
        )


def strings_in(value: object) -> Iterator[str]:
    """Iterate over all strings of a JSON value, keys of objects included: a task's values are named by them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield str(name)
            yield from strings_in(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings_in(part)


def texts_of(record: Record) -> Iterator[str]:
    """Iterate over the contents of memories that an event states."""
    for name in ("memory", "changed"):
        content = record.content.get(name, {}).get("content")
        if content:
            yield content
    if candidate := record.content.get("candidate_content"):
        yield candidate
