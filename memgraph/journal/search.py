"""Finding events by the bytes of their lines, without parsing the others: a fraction of the cost of reading the journal.

A match of the bytes only selects lines to parse. The form of a line is canonical (see `envelope`), so none is missed; text in a memory cannot
imitate a field, because its quotation marks are escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from memgraph.journal.closed.files import held
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.journal.segments import Line

_ID = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def lines_of(journal: Journal, type_: str, **beginnings: str) -> Iterator[Line]:
    """Iterate over the lines of events of a type, of which some field has a value that begins so; perhaps over some others."""
    marks = [_field("type", type_), *(_field(name, value, whole=False) for name, value in beginnings.items())]
    return (line for line in journal.lines() if all(mark in line.data for mark in marks))


def events_of(journal: Journal, wanted: Mapping[str, str | None]) -> Iterator[Event]:
    """Iterate over the events of some types, each verified on its own; perhaps over some others.

    Parameters
    ----------
    wanted : mapping of str to str or None
        For each type, a string that the events' payload must contain as a value; None: any.
    """
    marks = [(_field("type", type_), b"" if value is None else orjson.dumps(value)) for type_, value in wanted.items()]
    for line in journal.lines():
        if any(of_type in line.data and value in line.data for of_type, value in marks):
            yield journal.event(line)


def holds(journal: Journal, type_: str) -> bool:
    """Return whether the journal's files hold an event of a type, without reading their lines one by one."""
    mark = _field("type", type_)
    for name in journal.segments.names():
        with held(journal.folder, name) as data:
            if data.find(mark) >= 0:
                return True
    return False


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
    if len(needles) == 1:
        return [memory_id for needle, memory_id in needles.items() if needle in line.data]
    return [needles[named] for named in needles.keys() & set(_ID.findall(line.data))]


def payload_in(journal: Journal, line: Line) -> Any:
    """Return a line's payload as stored: it was verified when the journal was opened."""
    try:
        return orjson.loads(line.data)["payload"]
    except (ValueError, KeyError, TypeError):  # changed since: verification will report it
        return journal.event(line).content


def is_of(line: Line, type_: str) -> bool:
    """Return whether a line may be an event of a type; False for certain."""
    return _field("type", type_) in line.data


def _field(name: str, value: str, *, whole: bool = True) -> bytes:
    """Return a field as it stands in a line, or its beginning."""
    written = orjson.dumps({name: value})[1:-1]
    return written if whole else written[:-1]
