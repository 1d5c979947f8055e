"""What the engine must hold, as counts and one sum of hashes: enough to tell, for little, whether it has lost anything.

The sum is kept along with the rows: with each commit the hashes of the rows as they were are taken out of it, those of the rows as
they are put in. They are computed from the changes that the fold gave, not from what the engine stores. To check, the engine
adds up the hashes of all that its columns hold (some 5 microseconds a memory).
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
"""Returns the sum of the engine's hashes of texts."""


@dataclass(frozen=True, slots=True)
class Sums:
    """How many rows each table has, and the sum of the hashes of all rows."""

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
        """Return what is kept of it."""
        return {"rows": dict(self.rows), "hashes": str(self.hashes)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Sums:
        """Return the sums that were kept."""
        return cls(dict(row["rows"]), int(row["hashes"]))


def _text(table_name: str, key: Key, row: Row) -> str:
    """Return a row as one text; `statements.sums_of` has the engine make the same. Of a memory's record its code stands for it."""
    if table_name == MEMORY_ROWS:
        return f"{key}{BETWEEN}{row['code']}"
    table = tables()[table_name]
    if isinstance(key, str):
        return text_of(table, row)
    return BETWEEN.join((*key, text_of(table, row)) if table.columns else key)
