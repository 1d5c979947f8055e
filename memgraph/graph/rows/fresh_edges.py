"""Tracks edges created since the last checkpoint: Kùzu may crash if all of them are deleted before the next one.

If an edge table has rows in the file, and every row added since the last checkpoint has been deleted by another transaction,
the checkpoint leaves a table whose next reader crashes the process (0.11.3: create an edge, CHECKPOINT, create another, delete it,
CHECKPOINT, read a property). This applies to each group of nodes separately.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from memgraph.graph.connection import Connection
from memgraph.graph.schema import tables
from memgraph.ports import Change, Key

_GROUP_NODES = 1 << 17


class FreshEdges:
    """The edges created since the last checkpoint.

    Parameters
    ----------
    is_known : bool
        Whether all of them are recorded here: false if another process has left a log.
    """

    def __init__(self, *, is_known: bool) -> None:
        self._is_known = is_known
        self._keys: dict[str, set[Key]] = defaultdict(set)

    def clear(self) -> None:
        """Record a checkpoint."""
        self._is_known = True
        self._keys.clear()

    def need_checkpoint(self, connection: Connection, changes: Sequence[Change]) -> bool:
        """Return whether a checkpoint is needed before these changes are written."""
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
        """Record written changes."""
        for change in changes:
            if tables()[change.table].ends and change.new is None:
                self._keys[change.table].discard(change.key)
        for change in changes:
            if tables()[change.table].ends and change.old is None:
                self._keys[change.table].add(change.key)


def _has_groups(connection: Connection, table: str) -> bool:
    """Return whether the nodes at a table's edges, including deleted ones, are enough for several groups."""
    lasts = [connection.run(f"MATCH (n:{end}) RETURN max(offset(id(n)))")[0][0] for end in tables()[table].ends or ()]
    return any((last or 0) >= _GROUP_NODES for last in lasts)
