"""Tracks edges created since the last checkpoint: Kùzu may crash if all of them are deleted before the next one.

Where a table of edges has rows in the file, and every row that came since the last checkpoint has been deleted by another transaction,
the checkpoint leaves a table whose next reader takes the process down (0.11.3: create an edge, CHECKPOINT, create another, delete it,
CHECKPOINT, read a property). It does so for each group of nodes by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from memgraph.graph.connection import Connection
from memgraph.graph.schema import tables
from memgraph.ports import Change, Key

_GROUP_NODES = 1 << 17


class FreshEdges:
    """The edges made since the last checkpoint.

    Parameters
    ----------
    is_known : bool
        Whether all of them are noted here: false where another process has left a log.
    """

    def __init__(self, *, is_known: bool) -> None:
        self._is_known = is_known
        self._keys: dict[str, set[Key]] = defaultdict(set)

    def clear(self) -> None:
        """Note that there was a checkpoint."""
        self._is_known = True
        self._keys.clear()

    def need_checkpoint(self, connection: Connection, changes: Sequence[Change]) -> bool:
        """Return whether there must be a checkpoint before these changes are written."""
        gone = {(one.table, one.key) for one in changes if one.new is None and tables()[one.table].ends}
        if not self._is_known:
            return bool(gone)
        come = {(one.table, one.key) for one in changes if one.old is None}
        for table, keys in self._keys.items():
            going = {key for key in keys if (table, key) in gone}
            stay = keys - going or any(name == table for name, _ in come)
            if going and (not stay or _has_groups(connection, table)):
                return True
        return False

    def note(self, changes: Sequence[Change]) -> None:
        """Note what was written."""
        for change in changes:
            if tables()[change.table].ends and change.new is None:
                self._keys[change.table].discard(change.key)
        for change in changes:
            if tables()[change.table].ends and change.old is None:
                self._keys[change.table].add(change.key)


def _has_groups(connection: Connection, table: str) -> bool:
    """Return whether the nodes at a table's edges are so many, those deleted included, that they come in several groups."""
    lasts = [connection.run(f"MATCH (n:{end}) RETURN max(offset(id(n)))")[0][0] for end in tables()[table].ends or ()]
    return any((last or 0) >= _GROUP_NODES for last in lasts)
