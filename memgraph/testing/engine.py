"""In-memory graph engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NoReturn

import orjson

from memgraph.errors import ClosedError, GraphError, QueryError
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.ports import Change, Key, Progress, Row


class InMemoryEngine:
    """Stores the graph's rows in dictionaries. A `GraphEngine` without a query language and without a file.

    Pass one as the `engine` of an `AgentMemoryStore`, which fills it from the journal: a new one each time a store is
    opened.

    Attributes
    ----------
    calls : list of list of Change
        The changes of each call of `apply` and `rebuild`, rejected ones included.
    """

    def __init__(self) -> None:
        self.calls: list[list[Change]] = []
        self.generation = self._depth = 0
        self._rows: dict[tuple[str, Key], Row] = {}
        self._state: Row | None = None
        self.is_held = self._is_closed = False

    def acquire_if_free(self) -> bool:
        """Return True: no other process has it."""
        return True

    @contextmanager
    def open(self) -> Iterator[InMemoryEngine]:
        """Hold the engine for a block of calls; nests."""
        if self._is_closed and not self.is_held:
            raise ClosedError("the engine is closed; create another")
        self.generation += not self.is_held
        self.is_held = True
        self._depth += 1
        try:
            yield self
        finally:
            self._depth -= 1

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its primary key (an edge: by its ends)."""
        with self.open():
            return deepcopy(self._rows.get((table, key)))

    def edges(self, table: str, keys: Collection[Key]) -> dict[Key, Row]:
        """Return those of these edges that exist."""
        return {key: row for key in keys if (row := self.get(table, key)) is not None}

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every edge of a memory, in both directions."""
        with self.open():
            return [
                (t, k, deepcopy(row)) for (t, k), row in self._rows.items() if isinstance(k, tuple) and memory_id in k
            ]

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return up to a number of nodes that have an edge of a table to this one."""
        with self.open():
            found = [
                key[0] for name, key in self._rows if name == table and isinstance(key, tuple) and key[1] == target
            ]
            return found[:limit]

    def held(self, table: str, source: str, moment: int | str | None) -> list[Row]:
        """Return the nodes to which a node has edges of this table and that held at a moment."""
        with self.open():
            ends = {key[1] for name, key in self._rows if name == table and isinstance(key, tuple) and key[0] == source}
            rows = [row for (_, key), row in self._rows.items() if key in ends]
        since, until = ("created_at", "closed_at") if isinstance(moment, str) else ("seq", "closed_seq")
        if moment is None:
            return [deepcopy(row) for row in rows if until not in row]
        return [deepcopy(row) for row in rows if row[since] <= moment and not (until in row and row[until] <= moment)]

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every link of this memory to others, NEXT included, in both directions."""
        return [edge for edge in self.edges_at(memory_id) if edge[0] in {*EXPLICIT_RELATIONS, "NEXT"}]

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table."""
        with self.open():
            yield from [(key, deepcopy(row)) for (name, key), row in self._rows.items() if name == table]

    scan_columns = scan

    def columns(self, table: str, row: Row) -> Row:  # noqa: ARG002
        """Return the columns that `scan_columns` reads of a row: all of them."""
        return row

    def lost(self) -> list[str]:
        """Return the deviations from what was written: always none."""
        return []

    def count_rows(self) -> int:
        """Return the number of rows in all tables."""
        return len(self._rows)

    def size_bytes(self) -> int:
        """Return 0: it uses no disk space."""
        return 0

    def records(self) -> list[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text."""
        return [(str(key), orjson.dumps(row).decode()) for key, row in self.scan("Memory")]

    def state(self) -> Row | None:
        """Return the projection's state row; None before the first write."""
        with self.open():
            return deepcopy(self._state)

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and the state atomically; changes that do not fit the rows raise a `GraphError`."""
        self._write(dict(self._rows), changes, state)

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything with these new rows and this state."""
        changes = list(changes)
        self._write({}, changes, state)
        if progress:
            progress(len(changes), len(changes))

    def cypher(
        self,
        query: str,  # noqa: ARG002
        params: Mapping[str, Any],  # noqa: ARG002
        *,
        gives_way: Callable[[], bool] | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Raise an error: dictionaries have no query language."""
        raise QueryError("the in-memory engine runs no Cypher; test queries against the real graph")

    def release(self) -> None:
        """Release it, unless an outer block holds it; the next call acquires it again."""
        self.is_held = self._depth > 0

    def close(self) -> None:
        """Close it permanently and drop its rows."""
        self.release()
        self._is_closed = True

    def _write(self, rows: dict[tuple[str, Key], Row], changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        self.calls.append(list(changes))
        with self.open():
            for change in changes:
                place = (change.table, change.key)
                if (place in rows) != (change.old is not None):
                    raise GraphError(f"{place} is {'there already' if place in rows else 'not there'}")
                rows.pop(place, None)
                if change.new is not None:
                    rows[place] = deepcopy(change.new)
            nodes = {key for _, key in rows}
            if lacking := [end for _, key in rows if isinstance(key, tuple) for end in key if end not in nodes]:
                raise GraphError(f"an edge has no node {lacking[0]} at its end")
            self._rows, self._state = rows, deepcopy(dict(state))
