"""Rows that this process has read or written while it held the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memgraph.ports import Change, GraphEngine, Key, Row

_MOST_ROWS = 20_000
_SCAN_FROM = 2_000
"""From so many unknown memories on, one pass over the table beats look-ups by key."""


class RowCache:
    """The graph's rows, kept while no other process can have changed them. Rows are never modified.

    It spares a commit the look-ups of known tags, agents and projects, and a read the row just written.
    """

    def __init__(self, engine: GraphEngine) -> None:
        self._engine = engine
        self._rows: dict[tuple[str, Key], Row | None] = {}
        self._generation = -1

    @property
    def is_current(self) -> bool:
        """Whether the graph was held without a break since the cache was last used."""
        return self._generation == self._engine.generation

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row."""
        with self._engine.open():
            self.refresh()
            place = (table, key)
            if place not in self._rows:
                self._rows[place] = self._engine.get(table, key)
            return self._rows[place]

    def memories(self, memory_ids: Sequence[str]) -> list[Row]:
        """Return these memories' rows in this order, without those that are gone."""
        with self._engine.open():
            self.refresh()
            unknown = [key for key in memory_ids if ("Memory", key) not in self._rows]
            if len(unknown) < _SCAN_FROM:
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

    def refresh(self) -> None:
        """Forget everything if another process may have had the graph, or if there is too much of it."""
        if not self.is_current or len(self._rows) > _MOST_ROWS:
            self._rows.clear()
            self._generation = self._engine.generation

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._generation = -1
