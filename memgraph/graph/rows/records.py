"""Memories' records: JSON text beside the columns, with a code that only this store can compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from memgraph.disk.seal import Seal
from memgraph.errors import GraphError
from memgraph.graph.columns import OF_USE, row_text
from memgraph.graph.connection import Connection
from memgraph.graph.rows.statements import lookup, nodes, wanted
from memgraph.graph.schema import MEMORY_ROWS
from memgraph.ports import Row


class Records:
    """Reads memories from their records and verifies each.

    Parameters
    ----------
    seal : Seal
        The graph's seal.
    """

    def __init__(self, seal: Seal) -> None:
        self._seal = seal

    def one(self, connection: Connection, key: str) -> Row | None:
        """Return a memory's row; None if there is no such memory.

        Raises
        ------
        GraphError
            The record is not what this store has written, or only one of its two rows exists.
        """
        found = connection.run(*lookup("Memory", key))
        if found:
            row: Row = orjson.loads(self._text(key, found[0]))
            return row
        for table in ("Memory", MEMORY_ROWS):
            if connection.run(f"MATCH (n:{table} {{id: $id}}) RETURN n.id", {"id": key}):
                raise GraphError(f"memory {key} has only a row in {table}")
        return None

    def all(self, connection: Connection, written: int) -> list[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text.

        Parameters
        ----------
        written : int
            The expected number.

        Raises
        ------
        GraphError
            There are more or fewer, or a record is not what this store has written.
        """
        found = connection.run(f"{nodes('Memory')} RETURN n.id, {wanted('Memory')}")
        if len(found) != written:
            raise GraphError(f"{len(found):,} memories have a record instead of {written:,}")
        return [(key, self._text(key, values)) for key, *values in found]

    def _text(self, key: str, values: Sequence[Any]) -> str:
        """Return a memory's row as JSON text from its record, the record's code, and the columns that a use changes."""
        record, code, *used = values
        is_text = isinstance(record, str)
        if not is_text or self._seal.short_code(record.encode()) != code or f'"id":"{key}"' not in record:
            raise GraphError(f"the row of memory {key} differs from what was written")
        return row_text(record, dict(zip(OF_USE, used, strict=True)))
