"""Changes as Cypher: the statements and files that bring rows into the graph, and what to ask for to get them back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from memgraph.errors import GraphError
from memgraph.graph.schema import Table, tables
from memgraph.graph.values import from_engine, to_engine, to_json
from memgraph.ports import Change, Key, Row

STATE_KEY = "projection"
RECORD = "record"
_OF_USE = ("access_count", "last_accessed_at", "relevance_anchor", "relevance_at")
"""What a use changes of a memory is no part of its record: to change one, the engine writes the records of 100,000 memories anew."""
_ROWS_A_WRITE = 10_000
_EDGES_OF_A_MEMORY = 16
_EDGES_OF_A_TABLE = 8
_LARGE_BYTES = 150 << 20
"""Some 30,000 memories. Among 100,000, fifty that change beside 3,000 rows that are copied fill a pool of 512 MB at COMMIT, after
which the file cannot be read; either alone is no matter. A larger pool alone was not tried with such a commit."""
_EDGES_GONE = 40
"""From so many edges on that go, one pass over their table beats look-ups by key."""


def _order(change: Change) -> int:
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
    """Group new edges by the memory that has them, or that has the evidence, at most sixteen together."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.key[1] if change.table in {"NEXT", "SUPPORTS"} else change.key[0], []).append(change)
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


def has_room_to_copy(path: Path, changes: Sequence[Change]) -> bool:
    """Whether the engine may copy new rows while others change: in a large file its buffer pool has no room for both."""
    is_large = path.exists() and path.stat().st_size > _LARGE_BYTES
    return not (
        is_large
        and any(one.old is not None and (one.table == "Memory" or isinstance(one.key, tuple)) for one in changes)
    )


def statements_of(changes: Sequence[Change], *, all_new_are_copied: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the statements that make changes, in an order that the engine takes; new edges, and what is copied, are left out."""
    gone: dict[str, list[Change]] = {}
    for change in changes:
        if change.new is None and isinstance(change.key, tuple):
            gone.setdefault(change.table, []).append(change)
    many = {table: edges for table, edges in gone.items() if len(edges) >= _EDGES_GONE}
    for table, edges in many.items():
        yield _removal(table, edges)
    for change in sorted(changes, key=_order):
        is_done = change.new is None and change.table in many
        if not is_done and not (change.old is None and (all_new_are_copied or isinstance(change.key, tuple))):
            yield statement(change)


def _removal(table: str, edges: Sequence[Change]) -> tuple[str, dict[str, Any]]:
    """Return one statement that removes edges of a table: one pass over it, however many they are."""
    source, target = tables()[table].ends or ("", "")
    pattern = f"MATCH (:{source} {{id: r.a}})-[x:{table}]->(:{target} {{id: r.b}})"
    return f"UNWIND $rows AS r {pattern} DELETE x", {"rows": [dict(zip("ab", one.key, strict=True)) for one in edges]}


def lookup(table: str, key: Key) -> tuple[str, dict[str, Any]]:
    """Return the statement that asks for one row by its primary key (an edge: by its ends)."""
    if isinstance(key, str):
        return f"MATCH (n:{table} {{id: $id}}) RETURN {whole(table)}", {"id": key}
    source, target = tables()[table].ends or ("", "")
    return f"MATCH (a:{source} {{id: $a}})-[e:{table}]->(b:{target} {{id: $b}}) RETURN e", {"a": key[0], "b": key[1]}


def lookup_of_edges(table: str, keys: Iterable[Key]) -> tuple[str, dict[str, Any]]:
    """Return the statement that asks for all edges of a table that begin where these do: their ends, and they themselves."""
    source, target = tables()[table].ends or ("", "")
    wanted = f"MATCH (a:{source} {{id: id}})-[e:{table}]->(b:{target}) RETURN id, b.id, e"
    return f"UNWIND $ids AS id {wanted}", {"ids": sorted({key[0] for key in keys})}


def creation_of_tables(known: Collection[str]) -> list[str]:
    """Return the statements that make the tables that a database lacks, and in a new one the row of the projection's state."""
    missing = [table.statement for name, table in tables().items() if name not in known]
    return missing if known else [*missing, f"CREATE (:Projection {{id: '{STATE_KEY}'}})"]


def whole(table: str) -> str:
    """Return what to ask for to get a node's row: where the table has records, that and what is no part of it."""
    return ", ".join(f"n.{name}" for name in (RECORD, *_OF_USE)) if RECORD in tables()[table].columns else "n"


def to_row(values: Sequence[Any]) -> Row:
    """Return a row from what `whole` asked for."""
    if len(values) == 1:
        return from_engine(values[0])
    try:
        row: Row = orjson.loads(values[0])
    except ValueError as error:
        raise GraphError("a row of the graph cannot be read", engine_says=str(error)) from None
    return row | from_engine(dict(zip(_OF_USE, values[1:], strict=True)))


def to_text(values: Sequence[Any]) -> str:
    """Return a memory's row as JSON text from what `whole` asked for, without reading its record."""
    if not values[0]:
        raise GraphError("a row of the graph cannot be read", engine_says="an empty record")
    used = orjson.dumps(from_engine(dict(zip(_OF_USE, values[1:], strict=True)))).decode()
    return f"{values[0][:-1]},{used[1:]}" if used != "{}" else str(values[0])


def _with_record(table: Table, row: Row) -> Row:
    if RECORD not in table.columns:
        return row
    record = {name: value for name, value in row.items() if name not in _OF_USE}
    return {**row, RECORD: orjson.dumps(record).decode()}


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
