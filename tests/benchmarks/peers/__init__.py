"""What memgraph is measured beside: one module each, imported in the process that measures it and nowhere else."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

from tests.benchmarks.data import Memory, Vector

USER = "bench"


class Peer(Protocol):
    """A store of memories, opened in a folder. What its documentation tells a user to do is what it does here."""

    def insert(self, memories: Sequence[Memory]) -> list[str]:
        """Store memories by one call where there is one for many; return their ids when they are kept."""

    def query(self, text: str, vector: Vector, limit: int) -> list[str]:
        """Return the ids of the nearest memories."""

    def count(self, ids: Sequence[str]) -> int:
        """Return how many of these it holds."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a peer is, what must be installed for it, and what one should know of how it is used here."""

    module: str
    distribution: str | None
    note: str


PEERS = {
    "memgraph": Entry(
        "memgraph_store",
        "memgraph-kuzu",
        "signed journal, fsync at each commit, graph, vectors and text; recall fuses both",
    ),
    "chromadb": Entry(
        "chroma", "chromadb", "PersistentClient, HNSW with cosine, embeddings given; calls of at most its batch limit"
    ),
    "langgraph": Entry(
        "langgraph_memory", "langgraph", "InMemoryStore with a vector index: in memory alone, by design"
    ),
    "mem0": Entry(
        "mem0_local",
        "mem0ai",
        "infer=False, its default Qdrant in a local folder, history in SQLite; one add a memory, because metadata are the call's",
    ),
    "sqlite": Entry(
        "sqlite", None, "plain table, WAL, synchronous=FULL; the query is a product with all vectors in memory"
    ),
    "jsonl": Entry("jsonl", None, "a line appended and fsynced; the query is a product with all vectors in memory"),
}


def imported(name: str) -> ModuleType:
    """Import a peer's module, and with it the peer."""
    return importlib.import_module(f"tests.benchmarks.peers.{PEERS[name].module}")


def opened(name: str, folder: Path) -> Peer:
    """Open a peer in a folder that exists."""
    peer: Peer = imported(name).Store(folder)
    return peer
