"""Chroma, embedded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import chromadb
from chromadb.config import Settings

from tests.benchmarks.data import Memory, Vector


class Store:
    """One collection of a persistent client."""

    def __init__(self, folder: Path) -> None:
        self._client = chromadb.PersistentClient(str(folder / "chroma"), settings=Settings(anonymized_telemetry=False))
        self._collection = self._client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        self._most = self._client.get_max_batch_size()

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        ids = [str(uuid4()) for _ in memories]
        for first in range(0, len(memories), self._most):
            part = memories[first : first + self._most]
            self._collection.add(
                ids=ids[first : first + self._most],
                documents=[memory["content"] for memory in part],
                embeddings=[memory["embedding"] for memory in part],
                metadatas=[_flat(memory) for memory in part],
            )
        return ids

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        found: list[str] = self._collection.query(query_embeddings=[vector], n_results=limit)["ids"][0]
        return found

    def count(self, ids: Sequence[str]) -> int:
        return len(self._collection.get(ids=list(ids), include=[])["ids"])

    def close(self) -> None:
        self._client.close()


def _flat(memory: Memory) -> dict[str, str | list[str]]:
    """Return metadata: texts and lists of texts; entities are records, hence as JSON."""
    kept = {name: value for name, value in memory.items() if name not in {"content", "embedding", "entities"}}
    return {**kept, "entities": json.dumps(memory["entities"])}
