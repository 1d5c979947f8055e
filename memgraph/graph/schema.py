"""The graph's tables, read from the DDL in ``schema/*.cypher``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

from memgraph import assets

_STATEMENT = re.compile(r"CREATE (NODE|REL) TABLE (\w+) \((.*)\)$", re.DOTALL)
_ENDS = re.compile(r"FROM (\w+) TO (\w+)\s*,?\s*")
_TYPE = re.compile(r"\w+(?:\[\])?")


@dataclass(frozen=True, eq=False)
class Table:
    """A node or edge table.

    Attributes
    ----------
    statement : str
        The statement that creates the table.
    columns : dict of str to str
        Type of each column, in the order of the DDL.
    ends : tuple of str, or None
        For an edge table, the tables at its ends.
    """

    name: str
    statement: str
    columns: dict[str, str]
    ends: tuple[str, str] | None = None

    @cached_property
    def parts(self) -> dict[str, dict[str, str]]:
        """The columns of each field that is a list of records: ``{field: {part of the record: column}}``."""
        found: dict[str, dict[str, str]] = {}
        for column, kind in self.columns.items():
            if kind.endswith("[]"):
                for place in (match.start() for match in re.finditer("_", column)):
                    found.setdefault(column[:place], {})[column[place + 1 :]] = column
        return found


@cache
def tables() -> dict[str, Table]:
    """Return every table by name, in the order of the DDL: nodes before the edges between them."""
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
            types = {column: _type(kind, name) for column, kind in columns.items()}
            found[name] = Table(name, statement, types, (ends[1], ends[2]) if ends else None)
    return found


def _type(declared: str, table: str) -> str:
    """Return a column's type without its default."""
    match = _TYPE.match(declared)
    if match is None:
        raise ValueError(f"schema/: {table} has a column of no type: {declared}")
    return match[0]


def _split(body: str) -> list[str]:
    """Split at commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(body):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(body[start:index].strip())
            start = index + 1
    return [part for part in (*parts, body[start:].strip()) if part]
