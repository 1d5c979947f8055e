"""Graph engines for tests, under a seal of their own.

Two engines cannot be in one process: ``--engine ladybug`` runs the tests that take an engine with Ladybug instead of Kùzu.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from memgraph.disk.seal import Seal
from memgraph.graph.copy import VENDORS, GraphCopy
from memgraph.ports import Change, Key, Row

VARIABLE = "TESTED_ENGINE"
LONG = "TESTED_AT_LENGTH"
SEAL = Seal(b"t" * 32)


def vendor_name() -> str:
    """Return the engine that is tested in this process."""
    return os.environ.get(VARIABLE, "kuzu")


class Snapshots:
    """Rows in memory, from which a graph is copied, with the number of the last event that changed each.

    Attributes
    ----------
    era : str
        Changes when rows of earlier states were purged.
    """

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {}
        self.seq = 0
        self.era = "era"
        self._changed: dict[tuple[str, Key], int] = {}

    def take(self, changes: Iterable[Change]) -> None:
        """Take in the changed rows of one event."""
        changes = list(changes)
        self.seq = max(
            [self.seq + 1, *(row.get("seq", 0) for table, _, _, row in changes if table == "Memory" and row)]
        )
        for table, key, _, row in changes:
            self._changed.pop((table, key), None)
            self._changed[table, key] = self.seq
            rows = self.tables.setdefault(table, {})
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = {"seq": rows.get(key, {}).get("seq", self.seq), **row} if table == "Memory" else row

    def count(self) -> int:
        return sum(map(len, self.tables.values()))

    @contextmanager
    def snapshot(self) -> Iterator[Snapshots]:
        """Yield itself: the tests change nothing meanwhile."""
        yield self

    def mark(self, seq: int) -> str | None:
        """Return what identifies the state after an event."""
        return f"{self.era} {seq}" if seq <= self.seq else None

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table."""
        return iter(self.tables.get(table, {}).items())

    def changes_since(self, seq: int, most: int) -> list[Change] | None:
        """Return the rows changed after an event, unless they are too many."""
        found = list(islice(takewhile(lambda one: one[1] > seq, reversed(self._changed.items())), most + 1))
        rows = [Change(table, key, None, self.tables[table].get(key)) for (table, key), _ in found]
        return rows if len(rows) <= most else None


class Graph(GraphCopy):
    """The graph of some rows, in the engine that is tested in this process."""

    def __init__(self, folder: Path, rows: Snapshots, **options: Any) -> None:
        super().__init__(folder, VENDORS[vendor_name()], SEAL, rows.snapshot, **options)


def examples(few: int, *, at_length: int) -> int:
    """Return how many examples a test tries: a few, the same in each run, or with ``--long`` more, and new ones."""
    return at_length if os.environ.get(LONG) else few
