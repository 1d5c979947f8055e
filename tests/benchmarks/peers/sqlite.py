"""A plain table in SQLite: what one would write in an afternoon."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np

from tests.benchmarks.data import Memory, Vector
from tests.benchmarks.peers.plain import Nearest

_FIELDS = "type content outcome project_id build_id session_id tags agents_involved entities embedding".split()
_LISTS = {"tags", "agents_involved", "entities"}


class Store:
    """One table, every field a column, lists as JSON, the vector as bytes."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / "memories.sqlite", timeout=10.0)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS memory (id TEXT PRIMARY KEY, {', '.join(_FIELDS)})")
        self._connection.commit()
        rows = self._connection.execute("SELECT id, embedding FROM memory ORDER BY rowid")
        self._nearest = Nearest((key, np.frombuffer(vector, dtype=np.float32)) for key, vector in rows)

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        ids = [str(uuid4()) for _ in memories]
        rows = [(key, *_row(memory)) for key, memory in zip(ids, memories, strict=True)]
        with self._connection:
            self._connection.executemany(f"INSERT INTO memory VALUES ({', '.join('?' * (1 + len(_FIELDS)))})", rows)
        self._nearest.add(ids, [memory["embedding"] for memory in memories])
        return ids

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        ids = self._nearest.query(vector, limit)
        rows = [self._connection.execute("SELECT * FROM memory WHERE id = ?", (key,)).fetchone() for key in ids]
        return [row[0] for row in rows]

    def count(self, ids: Sequence[str]) -> int:
        found = (self._connection.execute("SELECT 1 FROM memory WHERE id = ?", (key,)).fetchone() for key in ids)
        return sum(row is not None for row in found)

    def close(self) -> None:
        self._connection.close()


def _row(memory: Memory) -> list[str | bytes]:
    fields = {**memory, "embedding": memory["embedding"].tobytes()}
    return [json.dumps(fields[name]) if name in _LISTS else fields[name] for name in _FIELDS]
