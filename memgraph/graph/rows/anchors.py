"""Recreates one edge of each changed table before a checkpoint, because Kùzu may otherwise drop edges or crash (``schema/002_edges.cypher``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from memgraph.graph.columns import from_engine
from memgraph.graph.connection import Connection
from memgraph.graph.schema import Table, tables
from memgraph.ports import Change, Key

_GROUP_NODES = 1 << 17


class EdgeAnchors:
    """The edge tables from which rows were deleted since the last checkpoint, and the edges to recreate before the next.

    Parameters
    ----------
    is_known : bool
        Whether all deletions are recorded here: false if another process has left a log.
    """

    def __init__(self, *, is_known: bool) -> None:
        self._is_known = is_known
        self._tables: set[str] = set()

    def note(self, changes: Sequence[Change]) -> None:
        """Record written changes."""
        self._tables |= {change.table for change in changes if change.new is None and tables()[change.table].ends}

    def clear(self) -> None:
        """Record a checkpoint."""
        self._is_known = True
        self._tables.clear()

    def again(self, connection: Connection) -> list[Change]:
        """Return changes that delete and recreate one edge in each group of nodes and direction, for the next checkpoint."""
        if self._is_known and not self._tables:
            return []
        names = self._tables if self._is_known else tables()
        return [change for name in sorted(names) for change in _recreated(connection, tables()[name])]


def again_beside(connection: Connection, changes: Sequence[Change]) -> list[Change]:
    """Return changes like `EdgeAnchors.again`, to be written together with these.

    Call it before the transaction: in one that has deleted and created edges, the engine gives edges the ends of others.
    """
    touched: dict[str, set[Key]] = {change.table: set() for change in changes if change.new is None}
    for change in changes:
        if change.table in touched:
            touched[change.table].add(change.key)
    return [change for name, keys in touched.items() for change in _recreated(connection, tables()[name], keys)]


def _recreated(connection: Connection, table: Table, touched: Collection[Key] = ()) -> Iterator[Change]:
    """Yield the deletion and creation of one edge for each group of source nodes and of target nodes, except some edges."""
    if table.ends is None:
        return
    source, target = table.ends
    seen = set()
    for end, alias in ((source, "a"), (target, "b")):
        [[last]] = connection.run(f"MATCH (n:{end}) RETURN max(offset(id(n)))")
        for first in range(0, (last or 0) + 1, _GROUP_NODES):
            within = f"offset(id({alias})) >= {first} AND offset(id({alias})) < {first + _GROUP_NODES}"
            pattern = f"MATCH (a:{source})-[e:{table.name}]->(b:{target}) WHERE {within}"
            rows = connection.run(f"{pattern} RETURN a.id, b.id, e LIMIT {len(touched) + 1}")
            kept = ((one, other, edge) for one, other, edge in rows if (one, other) not in touched)
            for one, other, edge in islice(kept, 1):
                if (one, other) not in seen:
                    seen.add((one, other))
                    row = from_engine(edge)
                    yield Change(table.name, (one, other), row, None)
                    yield Change(table.name, (one, other), None, row)
