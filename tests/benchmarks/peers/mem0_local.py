"""Mem0 without a model: what is given is stored as it is. Its telemetry is switched off before this is imported."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mem0 import Memory as Mem0

from tests.benchmarks.data import DIMENSION, Memory, Vector
from tests.benchmarks.peers import USER

logging.getLogger("mem0").setLevel(logging.ERROR)  # it tells that its optional text search is not installed


class Store:
    """Mem0 over Qdrant in a folder."""

    def __init__(self, folder: Path) -> None:
        qdrant = {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSION, "on_disk": True}
        # clients that it makes and that nobody asks: no message is sent with infer=False and vectors given
        unasked = {"provider": "openai", "config": {"api_key": "unused"}}
        self._memory = Mem0.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "history_db_path": str(folder / "history.db"),
                "llm": unasked,
                "embedder": unasked,
            }
        )
        self._given = _Given()
        self._memory.embedding_model = self._given

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        return [self._add(memory) for memory in memories]

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        self._given.vector = vector
        found = self._memory.search(text, filters={"user_id": USER}, top_k=limit, threshold=0.0)
        return [result["id"] for result in found["results"]]

    def count(self, ids: Sequence[str]) -> int:
        return sum(self._memory.get(key) is not None for key in ids)

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()

    def _add(self, memory: Memory) -> str:
        self._given.vector = memory["embedding"]
        metadata = {name: value for name, value in memory.items() if name not in {"content", "embedding"}}
        said = [{"role": "user", "content": memory["content"]}]
        added = self._memory.add(said, user_id=USER, metadata=metadata, infer=False)
        return str(added["results"][0]["id"])


class _Given:
    """An embedder that returns the vector it was given."""

    vector: Vector

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        values: list[float] = self.vector.tolist()
        return values

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[Any]:
        return [self.embed(text, memory_action) for text in texts]
