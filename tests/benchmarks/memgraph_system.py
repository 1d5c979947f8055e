"""memgraph as a system under test: filled and searched through its public interface."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from memgraph import Embedder, MemGraph, MemoryRetrieval, RetrievalConfig
from memgraph.model.base import MAX_NAME_CHARS
from tests.benchmarks.corpus import Doc, Part, Search, System
from tests.benchmarks.embeddings import CachedEmbedder

_PROJECT = "benchmark"
Record = dict[str, Any]


class MemGraphSystem(System):
    """memgraph through its public interface, every setting at its default.

    Stores lie in a temporary folder that is removed at exit. Searching records no access: no question changes the next one's answer.

    Parameters
    ----------
    embedder : Embedder, optional
        Default: memgraph's own, its vectors kept on disk between runs.

    Attributes
    ----------
    config : RetrievalConfig or None
        To search with; None: the default settings.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        super().__init__()
        self._embedder = embedder or CachedEmbedder()
        self._folder = tempfile.TemporaryDirectory(prefix="memgraph-bench-")
        self._graphs: list[MemGraph] = []
        self.config: RetrievalConfig | None = None
        atexit.register(self.close)

    def fill(self, parts: Sequence[Part]) -> Search:
        graph = self.opened()
        memories = [_memory(part, number) for number, part in enumerate(parts)]
        graph.store.insert_memories(memories)
        return _Filled(self, graph, {memory["id"]: place for place, memory in enumerate(memories)})

    def graph_of(self, docs: Sequence[Doc]) -> MemGraph:
        """Return the store that holds documents; fill it if need be."""
        filled = self.search_of(docs)
        assert isinstance(filled, _Filled)
        return filled.graph

    def close(self) -> None:
        super().close()
        while self._graphs:
            self._graphs.pop().close()
        self._folder.cleanup()
        atexit.unregister(self.close)

    def doc_of(self, docs: Sequence[Doc], memory_id: str) -> str:
        """Return the id of the document that a memory of `graph_of` holds, or a part of it."""
        store = self._store_of(docs)
        assert isinstance(store.search, _Filled)
        return store.doc_ids[store.search.place_of[memory_id]]

    def opened(self) -> MemGraph:
        """Open a new, empty store."""
        folder = Path(self._folder.name) / str(len(self._graphs))
        graph = MemGraph.open(folder / "store", keys_home=folder / "keys", embedder=self._embedder)
        self._graphs.append(graph)
        return graph


@dataclass(frozen=True, slots=True)
class _Filled:
    """A filled store, searched with the system's settings of the moment."""

    system: MemGraphSystem
    graph: MemGraph
    place_of: dict[str, int]

    def __call__(self, query: str, k: int) -> list[int]:
        retrieval = MemoryRetrieval(self.graph.store, config=self.system.config)
        return [self.place_of[found.memory.id] for found in retrieval.search_memories(query, limit=k)]


def _memory(part: Part, number: int) -> Record:
    """Return a part as a memory. Its id follows from its place, so that ties end the same way in every run."""
    fields = {
        "type": "episodic",
        "id": str(uuid5(NAMESPACE_URL, f"{part.doc_id}#{number}")),
        "content": part.text,
        "project_id": _PROJECT,
        "title": part.title and part.title[:MAX_NAME_CHARS],
        "speaker": part.speaker and part.speaker[:MAX_NAME_CHARS],
        "session_id": part.session and part.session[:MAX_NAME_CHARS],
        "occurred_at": part.occurred_at,
    }
    return {name: value for name, value in fields.items() if value is not None}
