"""Finding events without validating the others: by their type, which is indexed, and by the bytes of their payloads.

A match of the bytes only selects lines to parse. A payload is canonical JSON, so none is missed; text in a memory cannot imitate a field,
because its quotation marks are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import orjson

from memgraph.journal.envelope import Event, Line
from memgraph.journal.journal import Journal

_ID = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def lines_of(journal: Journal, type_: str, **beginnings: str) -> Iterator[Line]:
    """Iterate over the lines of events of a type, of which some field has a value that begins so; perhaps over some others."""
    marks = [_beginning(name, value) for name, value in beginnings.items()]
    return (line for line in journal.lines_of(type_) if all(mark in (line.payload or b"") for mark in marks))


def events_of(journal: Journal, wanted: Mapping[str, str | None]) -> Iterator[Event]:
    """Iterate in order over the events of some types that hold a string as a value (None: any), verified; perhaps over some others."""
    marks = {type_: b"" if value is None else orjson.dumps(value) for type_, value in wanted.items()}
    for line in sorted(journal.lines_of(*wanted), key=lambda line: line.seq):
        if marks[line.type] in (line.payload or b""):
            yield journal.event(line)


def holds(journal: Journal, type_: str) -> bool:
    """Return whether the journal holds an event of a type."""
    return next(journal.lines_of(type_), None) is not None


def histories(journal: Journal, memory_ids: Sequence[str]) -> dict[str, list[Event]]:
    """Return the events that refer to some memories, by id; one pass over the journal for any number of ids."""
    found: dict[str, list[Event]] = {memory_id: [] for memory_id in memory_ids}
    needles = {memory_id.encode(): memory_id for memory_id in memory_ids}
    for line in journal.lines() if needles else ():
        for named in named_in(line, needles):
            found[named].append(journal.event(line))
    return found


def named_in(line: Line, needles: Mapping[bytes, str]) -> list[str]:
    """Return the memories, of these by their ids in bytes, that a line names."""
    payload = line.payload or b""
    if len(needles) == 1:
        return [memory_id for needle, memory_id in needles.items() if needle in payload]
    return [needles[named] for named in needles.keys() & set(_ID.findall(payload))]


def _beginning(name: str, value: str) -> bytes:
    """Return a field as it stands in a payload, without the end of its value."""
    return orjson.dumps({name: value})[1:-2]
