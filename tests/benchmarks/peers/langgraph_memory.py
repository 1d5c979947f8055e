"""LangGraph's store in memory. (Its durable stores need a database server.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from tests.benchmarks.data import DIMENSION, Memory, Vector

_PLACE = ("memories",)


class Store:
    """One namespace, its contents indexed by given vectors."""

    def __init__(self, folder: Path) -> None:
        self._vectors: dict[str, Vector] = {}
        self._store = InMemoryStore(index={"dims": DIMENSION, "embed": self._embed, "fields": ["content"]})

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        ids = [str(uuid4()) for _ in memories]
        self._vectors = {memory["content"]: memory["embedding"] for memory in memories}
        for batch in _unequal(list(zip(ids, memories, strict=True))):
            self._store.batch(
                PutOp(_PLACE, key, {name: value for name, value in memory.items() if name != "embedding"})
                for key, memory in batch
            )
        return ids

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        self._vectors = {text: vector}
        return [item.key for item in self._store.search(_PLACE, query=text, limit=limit)]

    def count(self, ids: Sequence[str]) -> int:
        return sum(self._store.get(_PLACE, key) is not None for key in ids)

    def close(self) -> None:
        pass

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vectors[text].tolist() for text in texts]


def _unequal(pairs: list[tuple[str, Memory]]) -> Iterator[list[tuple[str, Memory]]]:
    """Divide into batches without equal contents, in their order: it embeds those once, and then refuses the batch."""
    while pairs:
        known: set[str] = set()
        batch, later = [], []
        for pair in pairs:
            (later if pair[1]["content"] in known else batch).append(pair)
            known.add(pair[1]["content"])
        yield batch
        pairs = later
