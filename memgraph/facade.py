"""`MemGraph`: opens a store, wires the parts, delegates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memgraph.commands import MemoryCommands
from memgraph.config import load_config
from memgraph.extraction.readers import Reader
from memgraph.lifecycle import ConsolidationPipeline, ingest
from memgraph.model.results import IngestReport, RetrievalResult
from memgraph.ports import Clock, Embedder, Extractor, KeyProvider, Progress
from memgraph.retrieval import MemoryRetrieval
from memgraph.store import AgentMemoryStore


class MemGraph:
    """A store with everything that works on it.

    Attributes
    ----------
    store : AgentMemoryStore
    retrieval : MemoryRetrieval
    consolidation : ConsolidationPipeline
    commands : MemoryCommands
    """

    def __init__(self, store: AgentMemoryStore, *, extractor: Extractor | None = None) -> None:
        self.store = store
        self.retrieval = MemoryRetrieval(store)
        self.consolidation = ConsolidationPipeline(store, extractor=extractor)
        self.commands = MemoryCommands(store, retrieval=self.retrieval)

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        clock: Clock | None = None,
        keys: KeyProvider | None = None,
        **config: Any,
    ) -> Self:
        """Open the store at `home` (default: ``MEMGRAPH_HOME``, else ``~/.memgraph``), making it if need be.

        Parameters
        ----------
        config : Any
            Settings of `AgentMemoryConfig`.

        Raises
        ------
        MemGraphError
            The settings are refused, or the store cannot be opened.
        """
        settings = load_config({"home": home, **config})
        return cls(AgentMemoryStore(settings, embedder=embedder, clock=clock, keys=keys), extractor=extractor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ingest(self, reader: Reader, *, progress: Progress | None = None) -> IngestReport:
        """Read a source from where the last run stopped, and consolidate it."""
        return ingest(self.store, reader, pipeline=self.consolidation, progress=progress)

    def recall(self, task: str, *, agent: str = "agent", project: str | None = None, **query: Any) -> RetrievalResult:
        """Return the memories that help with a task, with the text to put before the prompt."""
        asked = {"task_description": task, "agent_name": agent, "project_id": project, **query}
        return self.retrieval.retrieve(asked)

    def record_outcome(
        self, query_id: str, outcome: str, *, used: Sequence[str] = (), overridden: Sequence[str] = ()
    ) -> None:
        """Say what became of a recall."""
        self.store.record_outcome(query_id, outcome, used=used, overridden=overridden)

    def close(self) -> None:
        """Close the store. Closing twice is fine."""
        self.store.close()
