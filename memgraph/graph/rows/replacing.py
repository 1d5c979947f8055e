"""Replaces nodes that the engine must not update by deleting and recreating them with their edges. ``schema/001_nodes.cypher`` says why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from memgraph.graph.columns import columns_of, from_engine
from memgraph.graph.connection import Connection
from memgraph.graph.schema import Table, tables
from memgraph.ports import Change, Key, Row

Edge = tuple[str, Key, Row]
"""Table, ends and row."""
_KEYS_AT_ONCE = 10
"""Number of nodes from which one pass over each edge table is faster than look-ups by key."""


def replaced(connection: Connection, changes: Sequence[Change]) -> list[Change]:
    """Rewrite changes so that no list, and no string of a memory, is updated in place.

    A node whose lists or strings change is deleted and created again with its edges, which are read from the graph.
    """
    nodes = {(change.table, str(change.key)): change for change in changes if _must_be_replaced(change)}
    if not nodes:
        return list(changes)
    edges: dict[tuple[str, Key], Row] = {}
    for name in {table for table, _ in nodes}:
        found = edges_around(connection, name, [key for table, key in nodes if table == name])
        edges |= {(table, key): row for table, key, row in found}
    kept, again = [], {**edges}
    for change in changes:
        place = (change.table, change.key)
        if place in edges:
            again[place] = change.new or {}
            if change.new is None:
                del again[place]
        elif place not in nodes:
            kept.append(change)
    gone = [Change(*place, {}, None) for place in [*edges, *nodes]]
    come = [Change(*place, None, change.new) for place, change in nodes.items()]
    return [*kept, *gone, *come, *(Change(*place, None, row) for place, row in again.items())]


def edges_around(connection: Connection, table: str, keys: Collection[str]) -> Iterator[Edge]:
    """Yield every edge at some nodes of a table, in both directions. An edge between two of them may be yielded twice."""
    if not any(table in (one.ends or ()) for one in tables().values()):
        return
    if len(keys) < _KEYS_AT_ONCE:
        for key in keys:
            yield from edges_at(connection, table, key)
        return
    for one in tables().values():
        for mine, other in (("a", "b"), ("b", "a")):
            if one.ends and one.ends["ab".index(mine)] == table:
                nodes = f"(a:{one.ends[0]})-[e:{one.name}]->(b:{one.ends[1]})".replace(
                    f"({mine}:{table})", f"({mine}:{table} {{id: id}})"
                )
                query = f"UNWIND $ids AS id MATCH {nodes} RETURN id, {other}.id, e"
                for key, end, edge in connection.run(query, {"ids": list(keys)}):
                    yield one.name, (key, end) if mine == "a" else (end, key), from_engine(edge)


def edges_at(connection: Connection, table: str, key: str, relations: Iterable[str] = ()) -> Iterator[Edge]:
    """Yield every edge at a node, or those of some tables, in both directions, each once."""
    kinds = ":".join(filter(None, ("e", "|".join(relations))))
    for arrow in (f"-[{kinds}]->", f"<-[{kinds}]-"):
        is_out = arrow.endswith(">")
        query = f"MATCH (m:{table} {{id: $id}}){arrow}(n) RETURN label(e), n.id, e"
        for name, other, edge in connection.run(query, {"id": key}):
            if is_out or other != key:  # a self-loop was yielded with the first arrow
                yield name, (key, other) if is_out else (other, key), from_engine(edge)


def _must_be_replaced(change: Change) -> bool:
    if change.old is None or change.new is None or isinstance(change.key, tuple):
        return False
    table = tables()[change.table]
    old, new = columns_of(table, change.old), columns_of(table, change.new)
    return any(old.get(name) != new.get(name) for name in _unsafe(table, {**old, **new}))


def _unsafe(table: Table, names: Iterable[str]) -> Iterator[str]:
    """Yield the columns that must not be updated."""
    for name in names:
        kind = table.columns[name]
        if kind.endswith("[]") or (kind == "STRING" and table.name == "Memory"):
            yield name
