"""Cache of rows that this process has read or written while it held the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from memgraph.fold import links_named
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryMerged, MemoryRevised
from memgraph.ports import Change, GraphEngine, Key, Row

_MOST_ROWS = 20_000
_SCAN_FROM = 2_000
"""From this many uncached memories on, one table scan is faster than look-ups by key."""
_MEMORIES_A_LOOKUP = 150
"""The engine needs 0.3 ms to look up one memory by key, in which a scan reads this many as text."""
_READY_FROM = 40
"""From this many builds or links on, one table scan is faster than look-ups by key."""
_MOST_RECORDS = 150_000
"""About 150 MB: for larger stores only single rows are cached."""


class RowCache:
    """The graph's rows, cached until `clear`: the owner knows when another process may have changed them.

    The cache saves a commit the look-ups of known tags, agents and projects, and a read the row just written. Once as
    many memories were requested as could have been scanned in that time, it reads them all, and keeps them as text.
    Rows are never modified.

    Parameters
    ----------
    ask : callable
        Queries the graph, and repairs it if it fails.
    count : callable
        Returns the number of memories, 0 if unknown.
    """

    def __init__(self, ask: Callable[[Callable[[GraphEngine], Any]], Any], count: Callable[[], int]) -> None:
        self._ask = ask
        self._count = count
        self._rows: dict[tuple[str, Key], Row | None] = {}
        self._whole: set[str] = set()
        self._records: dict[str, str] | None = None
        self._in_bulk = 0
        self._looked_up = 0
        self._links: dict[tuple[str, Key], Row | None] = {}

    @property
    def has_memories(self) -> bool:
        """Whether all memories are cached."""
        return self._records is not None

    def load(self, tables: Iterable[str]) -> None:
        """Read whole tables: from then on none of their keys is looked up individually."""
        for table in tables:
            if table not in self._whole:
                rows = {(table, key): row for key, row in self._scan(table)}
                self._rows.update(rows)
                self._in_bulk += len(rows)
                self._whole.add(table)

    def load_memories(self) -> None:
        """Read all memories, unless there are too many to cache, or their number is unknown."""
        if self._records is None and 0 < self._count() <= _MOST_RECORDS:
            self._records = dict(self._ask(lambda engine: engine.records()))
            self._rows = {place: row for place, row in self._rows.items() if place[0] != "Memory"}

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row."""
        if table == "Memory" and self._records is not None:
            record = self._records.get(str(key))
            return None if record is None else _row(record)
        place = (table, key)
        if place in self._links:
            return self._links[place]
        if place not in self._rows:
            if table in self._whole:
                return None
            if len(self._rows) > _MOST_ROWS + self._in_bulk:
                self._rows, self._whole, self._in_bulk = {}, set(), 0
            self._rows[place] = self._ask(lambda engine: engine.get(table, key))
        return self._rows[place]

    def has(self, table: str, key: Key) -> bool:
        """Return whether a row exists."""
        if table == "Memory" and self._records is not None:
            return key in self._records
        return self.get(table, key) is not None

    def memories(self, memory_ids: Sequence[str]) -> list[Row]:
        """Return these memories' rows in this order, without deleted ones."""
        if self._records is None:
            unknown = sum(("Memory", key) not in self._rows for key in memory_ids)
            self._looked_up += len(
                memory_ids
            )  # cached ones, too: others can read beside a writer only if all are cached
            if self._looked_up * _MEMORIES_A_LOOKUP >= self._count():
                self.load_memories()
            if unknown >= _SCAN_FROM and self._records is None:
                found = {str(key): row for key, row in self._scan("Memory")}
                return [found[key] for key in memory_ids if key in found]
        return [row for key in memory_ids if (row := self.get("Memory", key)) is not None]

    def ready_for(self, events: Sequence[Event]) -> RowCache:
        """Read at once what folding many events will need, and return itself. Links are cached until the result is written."""
        revisions = [event.content for event in events if isinstance(event.payload, MemoryRevised | MemoryMerged)]
        if sum("evidence_build_ids" in content.get("changed", ()) for content in revisions) >= _READY_FROM:
            self.load(("Build",))
        for table, keys in links_named(events).items():
            if len(keys) >= _READY_FROM:
                found = self._edges(table, keys)
                self._links.update({(table, key): found.get(key) for key in keys})
        return self

    def edges_at(self, memory_id: str) -> Iterable[tuple[str, Key, Row]]:
        """Return every edge at a memory."""
        edges: list[tuple[str, Key, Row]] = self._ask(lambda engine: engine.edges_at(memory_id))
        return edges

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return up to a number of nodes that have an edge of a table to this one."""
        found: list[str] = self._ask(lambda engine: engine.sources(table, target, limit))
        return found

    def absorbing(self, changes: Iterable[Change]) -> Callable[[], None]:
        """Return a function that adds written rows, quickly, however many they are."""
        written: dict[str, str] = {}
        rows: dict[tuple[str, Key], Row | None] = {}
        gone: list[str] = []
        edges: list[tuple[str, Key]] = []
        for change in changes:
            if not isinstance(change.key, str):
                edges.append((change.table, change.key))
            elif change.table != "Memory" or self._records is None:
                rows[change.table, change.key] = change.new
            elif change.new is None:
                gone.append(change.key)
            else:
                written[change.key] = orjson.dumps(change.new).decode()

        def absorb() -> None:
            self._links = {}
            self._rows.update(rows)
            for edge in edges:
                self._rows.pop(edge, None)
            if self._records is not None:
                self._records.update(written)
                for memory_id in gone:
                    self._records.pop(memory_id, None)
                if len(self._records) > _MOST_RECORDS:
                    self._records = None

        return absorb

    def every(self, table: str) -> list[Row]:
        """Return all rows of a table of few rows, such as builds; it is read whole once."""
        self.load([table])
        return [row for (name, _), row in self._rows.items() if name == table and row is not None]

    def _scan(self, table: str) -> list[tuple[Key, Row]]:
        rows: list[tuple[Key, Row]] = self._ask(lambda engine: list(engine.scan(table)))
        return rows

    def _edges(self, table: str, keys: set[Key]) -> dict[Key, Row]:
        edges: dict[Key, Row] = self._ask(lambda engine: engine.edges(table, keys))
        return edges

    def clear(self) -> None:
        """Clear the cache."""
        self._links = {}
        self._rows, self._whole, self._in_bulk, self._records, self._looked_up = {}, set(), 0, None, 0


def _row(record: str) -> Row:
    row: Row = orjson.loads(record)
    return row
