"""Changes as Cypher: the statements and files that bring rows into the graph, and what to ask for to get them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from memgraph.errors import GraphError
from memgraph.graph.schema import Table, tables
from memgraph.graph.values import from_engine, to_engine, to_json
from memgraph.ports import Change, Row

STATE_KEY = "projection"
RECORD = "record"
_ROWS_A_WRITE = 10_000
_EDGES_OF_A_MEMORY = 16
_EDGES_OF_A_TABLE = 8


def order(change: Change) -> int:
    """Edges go before their nodes, nodes come before their edges."""
    is_edge = isinstance(change.key, tuple)
    if change.new is None:
        return 0 if is_edge else 1
    return 3 if is_edge else 2


def statement(change: Change) -> tuple[str, dict[str, Any]]:
    """Return the statement, by primary key, that makes one change."""
    table = tables()[change.table]
    if change.old is None:
        row = _with_record(table, change.new or {})
        fields = ", ".join(f"{name}: ${name}" for name in row)
        return f"CREATE (:{table.name} {{{fields}}})", _values(table, row)
    if isinstance(change.key, tuple):
        source, target = table.ends or ("", "")
        pattern = f"MATCH (:{source} {{id: $_a}})-[x:{table.name}]->(:{target} {{id: $_b}})"
        params: dict[str, Any] = {"_a": change.key[0], "_b": change.key[1]}
    else:
        pattern, params = f"MATCH (x:{table.name} {{id: $_id}})", {"_id": change.key}
    if change.new is None:
        return f"{pattern} DELETE x", params
    old, new = _with_record(table, change.old), _with_record(table, change.new)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    assignments = ", ".join(f"x.{name} = ${name}" for name in changed)
    return f"{pattern} SET {assignments}", params | _values(table, {name: new.get(name) for name in changed})


def _values(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_engine(value, table.columns[name]) for name, value in row.items()}


def edges_by_memory(changes: Sequence[Change]) -> list[list[Change]]:
    """Group new edges by the memory that has them, at most sixteen together."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.key[1] if change.table == "NEXT" else change.key[0], []).append(change)
    return [part for group in groups.values() for part in _parts(group, _EDGES_OF_A_MEMORY)]


def edges_by_table(changes: Sequence[Change]) -> list[list[Change]]:
    """Group the edges of one memory by their table, at most eight together: some eighty shapes in all."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.table, []).append(change)
    return [part for group in groups.values() for part in _parts(group, _EDGES_OF_A_TABLE)]


def _parts(group: list[Change], most: int) -> list[list[Change]]:
    return [group[start : start + most] for start in range(0, len(group), most)]


def creation_of_edges(changes: Sequence[Change]) -> tuple[str, dict[str, Any]]:
    """Return one statement that makes these edges; each node is matched once, by its primary key."""
    aliases: dict[tuple[str, str], str] = {}
    params: dict[str, Any] = {}
    edges = []
    for number, change in enumerate(changes):
        table = tables()[change.table]
        ends = [aliases.setdefault(end, f"n{len(aliases)}") for end in zip(table.ends or (), change.key, strict=True)]
        names = {name: f"e{number}_{name}" for name in change.new or {}}
        params |= {names[name]: value for name, value in _values(table, change.new or {}).items()}
        fields = ", ".join(f"{name}: ${param}" for name, param in names.items())
        edges.append(f"({ends[0]})-[:{change.table}{f' {{{fields}}}' if fields else ''}]->({ends[1]})")
    nodes = [f"({alias}:{table} {{id: ${alias}}})" for (table, _), alias in aliases.items()]
    params |= {alias: key for (_, key), alias in aliases.items()}
    return f"MATCH {', '.join(nodes)} CREATE {', '.join(edges)} RETURN count(*)", params


def whole(table: str) -> str:
    """Return what to ask for to get a node's row: its record where the table has one."""
    return f"n.{RECORD}" if RECORD in tables()[table].columns else "n"


def to_row(value: Any) -> Row:
    """Return a row from what `whole` asked for."""
    try:
        row: Row = orjson.loads(value) if isinstance(value, str) else from_engine(value)
    except ValueError as error:
        raise GraphError("a row of the graph cannot be read", engine_says=str(error)) from None
    return row


def _with_record(table: Table, row: Row) -> Row:
    return {**row, RECORD: orjson.dumps(row).decode()} if RECORD in table.columns else row


def state_statement(state: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the statement that replaces the projection's state."""
    params = {"id": STATE_KEY, "seq": state["seq"], "state": orjson.dumps(state).decode()}
    return "MATCH (p:Projection {id: $id}) SET p.seq = $seq, p.state = $state", params


def write_json(path: Path, table: Table, changes: Sequence[Change]) -> None:
    """Write rows for COPY: JSON keeps strings, lists and structs as they are, and needs no further library."""
    structs = [name for name, kind in table.columns.items() if kind.startswith("STRUCT")]
    with path.open("wb") as file:
        for start in range(0, len(changes), _ROWS_A_WRITE):
            rows = [_json_row(table, change, structs) for change in changes[start : start + _ROWS_A_WRITE]]
            if start == 0:
                rows[0] = {**dict.fromkeys(table.columns), **rows[0]}  # from which the engine takes what to expect
            file.write(b"," if start else b"[")
            file.write(memoryview(orjson.dumps(rows))[1:-1])
        file.write(b"]")


def _json_row(table: Table, change: Change, structs: Sequence[str]) -> Row:
    new = change.new or {}
    if isinstance(change.key, tuple):
        return {"from": change.key[0], "to": change.key[1], **new}
    row = _with_record(table, new)
    return row | {name: to_json(row[name], table.columns[name]) for name in structs if name in row} if structs else row


def quoted(path: Path) -> str:
    """Return a path as COPY takes it."""
    text = str(path).replace("\\", "\\\\").replace("'", "\\'")
    if any(char in text for char in "*?["):
        raise GraphError(
            f"{path}: the engine takes *, ? and [ in a path for patterns; move the store to another directory"
        )
    return f"'{text}'"
