"""The workspace of a fold: changed rows over a source of the old ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Protocol

from memgraph.ports import Change, Key, Row

_UNREAD: Row = {}


class RowSource(Protocol):
    """Old rows by key. Callers never modify them."""

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row."""
        ...

    def has(self, table: str, key: Key) -> bool:
        """Return whether there is a row."""
        ...

    def edges_at(self, memory_id: str) -> Iterable[tuple[str, Key, Row]]:
        """Return every edge at a memory, in both directions."""
        ...


class EmptyRows:
    """A source without rows, from which a rebuild starts."""

    def get(self, table: str, key: Key) -> Row | None:  # noqa: ARG002
        """Return None."""
        return None

    def has(self, table: str, key: Key) -> bool:
        """Return whether `get` returns a row."""
        return self.get(table, key) is not None

    def edges_at(self, memory_id: str) -> Iterable[tuple[str, Key, Row]]:  # noqa: ARG002
        """Return nothing."""
        return ()


class Workspace:
    """Changed rows over a source of old ones, of which some memories have been read."""

    def __init__(self, old_rows: RowSource, memories: Iterable[Row] = ()) -> None:
        self._old_rows = old_rows
        self._old: dict[tuple[str, Key], Row | None] = {("Memory", row["id"]): row for row in memories}
        self._new: dict[tuple[str, Key], Row | None] = {}
        self._edges_at: dict[str, set[tuple[str, Key]]] | None = None

    def get(self, table: str, key: Key) -> Row | None:
        """Return the row after the changes so far."""
        place = (table, key)
        if place in self._new:
            return self._new[place]
        if place not in self._old:
            self._old[place] = self._old_rows.get(table, key)
        return self._old[place]

    def has(self, table: str, key: Key) -> bool:
        """Return whether there is a row after the changes so far. Cheaper than reading it."""
        place = (table, key)
        known = self._new.get(place, self._old.get(place, _UNREAD))
        return self._old_rows.has(table, key) if known is _UNREAD else known is not None

    def is_new(self, table: str, key: Key) -> bool:
        """Return whether these changes created a row."""
        return (table, key) in self._old and self._old[table, key] is None and self._new.get((table, key)) is not None

    def is_changed(self, table: str, key: Key) -> bool:
        """Return whether these changes set or removed a row."""
        return (table, key) in self._new

    def put(self, table: str, key: Key, row: Row | None) -> None:
        """Set a row, or remove it with None."""
        place = (table, key)
        if place not in self._old:
            self._old[place] = self._old_rows.get(table, key)
        self._new[place] = row
        self._note_ends(place, row)

    def add(self, table: str, key: Key, row: Row) -> None:
        """Set a row that cannot exist yet; saves the look-up."""
        place = (table, key)
        self._old.setdefault(place, None)
        self._new[place] = row
        self._note_ends(place, row)

    def ensure(self, table: str, key: Key, row: Row) -> None:
        """Add a row unless it exists."""
        if self.get(table, key) is None:
            self.put(table, key, row)

    def keys(self, table: str) -> list[Key]:
        """Return the keys of all rows of a table after the changes so far, in a replay from the journal's first event."""
        if not isinstance(self._old_rows, EmptyRows):
            raise RuntimeError("only a replay from the first event has all rows of a table at hand")
        return [key for (name, key), row in self._new.items() if name == table and row is not None]

    def edges_at(self, memory_id: str) -> Iterator[tuple[str, Key, Row]]:
        """Iterate over the edges at a memory after the changes so far."""
        seen = {(table, key) for table, key, _ in self._old_rows.edges_at(memory_id)} | self._changed_at(memory_id)
        for table, key in sorted(seen):
            row = self.get(table, key)
            if row is not None:
                yield table, key, row

    def _changed_at(self, node_id: str) -> set[tuple[str, Key]]:
        """Return the edges at a node that were added or changed and exist."""
        if self._edges_at is None:  # built at the first removal of an edge: most folds never need it
            self._edges_at = defaultdict(set)
            for place, row in self._new.items():
                self._note_ends(place, row)
        return self._edges_at[node_id]

    def _note_ends(self, place: tuple[str, Key], row: Row | None) -> None:
        if self._edges_at is not None and isinstance(place[1], tuple):
            for end in place[1]:
                if row is None:
                    self._edges_at[end].discard(place)
                else:
                    self._edges_at[end].add(place)

    def changes(self) -> Iterator[Change]:
        """Iterate over the rows that differ from the old ones."""
        for (table, key), new in self._new.items():
            old = self._old[table, key]
            if old != new:
                yield Change(table, key, old, new)
