"""memgraph, measured as its peers are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemoryRetrieval
from tests.benchmarks.data import GivenVectors, Memory, Vector


class Store:
    """A store with every setting at its default."""

    def __init__(self, folder: Path) -> None:
        self._embedder = GivenVectors()
        config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        self._store = AgentMemoryStore(config, embedder=self._embedder)
        self._retrieval = MemoryRetrieval(self._store)

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        return [memory.id or "" for memory in self._store.insert_memories(memories)]

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        self._embedder.vectors[text] = vector
        return [found.memory.id or "" for found in self._retrieval.search_memories(text, limit=limit)]

    def count(self, ids: Sequence[str]) -> int:
        return len(self._store.read_memories(ids))

    def close(self) -> None:
        self._store.close()
