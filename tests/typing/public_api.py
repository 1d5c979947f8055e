"""Typed uses of the public API: mypy checks this module, nothing runs it.

Each ``type: ignore`` stands at a deliberate mistake. Were the mistake no longer found, mypy would report the comment as unused.
"""

from __future__ import annotations

from datetime import date
from typing import assert_type

from memgraph import (
    AgentContext,
    AgentMemory,
    AgentMemoryStore,
    Embedder,
    EpisodicMemory,
    Extractor,
    Link,
    MemGraph,
    MemGraphError,
    RetrievalResult,
    ScoredMemory,
    StoredMemory,
    parse_memory,
)
from memgraph.errors import DuplicateIdError
from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.memory import StoredEpisodicMemory, StoredSemanticMemory, id_of
from memgraph.model.results.learning import Contradiction, Proposal, SleepReport


def reads(store: AgentMemoryStore, memory_id: str) -> None:
    """A memory that the store returns has an id and its times."""
    found = store.get_memory(memory_id)
    assert_type(found, StoredMemory | None)
    found.id  # type: ignore[union-attr]  # noqa: B018 - it may be None
    if found is not None:
        assert_type(found.id, str)
        assert_type(found.created_at, str)
        store.record_access(found.id)
        if isinstance(found, EpisodicMemory):
            assert_type(found.id, str)
            assert_type(found.situation, str | None)
    assert_type(store.get_all_memories(), list[StoredMemory])
    assert_type(store.update_memory(memory_id, title="a title").id, str)
    assert_type(store.links(memory_id), list[Link])


def writes(store: AgentMemoryStore) -> None:
    """A draft need have no id; what the store made of it has one."""
    draft = EpisodicMemory(content="The build failed")
    assert_type(draft.id, str | None)
    store.get_memory(draft.id)  # type: ignore[arg-type]
    assert_type(id_of(draft), str)
    stored = store.insert_memory(draft)
    assert_type(stored.id, str)
    assert_type(store.insert_memories([draft, {"type": "semantic", "content": "It is so"}]), list[StoredMemory])
    assert_type(parse_memory({"type": "semantic", "content": "It is so"}), AgentMemory)
    as_stored: StoredMemory = draft  # type: ignore[assignment]
    as_draft: AgentMemory = stored
    store.insert_memories([as_draft, as_stored])


def recall(memory: MemGraph) -> None:
    """A recall returns stored memories, by type where it is asked for a context."""
    result = memory.recall("change the CSV import", project="shop")
    assert_type(result, RetrievalResult)
    memory.record_outcome(result.query_id, "success", used=[one.id for one in result.memories])
    context = memory.build_agent_context("change the CSV import")
    assert_type(context, AgentContext)
    assert_type(context.similar_episodes, list[StoredEpisodicMemory])
    assert_type(context.semantic_memories, list[StoredSemanticMemory])
    found = memory.search_memories("CSV")
    assert_type(found, list[ScoredMemory])
    assert_type(found[0].memory.id, str)
    assert_type(memory.update_episode_with_feedback("id", "like").id, str)
    assert_type(memory.at(date(2026, 1, 1)), MemGraph)


def groups(memory: MemGraph) -> None:
    """The groups of methods of `MemGraph` are typed, and cannot be replaced."""
    assert_type(memory.procedures.proposals(state=None), list[Proposal])
    memory.procedures.proposals(state="no such state")  # type: ignore[arg-type]
    open_ones = memory.contradictions.list()
    assert_type(open_ones, list[Contradiction])
    assert_type(open_ones[0].newer.id, str)
    memory.contradictions.resolve("one", "other")  # type: ignore[call-arg]
    assert_type(memory.maintenance.sleep(max_seconds=10.0), SleepReport)
    memory.maintenance.store = memory.store  # type: ignore[misc]
    memory.sleep()  # type: ignore[attr-defined]


class OwnExtractor:
    """An extractor that a user writes."""

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Find one memory in each log."""
        return ExtractionResult.from_memories([{"type": "episodic", "content": f"Build {build_log.build_id}"}])


def ports(embedder: Embedder) -> None:
    """What a user implements is checked against the port."""
    extractor: Extractor = OwnExtractor()
    MemGraph.open(embedder=embedder, extractor=extractor)
    MemGraph.open(extractor=embedder)  # type: ignore[arg-type]


def errors(error: DuplicateIdError) -> MemGraphError:
    """Every error is a `MemGraphError`."""
    return error
