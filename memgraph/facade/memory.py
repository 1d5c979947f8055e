"""`MemGraph`: opens a store, wires the parts, delegates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memgraph.commands import MemoryCommands
from memgraph.config import load_config
from memgraph.errors import InvalidInputError
from memgraph.extraction.readers import Reader
from memgraph.facade.contradictions import Contradictions
from memgraph.facade.distillation import Distillation
from memgraph.facade.maintenance import Maintenance
from memgraph.facade.procedures import Procedures
from memgraph.lifecycle import (
    ConsolidationPipeline,
    give_feedback,
    ingest,
    save_episode,
    save_observation,
    sleep_if_due,
)
from memgraph.lifecycle.distillation.sessions import SessionWatch
from memgraph.model.agent_input import Episode, Feedback, Observation
from memgraph.model.base import Callback, Prose, checked
from memgraph.model.memory import StoredEpisodicMemory, StoredMemory
from memgraph.model.results.context import AgentContext, ContextFormat
from memgraph.model.results.learning import IngestReport, SavedEpisode, SavedObservation
from memgraph.model.results.retrieval import RetrievalResult, ScoredMemory
from memgraph.ports import Clock, Embedder, Extractor, KeyProvider, Progress
from memgraph.retrieval import (
    MemoryRetrieval,
    agent_context,
    create_enriched_system_prompt,
    format_context_for_prompt,
)
from memgraph.store import AgentMemoryStore
from memgraph.store.past.as_of import When


class MemGraph:
    """A store with everything that works on it.

    Attributes
    ----------
    store : AgentMemoryStore
    retrieval : MemoryRetrieval
    consolidation : ConsolidationPipeline
    commands : MemoryCommands
    procedures : Procedures
        Learning procedures, and deciding about those that are proposed.
    contradictions : Contradictions
        Finding contradictions, and deciding them.
    distillation : Distillation
        Work orders for what rules cannot judge, and their answers.
    maintenance : Maintenance
        Sleep and its single steps.
    """

    def __init__(self, store: AgentMemoryStore, *, extractor: Extractor | None = None) -> None:
        if not isinstance(store, AgentMemoryStore):
            raise InvalidInputError("must be an AgentMemoryStore", field="store", value=store)
        self.store = store
        self.retrieval = MemoryRetrieval(store)
        self.consolidation = ConsolidationPipeline(store, extractor=extractor)
        self.commands = MemoryCommands(store, retrieval=self.retrieval)
        self.procedures = Procedures(store)
        self.contradictions = Contradictions(store)
        self.distillation = Distillation(store, SessionWatch(store))
        self.maintenance = Maintenance(store, self.consolidation)

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

    def ingest(self, reader: Reader, *, progress: Progress | None = None, compress: bool = True) -> IngestReport:
        """Read a source from where the last run stopped, and consolidate it; compress at the end, unless told not to.

        Long sessions of which little was kept then become work orders; with `compress` False, call `distillation.request` after
        the last source.

        All sources that this object reads share one model budget; ``consolidation.usage.restart()`` makes it whole again.
        """
        if not callable(getattr(reader, "records", None)):
            raise InvalidInputError("must be a reader of memgraph.extraction.readers", field="reader", value=reader)
        checked(Callback, progress, "progress")
        watched = self.distillation.sessions.over(reader)
        report = ingest(self.store, watched, pipeline=self.consolidation, progress=progress, compress=compress)
        if compress:
            self.distillation.request()
        return report

    def recall(self, task: str, *, agent: str = "agent", project: str | None = None, **query: Any) -> RetrievalResult:
        """Return the memories that help with a task, with the text to put before the prompt."""
        asked = {"task_description": task, "agent_name": agent, "project_id": project, **query}
        return self.retrieval.retrieve(asked)

    def build_agent_context(
        self, task: str, *, agent: str = "agent", project: str | None = None, **query: Any
    ) -> AgentContext:
        """Recall what helps with a task, by type: what is known, what happened, how things are done.

        Parameters
        ----------
        query : Any
            Further fields of `RetrievalQuery`, such as privacy_tiers, agents, max_semantic, max_tokens.
        """
        return agent_context(self.recall(task, agent=agent, project=project, **query))

    def format_context_for_prompt(
        self, context: AgentContext | RetrievalResult, *, format: ContextFormat = "sections"
    ) -> str:
        """Return a context as text to put before a prompt; see `memgraph.retrieval`."""
        return format_context_for_prompt(context, format=format)

    def create_enriched_system_prompt(
        self, base_prompt: str, context: AgentContext | RetrievalResult, *, format: ContextFormat = "sections"
    ) -> str:
        """Return a system prompt with a context behind it; see `memgraph.retrieval`."""
        return create_enriched_system_prompt(base_prompt, context, format=format)

    def search_memories(self, text: str, **options: Any) -> list[ScoredMemory]:
        """Return the best memories for a text, of whatever type; `options` as of `MemoryRetrieval.search_memories`."""
        return self.retrieval.search_memories(text, **options)

    def record_outcome(
        self, query_id: str, outcome: str, *, used: Sequence[str] = (), overridden: Sequence[str] = ()
    ) -> None:
        """Record the outcome of a recall; each memory that was used is counted and reinforced once."""
        self.store.record_outcome(query_id, outcome, used=used, overridden=overridden)

    def save_observation(
        self,
        content: str,
        *,
        context: str | None = None,
        confidence: float = 0.7,
        episode_id: str | None = None,
        project: str | None = None,
        **details: Any,
    ) -> SavedObservation:
        """Keep a fact or preference that was learned, or merge it into the memory that says the same.

        Parameters
        ----------
        context : str, optional
            The domain it belongs to: only observations of one domain are merged.
        confidence : float
            In [0, 1].
        episode_id : str, optional
            The episode it was learned from.
        details : Any
            Further fields of `memgraph.model.agent_input.Observation`: outcome, valid_at, privacy_tier, trust_class, session_id, tags.

        Raises
        ------
        InvalidInputError, NotFoundError
            A field is refused, or there is no such episode; nothing is stored.
        """
        given = {"content": content, "context": context, "confidence": confidence, "episode_id": episode_id}
        return save_observation(self.store, Observation.parse({**given, "project": project, **details}))

    def save_episode(
        self, situation: str, reasoning: str, action: str, outcome: str, *, project: str | None = None, **details: Any
    ) -> SavedEpisode:
        """Keep a complete interaction: what was wanted, why it was approached so, what was done, what came of it.

        Parameters
        ----------
        outcome : {"success", "failure", "partial", "pending"}
        details : Any
            Further fields of `memgraph.model.agent_input.Episode`: user_feedback, agent_name, mission_id, context, task_id, session_id,
            build_id, occurred_at, privacy_tier, trust_class, tags.

        Raises
        ------
        InvalidInputError
            A field is refused; nothing is stored.
        """
        given = {"situation": situation, "reasoning": reasoning, "action": action, "outcome": outcome}
        saved = save_episode(self.store, Episode.parse({**given, "project": project, **details}))
        sleep_if_due(self.store)
        return saved

    def update_episode_with_feedback(
        self, episode_id: str, feedback: str, *, comment: str | None = None
    ) -> StoredEpisodicMemory:
        """Say what the user thought of an episode: ``love`` and ``like`` make it a success and bring it back to mind, ``meh`` a failure.

        Word and comment become the last line of its ``user_feedback``; what was recorded before stays, a line each.

        Raises
        ------
        InvalidInputError, NotFoundError
            Another word, or no episode has this id; nothing is changed.
        """
        found = give_feedback(self.store, episode_id, Feedback.parse({"feedback": feedback, "comment": comment}))
        sleep_if_due(self.store, at_once=feedback == "meh")
        return found

    def invalidate_memory(self, memory_id: str, *, reason: str, invalid_at: str | None = None) -> StoredMemory:
        """Say that a memory is no longer true, and why; it is kept, and no longer recalled from `invalid_at` on (default: now).

        Raises
        ------
        InvalidInputError, NotFoundError
            The reason is empty, the time is none, or no memory has this id; nothing is changed.
        """
        return self.store.invalidate(memory_id, reason=checked(Prose, reason, "reason"), at=invalid_at)

    def at(self, when: When, *, recorded: bool = False, progress: Progress | None = None) -> Self:
        """Return the memory as it was at a moment: everything that reads works on it, and nothing is written. Close it when done.

        Parameters
        ----------
        when : str, date or datetime
            ISO 8601; without an offset it is UTC, and a day alone means its end. Later than now means now.
        recorded : bool
            What had been recorded by then, rather than what had happened: history that was ingested later is left out.
        progress : callable, optional
            Is told how many events of the journal are done, and of how many, where the view is not kept from the last time.

        Raises
        ------
        InvalidInputError
            It is no time, or lies before everything that is remembered.
        """
        return type(self)(self.store.at(when, recorded=recorded, progress=progress))

    def close(self) -> None:
        """Close the store. Closing twice is fine."""
        self.store.close()
