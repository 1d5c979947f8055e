"""Compares the graph cell by cell with the rows that it must hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memgraph.graph.copy import GraphCopy
from memgraph.graph.schema import Table, columns_of, tables
from memgraph.ports import Key, Row
from tests.fuzz.engine.histories import Rows


def differences(graph: GraphCopy, expected: Rows) -> Iterator[str]:
    """Yield what the graph holds otherwise: table, key, column and both values; edges as they are found from either end."""
    for name, table in tables().items():
        rows = {key: _visible(table, row) for key, row in expected.tables.get(name, {}).items()}
        for query in _scans(table):
            yield from _compared(name, _found(graph, query, table), rows)


def differences_around(graph: GraphCopy, expected: Rows, memory_ids: Iterable[str]) -> Iterator[str]:
    """Yield what the graph holds otherwise of the edges at memories."""
    for memory_id in memory_ids:
        found = set()
        for arrow in ("-[e]->", "<-[e]-"):
            for row in graph.query(
                f"MATCH (m:Memory {{id: $id}}){arrow}(n) RETURN label(e) AS t, n.id AS n", {"id": memory_id}
            ):
                found.add((row["t"], (memory_id, row["n"]) if arrow.endswith(">") else (row["n"], memory_id)))
        right = {(table, key) for table, key, _ in expected.edges_at(memory_id)}
        if found != right:
            yield f"the edges at {memory_id} are {found!r:.200} instead of {right!r:.200}"


def _scans(table: Table) -> list[str]:
    """Return queries for all rows. The engine stores edges at their sources and again at their targets, and may lose either."""
    alias = "n" if table.ends is None else "e"
    wanted = ", ".join(f"{alias}.{name} AS {name}" for name in table.columns)
    if table.ends is None:
        return [f"MATCH (n:{table.name}) RETURN {wanted}"]
    pattern = f"MATCH (a:{table.ends[0]})-[e:{table.name}]->(b:{table.ends[1]})"
    wanted = ", ".join(filter(None, ("a.id AS `from`", "b.id AS `to`", wanted)))
    return [f"{pattern} HINT ({one} JOIN e) JOIN {other} RETURN {wanted}" for one, other in ("ab", "ba")]


def _found(graph: GraphCopy, query: str, table: Table) -> Iterator[tuple[Key, Row]]:
    for row in graph.query(query, {}):
        key = row["id"] if table.ends is None else (row.pop("from"), row.pop("to"))
        yield key, {name: value for name, value in row.items() if value not in (None, "", [])}


def _visible(table: Table, row: Row) -> Row:
    return {name: value for name, value in columns_of(table, row).items() if value not in ("", [])}


def _compared(table: str, found: Iterable[tuple[Key, Row]], expected: dict[Key, Row]) -> Iterator[str]:
    seen: set[Key] = set()
    for key, row in found:
        if key in seen:
            yield f"{table} {key}: twice"
        seen.add(key)
        if key not in expected:
            yield f"{table} {key}: not expected"
        elif row != expected[key]:
            for column in sorted(row.keys() | expected[key].keys()):
                mine, right = row.get(column), expected[key].get(column)
                if mine != right:
                    yield f"{table} {key}, {column}: {mine!r:.80} instead of {right!r:.80}"
    for key in expected.keys() - seen:
        yield f"{table} {key}: missing"
