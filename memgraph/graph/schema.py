"""The graph's tables, read from the DDL in ``schema/*.cypher``, and rows as the engine takes them.

Whole tables are JSON files for COPY, changed rows plain statements. A missing field is '' in a STRING column, [] in a list, and null in any
other (``schema/001_nodes.cypher`` says why).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import orjson

from memgraph import assets
from memgraph.ports import Key, Row

_STATEMENT = re.compile(r"CREATE (NODE|REL) TABLE (\w+) \((.*)\)$", re.DOTALL)
_ENDS = re.compile(r"FROM (\w+) TO (\w+)\s*,?\s*")
_TYPE = re.compile(r"\w+(?:\[\])?")
T = TypeVar("T")
Statement = tuple[str, dict[str, Any]]
"""A statement and its parameters, all of them JSON."""
PART_VALUES = 500_000
"""Values in one file, of some 4,000 memories or 250,000 edges: the next one is made while the engine copies it."""
_VALUES_A_STATEMENT = 50_000
_EMPTY_PART: dict[str, Any] = {"STRING[]": "", "BOOLEAN[]": False, "DOUBLE[]": 0.0, "INT64[]": 0}
"""Placeholder in a list for a part that a record lacks, because lists hold no nulls."""


@dataclass(frozen=True, eq=False)
class Table:
    """A node or edge table: the statement that creates it, the type of each column in the order of the DDL, and the tables at an edge's ends."""

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


def columns_of(table: Table, row: Row) -> Row:
    """Return a row's fields as columns: a list of records becomes one list for each part of the record."""
    split = row.keys() - table.columns.keys()
    if not split:
        return row
    columns = dict(row)
    for name in split:
        value = columns.pop(name)
        for part, column in table.parts[name].items():
            nothing = _EMPTY_PART[table.columns[column]]
            columns[column] = [item.get(part, nothing) for item in value]
    return columns


def write_part(table: Table, rows: Iterable[tuple[Key, Row]], path: Path) -> list[str]:
    """Write rows of a table, not none, to a JSON file; return the columns in it: those of nodes that no row sets are left out."""
    if table.ends:
        part = [{"from": key[0], "to": key[1], **row} for key, row in rows]
        names = ["from", "to", *table.columns]
    else:
        part = [columns_of(table, row) for _, row in rows]
        used = set().union(*part)
        names = [name for name in table.columns if name in used]
    nothing = {name: value for name in names if (value := _nothing(table, name)) is not None}
    part[0] = {**dict.fromkeys(names), **nothing, **part[0]}  # the engine infers the columns from the first row
    path.write_bytes(orjson.dumps([{**nothing, **row} for row in part] if nothing else part))
    return names


def matching(table: Table, keys: Iterable[Key], rest: str) -> Iterator[Statement]:
    """Return the statements that match the rows `x` of these keys, each one pass over the table, and do the rest."""
    for part in parts(table, map(_ends, keys), _VALUES_A_STATEMENT):
        yield f"UNWIND $rows AS r MATCH {_pattern(table)}{rest}", {"rows": part}


def upserts(table: Table, rows: Iterable[tuple[Key, Row]], *, unless_there: bool = False) -> Iterator[Statement]:
    """Return the statements that set every column of rows, each one pass over the table; of nodes `unless_there` only of those that are new."""
    for part in parts(table, (_row(table, *one) for one in rows), _VALUES_A_STATEMENT):
        yield _upsert(table, part, "ON CREATE SET" if unless_there else "SET")


def unset(table: Table, names: Iterable[str]) -> tuple[str, str]:
    """Return what sets columns of a node `x` to what they are by default, and " AND …" of the condition that they are that."""
    kinds = {name: table.columns[name] for name in names}
    are = (
        f" AND {f'x.{name} IS NULL' if _literal(kind) == 'NULL' else f'size(x.{name}) = 0'}"
        for name, kind in kinds.items()
    )
    return ", ".join(f"x.{name} = {_literal(kind)}" for name, kind in kinds.items()), "".join(are)


def _upsert(table: Table, rows: list[Row], then: str) -> Statement:
    """Return the statement that sets every column of these rows; what no row sets is a literal, because it has no type."""
    used = {name for row in rows for name in row}
    values = {
        name: _value(table, name) if name in used else _literal(kind)
        for name, kind in table.columns.items()
        if name != "id"
    }
    assignments = ", ".join(f"x.{name} = {value}" for name, value in values.items())
    nothing = {name: _nothing(table, name) for name in used}
    if table.ends is None:
        match = f"MERGE (x:{table.name} {{id: r.id}})"
    else:
        source, target = table.ends
        of = " {memory_id: r.memory_id}" if "memory_id" in table.columns else ""
        match = f"MATCH (a:{source} {{id: r.from}}), (b:{target} {{id: r.to}}) MERGE (a)-[x:{table.name}{of}]->(b)"
    query = f"UNWIND $rows AS r {match}{f' {then} ' if assignments else ''}{assignments}"
    return query, {"rows": [{**nothing, **row} for row in rows]}


def _pattern(table: Table) -> str:
    if table.ends is None:
        return f"(x:{table.name} {{id: r.id}})"
    return f"(:{table.ends[0]} {{id: r.from}})-[x:{table.name}]->(:{table.ends[1]} {{id: r.to}})"


def _ends(key: Key) -> Row:
    return {"id": key} if isinstance(key, str) else {"from": key[0], "to": key[1]}


def _row(table: Table, key: Key, row: Row) -> Row:
    return columns_of(table, row) if table.ends is None else {"from": key[0], "to": key[1], **row}


def _nothing(table: Table, name: str) -> Any:
    kind = table.columns.get(name, "")
    return [] if kind.endswith("[]") else "" if kind == "STRING" else None


def _literal(kind: str) -> str:
    return f"CAST([] AS {kind})" if kind.endswith("[]") else "''" if kind == "STRING" else "NULL"


def _value(table: Table, name: str) -> str:
    return f"CAST(r.{name} AS TIMESTAMP)" if table.columns[name] == "TIMESTAMP" else f"r.{name}"


def parts(table: Table, rows: Iterable[T], values: int) -> Iterator[list[T]]:
    """Divide rows of a table into parts of so many values."""
    rows = iter(rows)
    while part := list(islice(rows, values // (len(table.columns) + 2))):
        yield part
