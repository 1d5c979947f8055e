"""`MemGraph`: opens a store, constructs the components, and delegates to them.

What recall does not need is imported when it is first used: it is a third of the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memgraph.config import load_config
from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.model.agent_input import UNNAMED, Episode, Feedback, Observation
from memgraph.model.base import Callback, Name, Prose, checked
from memgraph.model.events.records import AccessAudited
from memgraph.model.memory import StoredEpisodicMemory, StoredMemory
from memgraph.model.results.curation import MemoryCommandResult
from memgraph.model.results.learning import IngestReport, SavedEpisode, SavedObservation
from memgraph.model.results.maintenance import BackupResult, PurgeReceipt
from memgraph.model.results.retrieval import (
    AgentContext,
    ContextFormat,
    RetrievalQuery,
    RetrievalResult,
    Rules,
    ScoredMemory,
    WhenNothing,
)
from memgraph.ports import Clock, Embedder, Extractor, Judge, KeyProvider, Progress
from memgraph.privacy import OWNER, Access
from memgraph.retrieval import (
    MemoryRetrieval,
    agent_context,
    create_enriched_system_prompt,
    format_context_for_prompt,
    project_overview,
)
from memgraph.retrieval.overview import with_rules, without_given_rules
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import scope_of
from memgraph.store.access.visibility import readable
from memgraph.store.past import When

if TYPE_CHECKING:
    from memgraph.commands import MemoryCommands
    from memgraph.extraction.readers import Reader
    from memgraph.facade.curation import Curation
    from memgraph.facade.learning import Contradictions, Distillation, Maintenance, Procedures
    from memgraph.lifecycle import ConsolidationPipeline
    from memgraph.model.results.maintenance import Health
    from memgraph.tasks import Tasks


class MemGraph:
    """A store with the components that operate on it."""

    def __init__(
        self, store: AgentMemoryStore, *, extractor: Extractor | None = None, judge: Judge | None = None
    ) -> None:
        if not isinstance(store, AgentMemoryStore):
            raise InvalidInputError("must be an AgentMemoryStore", field="store", value=store)
        self.store = store
        self.retrieval = MemoryRetrieval(store)
        self._extractor, self._judge = extractor, judge
        if extractor is not None:
            _ = self.consolidation  # refuses what is no extractor

    @cached_property
    def consolidation(self) -> ConsolidationPipeline:
        """Extracts memories from build logs, and merges them with those that are known."""
        from memgraph.lifecycle import ConsolidationPipeline

        return ConsolidationPipeline(self.store, extractor=self._extractor)

    @cached_property
    def commands(self) -> MemoryCommands:
        """What a person says: remember, forget, ask, list and more."""
        from memgraph.commands import MemoryCommands

        return MemoryCommands(self.store, retrieval=self.retrieval)

    @cached_property
    def procedures(self) -> Procedures:
        """Learns procedures; approves or rejects proposed ones."""
        from memgraph.facade.learning import Procedures

        return Procedures(self.store)

    @property
    def judge(self) -> Judge | None:
        """Judges whether statements exclude each other: the given one, else the language model that extracts; None without either."""
        if self._judge is not None or (model := self.consolidation.language_model) is None:
            return self._judge
        from memgraph.extraction.llm.extractor import ModelJudge

        return ModelJudge(model)

    @cached_property
    def contradictions(self) -> Contradictions:
        """Finds contradictions and resolves them."""
        from memgraph.facade.learning import Contradictions

        return Contradictions(self.store, lambda: self.judge)

    @cached_property
    def curation(self) -> Curation:
        """A person's corrections: edit, tag, pin, merge, split and undo; the history of a memory, and where it comes from."""
        from memgraph.facade.curation import Curation

        return Curation(self.store, MemoryRetrieval(self.store, access=OWNER))

    @cached_property
    def distillation(self) -> Distillation:
        """Work orders for what rules cannot judge, and their answers."""
        from memgraph.facade.learning import Distillation
        from memgraph.lifecycle.orders import SessionWatch

        return Distillation(self.store, SessionWatch(self.store))

    @cached_property
    def tasks(self) -> Tasks:
        """Tasks with what was decided, what constrains them and what is open; pins; and the sessions that work on them."""
        from memgraph.tasks import Tasks

        return Tasks(self.store)

    @cached_property
    def maintenance(self) -> Maintenance:
        """Sleep, and each of its steps on its own."""
        from memgraph.facade.learning import Maintenance

        return Maintenance(self.store, self.consolidation, lambda: self.judge)

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        judge: Judge | None = None,
        clock: Clock | None = None,
        keys: KeyProvider | None = None,
        **config: Any,
    ) -> Self:
        """Open the store at `home` (default: ``MEMGRAPH_HOME``, else ``~/.memgraph``); create it if it does not exist.

        Parameters
        ----------
        config : Any
            Settings of `AgentMemoryConfig`.

        Raises
        ------
        MemGraphError
            The settings are invalid, or the store cannot be opened.
        """
        settings = load_config({"home": home, **config})
        store = AgentMemoryStore(settings, embedder=embedder, clock=clock, keys=keys)
        return cls(store, extractor=extractor, judge=judge)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ingest(self, reader: Reader, *, progress: Progress | None = None, compress: bool = True) -> IngestReport:
        """Read a source from where the last run stopped, and consolidate it. With `compress`, generalise and collect at the end.

        Work orders are then created for long sessions that yielded few memories. With `compress` False, call
        `distillation.request` after the last source.

        All sources that this object reads share one model budget; ``consolidation.usage.restart()`` resets it.
        """
        if not callable(getattr(reader, "records", None)):
            raise InvalidInputError("must be a reader of memgraph.extraction.readers", field="reader", value=reader)
        from memgraph.lifecycle import ingest

        checked(Callback, progress, "progress")
        watched = self.distillation.sessions.over(reader)
        report = ingest(self.store, watched, pipeline=self.consolidation, progress=progress, compress=compress)
        if compress:
            self.distillation.request()
        return report

    def recall(
        self,
        task: str,
        also: Sequence[str] = (),
        *,
        agent: str = UNNAMED,
        project: str | None = None,
        rules: Rules = "all",
        **query: Any,
    ) -> RetrievalResult:
        """Return the memories that are relevant to a task and that the agent may have, with the text to put before the prompt.

        Parameters
        ----------
        also : sequence of str
            Up to five phrases in the words that past messages would have used, such as ``["limit number of multipart form parts"]`` for
            the task "Nobody may exhaust the server with tiny fields". They are searched for together with the task.
        rules : {"all", "matching", "none"}
            Which standing rules come with them (`RetrievalResult.rules`): all that hold, those that match the task, or only the pinned
            constraints among the memories.
        query : Any
            Further fields of `RetrievalQuery`.
        """
        which = checked(Rules, rules, "rules")
        given = {"task_description": task, "also": also, "agent_name": agent, "project_id": project, **query}
        asked = RetrievalQuery.parse(given)
        found = self.retrieval.retrieve(asked)
        access = self.store.access_of(agent, asked.justification)
        return with_rules(self.store, found, scope_of(asked, access, task_id=found.task_id), which)

    def overview(self, project: str | None, *, agent: str = UNNAMED) -> AgentContext:
        """Return what an agent should know of a project before it has a task: see `memgraph.retrieval.overview`. It is no recall."""
        return project_overview(self.store, project, agent=agent)

    def build_agent_context(
        self, task: str, also: Sequence[str] = (), *, agent: str = UNNAMED, project: str | None = None, **query: Any
    ) -> AgentContext:
        """Recall memories for a task, grouped by type: semantic, episodic and procedural. The arguments are those of `recall`."""
        return agent_context(self.recall(task, also, agent=agent, project=project, **query))

    def format_context_for_prompt(
        self,
        context: AgentContext | RetrievalResult,
        *,
        format: ContextFormat = "sections",
        when_nothing: WhenNothing | None = None,
        with_ids: bool = False,
    ) -> str:
        """Return a context as text to put before a prompt; see `memgraph.retrieval`. `when_nothing` defaults to the store's setting."""
        if when_nothing is None:
            when_nothing = self.store.config.recall_when_nothing
        return format_context_for_prompt(context, format=format, when_nothing=when_nothing, with_ids=with_ids)

    def create_enriched_system_prompt(
        self, base_prompt: str, context: AgentContext | RetrievalResult, *, format: ContextFormat = "sections"
    ) -> str:
        """Return a system prompt followed by a context; see `memgraph.retrieval`."""
        return create_enriched_system_prompt(base_prompt, context, format=format)

    def remember(self, text: str, **options: Any) -> MemoryCommandResult:
        """Store a text for good; `options` are those of `MemoryCommands.remember`."""
        return self.commands.remember(text, **options)

    def search_memories(self, text: str, **options: Any) -> list[ScoredMemory]:
        """Return the best matching memories of any type; `options` are those of `MemoryRetrieval.search_memories`."""
        return self.retrieval.search_memories(text, **options)

    def record_outcome(
        self, query_id: str, outcome: str, *, used: Sequence[str] = (), overridden: Sequence[str] = ()
    ) -> dict[str, list[str]]:
        """Record the outcome of a recall, and return what was counted as ``used`` and ``overridden``.

        Each memory that was used is counted and reinforced once; standing rules that came beside the results are not.
        """
        counted = {
            name: without_given_rules(self.store, query_id, checked(list[str], ids, name))
            for name, ids in (("used", used), ("overridden", overridden))
        }
        self.store.record_outcome(query_id, outcome, **counted)
        return counted

    def save_observation(
        self,
        content: str,
        *,
        context: str | None = None,
        confidence: float = 0.7,
        episode_id: str | None = None,
        project: str | None = None,
        agent: str = UNNAMED,
        **details: Any,
    ) -> SavedObservation:
        """Store a learned fact or preference, or merge it into the memory that states the same.

        Parameters
        ----------
        context : str, optional
            The domain of the observation: only observations of the same domain are merged.
        confidence : float
            In [0, 1].
        episode_id : str, optional
            The episode it was learned from.
        agent : str
            The agent that stores it, whose permissions must include writing the domain. It is compared, and merged, only with what
            this agent may have.
        details : Any
            Further fields of `memgraph.model.agent_input.Observation`: outcome, valid_at, privacy_tier, trust_class, session_id, tags.

        Raises
        ------
        InvalidInputError, NotFoundError
            A field is invalid, or the episode does not exist. Nothing is stored.
        PermissionDeniedError
            The agent may not store memories of this domain. It is recorded.
        """
        from memgraph.lifecycle import save_observation

        given = {"content": content, "context": context, "confidence": confidence, "episode_id": episode_id}
        observation = Observation.parse({**given, "project": project, **details})
        return save_observation(self.store, observation, self.check_may_write(agent, observation.context))

    def save_episode(
        self, situation: str, reasoning: str, action: str, outcome: str, *, project: str | None = None, **details: Any
    ) -> SavedEpisode:
        """Store a complete interaction: situation, reasoning, action and outcome.

        Parameters
        ----------
        outcome : {"success", "failure", "partial", "pending"}
        details : Any
            Further fields of `memgraph.model.agent_input.Episode`: user_feedback, agent_name, mission_id, context, task_id, session_id,
            build_id, occurred_at, privacy_tier, trust_class, tags.

        Raises
        ------
        InvalidInputError
            A field is invalid. Nothing is stored.
        PermissionDeniedError
            The agent `agent_name` may not store memories of this domain. It is recorded.
        """
        from memgraph.lifecycle import save_episode, sleep_if_due

        given = {"situation": situation, "reasoning": reasoning, "action": action, "outcome": outcome}
        episode = Episode.parse({**given, "project": project, **details})
        self.check_may_write(episode.agent_name, episode.context)
        saved = save_episode(self.store, episode)
        sleep_if_due(self.store)
        return saved

    def update_episode_with_feedback(
        self, episode_id: str, feedback: str, *, comment: str | None = None, agent: str | None = None
    ) -> StoredEpisodicMemory:
        """Record user feedback on an episode: ``love`` and ``like`` make it a success and reinforce it, ``meh`` makes it a failure.

        The feedback and the comment are appended as a line to its ``user_feedback``; earlier lines are kept.

        Parameters
        ----------
        agent : str, optional
            The agent that passes it on: an episode that it may not have does not exist for it. Default: the owner.

        Raises
        ------
        InvalidInputError, NotFoundError
            The feedback is another word, or no episode has this id. Nothing is changed.
        """
        from memgraph.lifecycle import give_feedback, sleep_if_due

        if agent is not None:
            reader, may = self.store.reader, readable(self.store.access_of(agent))
            with reader.frozen():
                slot = reader.index.slot(episode_id)
                if slot < 0 or not may(reader)[slot]:
                    raise NotFoundError("episode", episode_id)
        found = give_feedback(self.store, episode_id, Feedback.parse({"feedback": feedback, "comment": comment}))
        sleep_if_due(self.store, at_once=feedback == "meh")
        return found

    def invalidate_memory(self, memory_id: str, *, reason: str, invalid_at: str | None = None) -> StoredMemory:
        """Record that a memory is no longer true from `invalid_at` on (default: now), and why. It is kept, but no longer recalled.

        Raises
        ------
        InvalidInputError, NotFoundError
            The reason is empty, `invalid_at` is not a time, or no memory has this id. Nothing is changed.
        """
        return self.store.invalidate(memory_id, reason=checked(Prose, reason, "reason"), at=invalid_at)

    def at(self, when: When, *, recorded: bool = False, progress: Progress | None = None) -> Self:
        """Return the memory as of a moment, read-only; close it after use. See `AgentMemoryStore.at`."""
        return type(self)(self.store.at(when, recorded=recorded, progress=progress))

    def as_agent(
        self, agent: str = UNNAMED, *, justification: str | None = None, progress: Progress | None = None
    ) -> Self:
        """Return the store as an agent may read it now, read-only; close it after use. See `AgentMemoryStore.as_agent`."""
        return type(self)(self.store.as_agent(agent, justification=justification, progress=progress))

    def audit(self, *, agent: str | None = None, limit: int = 100) -> list[AccessAudited]:
        """Return the latest refusals of agents' requests, and the sensitive memories that agents got with a justification, newest last."""
        return self.store.audit(agent=agent, limit=limit)

    def purge(self, ids: str | Sequence[str] = (), **what: Any) -> PurgeReceipt:
        """Remove memories and their words for good: see `AgentMemoryStore.purge`. `store.preview_purge` returns what would go."""
        return self.store.purge(ids, **what)

    def check_may_write(self, agent: str | None, domain: str | None) -> Access:
        """Return the access of an agent; reject one that may not store memories of a domain. The refusal is recorded.

        Raises
        ------
        PermissionDeniedError
        """
        access = self.store.access_of(UNNAMED if agent is None else agent)
        asked = checked(Name | None, domain, "domain") or "general"
        self.store.auditing.check_asked(access, "write", domain=asked)
        return access

    def backup(
        self, path: str | Path, *, incremental: bool = False, replace: bool = False, progress: Progress | None = None
    ) -> BackupResult:
        """Write a backup to one file, while others use the store; see `AgentMemoryStore.backup`. `memgraph.restore` restores it."""
        return self.store.backup(path, incremental=incremental, replace=replace, progress=progress)

    def health(self) -> Health:
        """Check the store: journal, graph, sizes, disk, model, working memories, sleep, near-duplicates, contradictions.

        It changes nothing. It costs a verification and a fold of the whole journal, for 10,000 memories about four seconds.

        Raises
        ------
        ReadOnlyError
            This is a view.
        """
        from memgraph.health.examination import health_of

        return health_of(self.store)

    def close(self) -> None:
        """Close the store. Idempotent."""
        self.store.close()
