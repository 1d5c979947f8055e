"""The graph's tables, read from the DDL in ``schema/*.cypher``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from memgraph import assets

_STATEMENT = re.compile(r"CREATE (NODE|REL) TABLE (\w+) \((.*)\)$", re.DOTALL)
_ENDS = re.compile(r"FROM (\w+) TO (\w+)\s*,?\s*")


@dataclass(frozen=True, slots=True)
class Table:
    """A node or edge table: its statement, its columns with their types, and an edge's end tables."""

    name: str
    statement: str
    columns: dict[str, str]
    ends: tuple[str, str] | None = None


@cache
def tables() -> dict[str, Table]:
    """Return every table by name, in the order of the DDL."""
    found: dict[str, Table] = {}
    for text in assets.texts("schema", ".cypher").values():
        uncommented = re.sub(r"//[^\n]*", "", text)
        for statement in filter(None, (part.strip() for part in uncommented.split(";"))):
            match = _STATEMENT.match(statement)
            if match is None:
                raise ValueError(f"schema/: not a CREATE NODE TABLE or CREATE REL TABLE: {statement[:60]}")
            _, name, body = match.groups()
            ends = _ENDS.match(body)
            columns = dict(column.split(None, 1) for column in _split(body[ends.end() :] if ends else body))
            types = {column: kind.removesuffix(" PRIMARY KEY") for column, kind in columns.items()}
            found[name] = Table(name, statement, types, (ends[1], ends[2]) if ends else None)
    return found


def _split(body: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(body):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(body[start:index].strip())
            start = index + 1
    return [part for part in (*parts, body[start:].strip()) if part]
