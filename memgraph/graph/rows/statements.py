"""Cypher statements that write changes to the graph and read rows back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from memgraph.graph.columns import BETWEEN, OF_USE, columns_of, record_of, text_expressions, to_param
from memgraph.graph.schema import MEMORY_ROWS, STATE_TABLE, Table, tables
from memgraph.ports import Change, Key, Row

STATE_KEY = "projection"
_EDGES_OF_A_MEMORY = 16
_EDGES_OF_A_TABLE = 8
_MANY_GONE = 40
"""Number of deleted rows from which one pass over their table is faster than look-ups by key."""


def _order(change: Change) -> int:
    """Edges are deleted before their nodes; nodes are created before their edges."""
    is_edge = isinstance(change.key, tuple)
    if change.new is None:
        return 0 if is_edge else 1
    return 3 if is_edge else 2


def with_records(changes: Iterable[Change], code_of: Callable[[bytes], int]) -> Iterator[Change]:
    """Yield changes and those of the memories' records: a changed record is deleted and recreated (``schema/001_nodes.cypher`` says why)."""
    for change in changes:
        yield change
        if change.table == "Memory" and isinstance(change.key, str):
            old, new = (None if row is None else record_of(row) for row in (change.old, change.new))
            if old == new:
                continue
            if old is not None:
                yield Change(MEMORY_ROWS, change.key, _record_row(change.key, old, code_of), None)
            if new is not None:
                yield Change(MEMORY_ROWS, change.key, None, _record_row(change.key, new, code_of))


def _record_row(key: str, record: bytes, code_of: Callable[[bytes], int]) -> Row:
    return {"id": key, "code": code_of(record), "record": record.decode()}


def statement(change: Change) -> tuple[str, dict[str, Any]]:
    """Return the statement that makes one change, by primary key."""
    table = tables()[change.table]
    if change.old is None:
        row = columns_of(table, change.new or {})
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
    old, new = columns_of(table, change.old), columns_of(table, change.new)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    assignments = ", ".join(f"x.{name} = ${name}" for name in changed)
    return f"{pattern} SET {assignments}", params | _values(table, {name: new.get(name) for name in changed})


def _values(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_param(value, table.columns[name]) for name, value in row.items()}


def edges_by_memory(changes: Sequence[Change]) -> list[list[Change]]:
    """Group new edges by the memory that owns them or their evidence, at most sixteen in a group."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.key[1] if change.table in {"NEXT", "SUPPORTS"} else change.key[0], []).append(change)
    return [part for group in groups.values() for part in _parts(group, _EDGES_OF_A_MEMORY)]


def edges_by_table(changes: Sequence[Change]) -> list[list[Change]]:
    """Group the edges of one memory by their table, at most eight in a group: about eighty statement shapes in all."""
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.table, []).append(change)
    return [part for group in groups.values() for part in _parts(group, _EDGES_OF_A_TABLE)]


def _parts(group: list[Change], most: int) -> list[list[Change]]:
    return [group[start : start + most] for start in range(0, len(group), most)]


def creation_of_edges(changes: Sequence[Change]) -> tuple[str, dict[str, Any]]:
    """Return one statement that creates these edges; each node is matched once, by its primary key."""
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


def statements_of(changes: Sequence[Change], *, all_new_are_copied: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the statements for changes in an order that the engine accepts, without new edges and rows that are copied."""
    gone: dict[str, list[Change]] = {}
    for change in changes:
        if change.new is None:
            gone.setdefault(change.table, []).append(change)
    for table, own in sorted(gone.items(), key=lambda item: _order(item[1][0])):
        if len(own) >= _MANY_GONE:
            yield _removal(table, own)
        else:
            yield from map(statement, own)
    for change in sorted((change for change in changes if change.new is not None), key=_order):
        if not (change.old is None and (all_new_are_copied or isinstance(change.key, tuple))):
            yield statement(change)


def _removal(table: str, rows: Sequence[Change]) -> tuple[str, dict[str, Any]]:
    """Return one statement that deletes rows of a table in one pass over it."""
    if tables()[table].ends is None:
        return f"UNWIND $ids AS id MATCH (x:{table} {{id: id}}) DELETE x", {"ids": [one.key for one in rows]}
    source, target = tables()[table].ends or ("", "")
    pattern = f"MATCH (:{source} {{id: r.a}})-[x:{table}]->(:{target} {{id: r.b}})"
    return f"UNWIND $rows AS r {pattern} DELETE x", {"rows": [dict(zip("ab", one.key, strict=True)) for one in rows]}


def lookup(table: str, key: Key) -> tuple[str, dict[str, Any]]:
    """Return the query for one row by its primary key (an edge: by its ends); see `wanted`."""
    if isinstance(key, str):
        return f"{nodes(table, '{id: $id}')} RETURN {wanted(table)}", {"id": key}
    source, target = tables()[table].ends or ("", "")
    return f"MATCH (a:{source} {{id: $a}})-[e:{table}]->(b:{target} {{id: $b}}) RETURN e", {"a": key[0], "b": key[1]}


def nodes(table: str, where: str = "") -> str:
    """Return the MATCH for a table's nodes; for memories, with their records."""
    if table != "Memory":
        return f"MATCH (n:{table} {where})"
    if where:
        return f"MATCH (n:Memory {where}), (r:{MEMORY_ROWS} {where})"
    return f"MATCH (r:{MEMORY_ROWS}), (n:Memory {{id: r.id}})"


def wanted(table: str) -> str:
    """Return the columns that make up a node's row: for a memory its record, the record's code, and the columns outside the record."""
    return ", ".join(["r.record", "r.code", *(f"n.{name}" for name in OF_USE)]) if table == "Memory" else "n"


def lookup_of_edges(table: str, keys: Iterable[Key]) -> tuple[str, dict[str, Any]]:
    """Return the query for all edges of a table with the same sources as these: their ends and the edges themselves."""
    source, target = tables()[table].ends or ("", "")
    wanted = f"MATCH (a:{source} {{id: id}})-[e:{table}]->(b:{target}) RETURN id, b.id, e"
    return f"UNWIND $ids AS id {wanted}", {"ids": sorted({key[0] for key in keys})}


def held_nodes(table: str, source: str, moment: int | str | None) -> tuple[str, dict[str, Any]]:
    """Return the query for the nodes at the ends of a node's edges that held at an event (by number), at a time, or hold now."""
    ends = tables()[table].ends or ("", "")
    pattern, params = f"MATCH (:{ends[0]} {{id: $id}})-[:{table}]->(n:{ends[1]})", {"id": source}
    if moment is None:
        return f"{pattern} WHERE n.closed_seq IS NULL RETURN n", params
    since, until, kind = (
        ("seq", "closed_seq", "INT64") if isinstance(moment, int) else ("created_at", "closed_at", "TIMESTAMP")
    )
    held = f"n.{since} <= $moment AND (n.{until} IS NULL OR n.{until} > $moment)"
    return f"{pattern} WHERE {held} RETURN n", params | {"moment": to_param(moment, kind)}


def creation_of_tables(known: Collection[str]) -> list[str]:
    """Return the statements that create a database's missing tables and, in a new one, the projection's state row."""
    missing = [table.statement for name, table in tables().items() if name not in known]
    return missing if known else [*missing, f"CREATE (:{STATE_TABLE} {{id: '{STATE_KEY}'}})"]


def sums_of(table: Table) -> list[str]:
    """Return queries for the number of a table's rows and the sum of the hashes of their texts.

    An edge table has two, because the engine stores edges at their sources and again at their targets, and may lose either.
    """
    names = ("id", "code") if table.name == MEMORY_ROWS else tuple(table.columns)
    if table.ends is None:
        return [f"MATCH (n:{table.name}) {_sum(text_expressions(table, 'n', names))}"]
    pattern = f"MATCH (a:{table.ends[0]})-[e:{table.name}]->(b:{table.ends[1]})"
    found = _sum(["a.id", "b.id", *text_expressions(table, "e", names)])
    return [f"{pattern} HINT ({one} JOIN e) JOIN {other} {found}" for one, other in ("ab", "ba")]


def count_of(table: Table) -> str:
    """Return the query for the number of a table's rows.

    Of edges it counts those without a node at one end too, which `sums_of` does not find. Ends are named: a pattern without labels has
    the same plan, but the engine takes six times as long to find it, and there is one for each edge table.
    """
    if table.ends is None:
        return f"MATCH (n:{table.name}) RETURN count(*)"
    return f"MATCH (:{table.ends[0]})-[e:{table.name}]->(:{table.ends[1]}) RETURN count(*)"


def _sum(texts: Iterable[str]) -> str:
    return f"RETURN count(*), CAST(sum(hash(concat_ws('{BETWEEN}', {', '.join(texts)}))) AS STRING)"


def state_statement(seq: int, state: str) -> tuple[str, dict[str, Any]]:
    """Return the statement that replaces the projection's state."""
    params = {"id": STATE_KEY, "seq": seq, "state": state}
    return f"MATCH (p:{STATE_TABLE} {{id: $id}}) SET p.seq = $seq, p.state = $state", params
