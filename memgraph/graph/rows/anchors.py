"""Recreates one edge of each changed table before a checkpoint, because Kùzu may otherwise drop edges or crash (``schema/002_edges.cypher``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memgraph.graph.columns import from_engine
from memgraph.graph.connection import Connection
from memgraph.graph.rows.statements import creation_of_edges, statement
from memgraph.graph.schema import Table, tables
from memgraph.ports import Change

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

    @property
    def are_needed(self) -> bool:
        """Whether edges may have been deleted since the last checkpoint."""
        return bool(self._tables) or not self._is_known

    def recreate(self, connection: Connection) -> None:
        """Delete and create again one edge in each group of nodes and direction, in the caller's transaction."""
        for table in tables().values():
            if table.ends and (table.name in self._tables or not self._is_known):
                for edge in list(_one_of_each_group(connection, table)):
                    connection.run(*statement(Change(edge.table, edge.key, edge.new, None)))
                    connection.run(*creation_of_edges([edge]))


def _one_of_each_group(connection: Connection, table: Table) -> Iterator[Change]:
    """Yield the creation of one edge for each group of source nodes that has edges of the table, and for each of target nodes."""
    source, target = table.ends or ("", "")
    seen = set()
    for end, alias in ((source, "a"), (target, "b")):
        [[last]] = connection.run(f"MATCH (n:{end}) RETURN max(offset(id(n)))")
        for first in range(0, (last or 0) + 1, _GROUP_NODES):
            within = f"offset(id({alias})) >= {first} AND offset(id({alias})) < {first + _GROUP_NODES}"
            pattern = f"MATCH (a:{source})-[e:{table.name}]->(b:{target}) WHERE {within}"
            for one, other, edge in connection.run(f"{pattern} RETURN a.id, b.id, e LIMIT 1"):
                if (one, other) not in seen:
                    seen.add((one, other))
                    yield Change(table.name, (one, other), None, from_engine(edge))
