"""Lines of JSON in a file, fsynced: the least that keeps a memory."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np

from tests.benchmarks.data import Memory, Vector
from tests.benchmarks.peers.plain import Nearest


class Store:
    """One file that is appended to and read whole when it is opened."""

    def __init__(self, folder: Path) -> None:
        path = folder / "memories.jsonl"
        self._nearest = Nearest(_read(path) if path.exists() else ())
        self._file = path.open("ab", buffering=0)

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        ids = [str(uuid4()) for _ in memories]
        lines = [_line(key, memory) for key, memory in zip(ids, memories, strict=True)]
        self._file.write(b"".join(lines))
        os.fsync(self._file.fileno())
        self._nearest.add(ids, [memory["embedding"] for memory in memories])
        return ids

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        return self._nearest.query(vector, limit)

    def count(self, ids: Sequence[str]) -> int:
        return sum(key in self._nearest for key in ids)

    def close(self) -> None:
        self._file.close()


def _line(key: str, memory: Memory) -> bytes:
    embedding = base64.b64encode(memory["embedding"].tobytes()).decode()
    return json.dumps({**memory, "id": key, "embedding": embedding}).encode() + b"\n"


def _read(path: Path) -> Iterator[tuple[str, Vector]]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):  # else cut short by a crash
                memory = json.loads(line)
                yield memory["id"], np.frombuffer(base64.b64decode(memory["embedding"]), dtype=np.float32)
