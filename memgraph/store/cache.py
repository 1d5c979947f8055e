"""Rows that this process has read or written while it held the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memgraph.ports import Change, GraphEngine, Key, Row

_MOST_ROWS = 20_000
_SCAN_FROM = 2_000
"""From so many unknown memories on, one pass over the table beats look-ups by key."""


class RowCache:
    """The graph's rows, kept until `clear`: its owner knows when another process may have changed them.

    It spares a commit the look-ups of known tags, agents and projects, and a read the row just written. Rows are never
    modified.
    """

    def __init__(self, engine: GraphEngine) -> None:
        self._engine = engine
        self._rows: dict[tuple[str, Key], Row | None] = {}
        self._whole: set[str] = set()

    def load(self, tables: Iterable[str]) -> None:
        """Read tables whole: from then on no key of theirs is looked up one by one."""
        for table in tables:
            if table not in self._whole:
                self._rows.update({(table, key): row for key, row in self._engine.scan(table)})
                self._whole.add(table)

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row."""
        place = (table, key)
        if place not in self._rows:
            if table in self._whole:
                return None
            if len(self._rows) > _MOST_ROWS:
                self.clear()
            self._rows[place] = self._engine.get(table, key)
        return self._rows[place]

    def memories(self, memory_ids: Sequence[str]) -> list[Row]:
        """Return these memories' rows in this order, without those that are gone."""
        unknown = sum(("Memory", key) not in self._rows for key in memory_ids)
        if unknown < _SCAN_FROM:
            found = {key: self.get("Memory", key) for key in memory_ids}
        else:
            found = {str(key): row for key, row in self._engine.scan("Memory")}
        return [row for key in memory_ids if (row := found.get(key)) is not None]

    def edges_at(self, memory_id: str) -> Iterable[tuple[str, Key, Row]]:
        """Return every edge at a memory."""
        return self._engine.edges_at(memory_id)

    def absorb(self, changes: Iterable[Change]) -> None:
        """Take in rows that were written."""
        for change in changes:
            if isinstance(change.key, str):
                self._rows[change.table, change.key] = change.new
            else:
                self._rows.pop((change.table, change.key), None)

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._whole.clear()
