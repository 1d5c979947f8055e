"""Checksums of what the engine must hold, as row counts and one sum of hashes: a cheap test for lost or changed rows.

The sum is stored with the rows. Each commit subtracts the hashes of the old rows and adds those of the new ones. They are
computed from the fold's changes, not from what the engine stores. To check, the engine
adds up the hashes of all its columns (about 5 microseconds per memory).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memgraph.graph.columns import BETWEEN, text_of
from memgraph.graph.schema import MEMORY_ROWS, tables
from memgraph.ports import Change, Key, Row

HashSum = Callable[[list[str]], int]
"""Computes the sum of the engine's hashes of texts."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The number of rows in each table, and the sum of the hashes of all rows."""

    rows: Mapping[str, int] = field(default_factory=dict)
    hashes: int = 0

    def after(self, changes: Iterable[Change], hash_sum: HashSum) -> Sums:
        """Return the sums after these changes."""
        rows, before, now = Counter(self.rows), [], []
        for change in changes:
            rows[change.table] += (change.new is not None) - (change.old is not None)
            if change.old is not None:
                before.append(_text(change.table, change.key, change.old))
            if change.new is not None:
                now.append(_text(change.table, change.key, change.new))
        hashes = self.hashes - (hash_sum(before) if before else 0) + (hash_sum(now) if now else 0)
        return Sums({name: count for name, count in rows.items() if count}, hashes)

    def as_row(self) -> Row:
        """Return the sums as a row to be stored."""
        return {"rows": dict(self.rows), "hashes": str(self.hashes)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Sums:
        """Return the sums that were stored."""
        return cls(dict(row["rows"]), int(row["hashes"]))


def _text(table_name: str, key: Key, row: Row) -> str:
    """Return a row as one text, as the engine does by `statements.sums_of`. A memory's record is represented by its code."""
    if table_name == MEMORY_ROWS:
        return f"{key}{BETWEEN}{row['code']}"
    table = tables()[table_name]
    if isinstance(key, str):
        return text_of(table, row)
    return BETWEEN.join((*key, text_of(table, row)) if table.columns else key)
