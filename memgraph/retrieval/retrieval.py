"""`MemoryRetrieval`: budgeted retrieval of memories for a task, prompt prefix, and readings of the forgetting curve."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from memgraph.embedding import embed_query
from memgraph.errors import EmbeddingError, InvalidInputError
from memgraph.logs import logger_of, timed
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Finite, Limit, Name, QueryText, checked, checked_list
from memgraph.model.events.records import DecayApplied, RetrievalRecorded
from memgraph.model.ids import new_id
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, MemoryType, PrivacyTier, TrustClass, Vector
from memgraph.model.relevance import LABEL_TEXT, ConfidenceLabel, ForgettingCurveConfig, confidence_label, decayed
from memgraph.model.results.maintenance import DecayResult
from memgraph.model.results.retrieval import (
    MAX_SEARCHED_CHARS,
    RetrievalConfig,
    RetrievalQuery,
    RetrievalResult,
    ScoredMemory,
    StageReport,
)
from memgraph.model.similarity import to_vector
from memgraph.ports import Embedder, Row, TokenCounter
from memgraph.privacy import Access
from memgraph.retrieval.context.budget import count_tokens
from memgraph.retrieval.context.prefix import format_prefix
from memgraph.retrieval.pipeline import Ranking, ranked, weighted
from memgraph.retrieval.results import AskedTasks, Related, asked_tasks, lines_of, opposed_in, recorded, within_budgets
from memgraph.retrieval.stages.certainty import certainty_word
from memgraph.retrieval.stages.floor import floor_of, leading_lines
from memgraph.retrieval.stages.walk import opposed_among
from memgraph.retrieval.task_items import ItemCache, TaskItems, candidates
from memgraph.retrieval.version import ranking_of, versions_of
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope, scope_of
from memgraph.text.sentences import is_question

logger = logger_of(__name__)

_TOO_LONG = "the best memory found takes {} tokens: raise max_tokens (--max-tokens)"
_NO_PLACES = (
    "the budget has no place for the types of the memories found: raise max_episodic, max_semantic or max_procedural "
    "(--episodic, --semantic, --procedural)"
)


class MemoryRetrieval:
    """Finds memories in a store.

    Parameters
    ----------
    store : AgentMemoryStore
    embedder : Embedder, optional
        Embeds queries; default: the store's.
    config : RetrievalConfig, optional
    forgetting : ForgettingCurveConfig, optional
        Used by `calculate_decayed_relevance` and for the threshold of `apply_decay`; default: the store's. A memory's
        current relevance always follows the store's curve, and the bounds of the labels are fixed.
    token_counter : TokenCounter, optional
        Default: four characters per token.
    access : Access, optional
        Who asks, whatever a query says: the owner's own tools may search everything with `memgraph.privacy.OWNER`. Default: the
        agent of each query.
    """

    def __init__(
        self,
        store: AgentMemoryStore,
        embedder: Embedder | None = None,
        config: RetrievalConfig | None = None,
        forgetting: ForgettingCurveConfig | None = None,
        *,
        token_counter: TokenCounter = count_tokens,
        access: Access | None = None,
    ) -> None:
        self._store = store
        self._given_embedder = embedder
        self._config = config or RetrievalConfig()
        self._forgetting = forgetting or store.config.forgetting_curve
        self._count_tokens = token_counter
        self._given_access = access
        self._item_cache = ItemCache()

    def retrieve(self, query: RetrievalQuery | Mapping[str, Any]) -> RetrievalResult:
        """Return the memories that help with a task, best first, and record the retrieval.

        Of the memories with evidence that they belong to the task (the floor), selects the best of each type within the query's budget,
        then drops the lowest scored until the tokens fit. Places of a type stay empty rather than being filled with others. A saved fact
        that matches the task comes first. Pinned constraints come before everything else, within a budget of their own
        (``prompt_budget.constraints``), the shortest ones if not all fit. Without a floor, memories are grouped by type, as in seed 0.
        Every returned memory counts an access, and is reinforced at most once a day. What the agent may not have is not searched.

        Raises
        ------
        PermissionDeniedError
            The agent asks for a privacy tier of which it may have nothing, or its justification justifies nothing. It is recorded.
        InvalidInputError
            The length of the query's embedding differs from the store's.
        """
        began, query = perf_counter(), RetrievalQuery.parse(query)
        task = query.task_description[:MAX_SEARCHED_CHARS]
        text = "\n".join([*query.also, task])
        # a vector for each phrase and the task, and their mean: a text of several sentences has one that is near to none of them
        texts = [text] if is_question(task) else [*query.also, task]
        vector, notice = self._vector(texts, query.task_embedding)
        if len(task) < len(query.task_description):
            said = f"the task is long: only its first {MAX_SEARCHED_CHARS:,} characters were used for the search"
            notice = f"{said}; {notice}" if notice else said
        most = self._most(query)
        access = self._access(query.agent_name, query.justification, query.privacy_tiers)
        asked = asked_tasks(self._store, query.task_id, query.session_id, query.session, all_tasks=query.all_tasks)
        scope = scope_of(query, access, task_id=asked.task_id)
        least = floor_of(self._store, vector, query.floor)
        config = weighted(self._store, self._config, text, task)
        rank = partial(ranked, self._store, text, vector, config=config, least=least, task=task, phrases=query.also)
        identity = ranking_of(config, least, self._store.vector_model)
        items = self._items(asked.items, scope, vector)
        with self._store.reader.frozen(), timed(logger, logging.DEBUG, "ranked for a recall") as counts:
            ranking = rank(scope=scope, wanted=max(most.values()), items=items)
            ranking.keep_near()
            slots = ranking.best_of_types(most, self._limit(None, "max_task_items", "task_items"))
            counts |= {"candidates": len(ranking.search.slots), "chosen": len(slots)}
            lines = lines_of(self._store, ranking, slots, asked.task_id)
            opposed = [[ranking.id_of(slot) for slot in pair] for pair in opposed_among(ranking.search, slots)]
            held = {ranking.id_of(slot) for slot in ranking.search.constraints.tolist()}
            related = self._related(asked, scope, vector, rank)
        found = [*lines, *related.lines]
        tokens = [self._count_tokens(one.memory.content) for one in found]
        budget = self._store.config.prompt_budget.constraints
        fitting = within_budgets(found, tokens, held, budget, self._limit(query.max_tokens, "max_tokens"))
        places = fitting.places
        is_over_budget = not places and len(ranking.search.slots) > 0
        if is_over_budget and not fitting.left_out:
            why = _TOO_LONG.format(tokens[0]) if tokens else _NO_PLACES
            notice = f"{why}; {notice}" if notice else why
        if least is None:
            types = [MEMORY_TYPES.index(one.memory.type) for one in found]
            places.sort(key=lambda place: (place not in fitting.constraints, found[place].is_related, types[place]))
        chosen = [(found[place], tokens[place]) for place in places]
        memories, explanations = [one.memory for one, _ in chosen], [one.why for one, _ in chosen]
        labels = {one.memory.id: one.label for one, _ in chosen if one.label is not None}
        task_items = {one.memory.id: one.item for one, _ in chosen if one.item is not None}
        now = self._store.now()
        record = RetrievalRecorded(
            query_id=new_id(),
            query_hmac=self._store.hmac_of(query.task_description),
            retrieved_at=now,
            settings_version=identity.settings_version,
            agent_name=query.agent_name,
            project_id=query.project_id,
            session_id=query.session_id,
            task_id=asked.task_id,
            build_id=query.build_id,
            total_tokens=sum(tokens[place] for place in places),
            results=recorded(chosen),
        )
        # what is read of a linked task is not used there: nothing of it changes
        used = [one.memory for one, _ in chosen if one.item is None and not one.is_related]
        certainty = max(ranking.certainty_at_least, related.certainty)
        took_ms = 1_000 * (perf_counter() - began)
        self._store.record_retrieval(record, used, ranking=identity, duration_ms=took_ms)
        self._store.auditing.record_disclosure(access, "search", memories)
        return RetrievalResult(
            query_id=record.query_id,
            memories=memories,
            total_tokens_used=record.total_tokens,
            injected_prompt_prefix=format_prefix(memories, labels, task_items),
            retrieved_at=now,
            certainty=certainty_word(certainty),
            certainty_score=certainty,
            explanations=explanations,
            stages=[*ranking.stages, *related.stages],
            versions=versions_of(identity, self._store.vector_model),
            contradictions=opposed_in(memories, opposed),
            task_id=asked.task_id,
            labels=labels,
            related_ids=[one.memory.id for one, _ in chosen if one.is_related],
            task_items=task_items,
            is_over_budget=is_over_budget,
            constraints_left_out=fitting.left_out,
            notice=notice,
            has_phrases=bool(query.also),
        )

    def search_memories(
        self,
        text: str,
        *,
        limit: int = 10,
        embedding: Vector | Sequence[float] | None = None,
        agent: str = UNNAMED,
        justification: str | None = None,
        domain: str | None = None,
        include_archived: bool = False,
        project_id: str | None = None,
        session: str | None = None,
        session_id: str | None = None,
        task_id: str | None = None,
        global_fallback: bool = True,
        all_tasks: bool = False,
        agents: Sequence[str] | None = None,
        privacy_tiers: Sequence[PrivacyTier] | None = None,
        trust_classes: Sequence[TrustClass] | None = None,
        types: Sequence[MemoryType] | None = None,
        among: Sequence[str] | None = None,
    ) -> list[ScoredMemory]:
        """Return the best memories of any type for a text: the same ranking, without budget or access record.

        The floor removes none of them, but marks those that are only the most similar: `ScoredMemory.has_evidence`.

        Parameters
        ----------
        text : str
            The query; only the first 8,000 characters are used.
        embedding : ndarray or sequence, shape (d,), optional
            The text's vector; None: it is embedded.
        agent, justification : str, optional
            Who asks, and why it needs sensitive memories; see `RetrievalQuery`.
        domain : str, optional
            Only memories of this domain, of ``general``, and without a domain.
        project_id, session, session_id, task_id, global_fallback, all_tasks, agents, privacy_tiers, trust_classes : optional
            As in `RetrievalQuery`.
        types : sequence of str, optional
            Only memories of these types.
        among : sequence of str, optional
            Only memories with these ids.
        include_archived : bool
            Include archived memories; deleted, suppressed and invalid ones are never found.

        Raises
        ------
        InvalidInputError
            Names the invalid argument.
        PermissionDeniedError
            The agent asks for a tier or domain of which it may have nothing, or its justification justifies nothing.
        """
        text, limit = checked(QueryText, text, "text"), checked(Limit, limit, "limit")
        if not text.strip() and embedding is None:
            raise InvalidInputError("is empty: give a text to search for", field="text", value=text)
        privacy_tiers = checked(list[PrivacyTier] | None, privacy_tiers, "privacy_tiers")
        domain = checked(Name | None, domain, "domain")
        access = self._access(agent, justification, privacy_tiers, domain)
        session, all_tasks = checked(Name | None, session, "session"), checked(bool, all_tasks, "all_tasks")
        task_id, session_id = checked(Name | None, task_id, "task_id"), checked(Name | None, session_id, "session_id")
        asked = asked_tasks(self._store, task_id, session_id, session, all_tasks=all_tasks)
        scope = Scope(
            access=access,
            project_id=checked(Name | None, project_id, "project_id"),
            asking_session=session_id,
            session=session,
            task_id=asked.task_id,
            global_fallback=checked(bool, global_fallback, "global_fallback"),
            all_tasks=all_tasks,
            agents=checked(list[Name] | None, agents, "agents"),
            privacy_tiers=privacy_tiers,
            trust_classes=checked(list[TrustClass] | None, trust_classes, "trust_classes"),
            domain=domain,
            types=checked(list[MemoryType] | None, types, "types"),
            among=checked(list[str] | None, among, "among"),
            include_archived=checked(bool, include_archived, "include_archived"),
        )
        text = text[:MAX_SEARCHED_CHARS]
        vector, _ = self._vector([text], _as_vector(embedding))
        least, items = floor_of(self._store, vector), self._items(asked.items, scope, vector)
        rank = partial(ranked, self._store, text, vector, config=self._config, least=least)
        with self._store.reader.frozen():
            ranking = rank(scope=scope, wanted=limit, items=items)
            lines = lines_of(self._store, ranking, ranking.best(limit), asked.task_id)
            lines += self._related(asked, scope, vector, rank).lines[: limit - len(lines)]
        self._store.auditing.record_disclosure(access, "search", [one.memory for one in lines])
        return [
            ScoredMemory(
                memory=one.memory,
                score=one.why.score,
                match_type=one.why.match_type,
                has_evidence=one.has_evidence,
                label=one.label,
                task_item=one.item,
            )
            for one in lines
        ]

    def format_injected_prefix(self, memories: Sequence[AgentMemory]) -> str:
        """Return the text to put before a prompt, in seed 0's format; empty without memories."""
        return format_prefix(checked_list(AgentMemory, memories, "memories"))

    def apply_decay(self) -> DecayResult:
        """Evaluate the curve for all memories and record the run. Memories do not change: it is idempotent."""
        with self._store.reader.frozen():
            relevance = self._store.reader.relevance()
            mask = self._store.reader.listed() & ~self._store.reader.index.column("is_pinned")
            below = int((relevance[mask] < self._forgetting.deletion_threshold).sum())
        result = DecayResult(updated=int(mask.sum()), below_threshold=below)
        event = DecayApplied(applied_at=self._store.now(), updated=result.updated, below_threshold=below)
        self._store.commit("system", [event], actor="system")
        return result

    def calculate_decayed_relevance(self, initial: float, days: float, is_pinned: bool) -> float:
        """Return an episode's relevance after `days` without access; a pinned one stays at 1.0 (seed 0)."""
        initial, days = checked(Finite, initial, "initial"), checked(Finite, days, "days")
        return decayed(initial, days, rate=self._forgetting.decay_rate, is_pinned=is_pinned)

    def get_confidence_label(self, relevance: float) -> ConfidenceLabel:
        """Return the label of a relevance: clear ≥ 0.8, recall ≥ 0.5, vague ≥ 0.2, else none."""
        return confidence_label(checked(Finite, relevance, "relevance"))

    def get_confidence_text(self, label: ConfidenceLabel) -> str:
        """Return the sentence for a label."""
        return LABEL_TEXT[checked(ConfidenceLabel, label, "label")]

    def _access(
        self,
        agent: str,
        justification: str | None,
        tiers: Sequence[PrivacyTier] | None,
        domain: str | None = None,
    ) -> Access:
        """Return who asks; reject what the agent can never have."""
        access: Access = self._given_access or self._store.access_of(agent, justification)
        self._store.auditing.check_asked(access, "search", tiers=tiers, domain=domain)
        return access

    @property
    def _embedder(self) -> Embedder:
        return self._given_embedder or self._store.embedder  # the store may have changed its embedder

    def _vector(self, texts: Sequence[str], given: Vector | None) -> tuple[Vector | None, str | None]:
        """Return the given vector, else the mean of the texts' vectors, and a notice if there is none."""
        wanted = self._store.vector_model.dimension
        if given is not None and wanted:
            if given.shape != (wanted,):
                raise InvalidInputError(f"must have {wanted} dimensions", field="embedding", value=given.size)
            return given, None
        texts = [text for text in texts if text.strip()]
        if not texts or not self._embedder.dimension:
            return None, None
        try:
            self._store.check_embedder(self._embedder)
            mean: Vector = np.mean([embed_query(self._embedder, text) for text in texts], axis=0)
            return mean, None
        except EmbeddingError as error:
            return None, f"text search only: {error}"

    def _items(self, rows: Sequence[Row], scope: Scope, vector: Vector | None) -> TaskItems:
        """Return the items that a query may score."""
        return candidates(rows, scope, self._item_cache, None if vector is None else self._embedder)

    def _related(self, asked: AskedTasks, scope: Scope, vector: Vector | None, rank: Callable[..., Ranking]) -> Related:
        """Return what the linked tasks give: the same pipeline over them alone, so that they change nothing in the task's own ranking."""
        most = self._limit(None, "max_related", "related")
        if not asked.linked or not most:
            return Related()
        linked = replace(scope, task_id=None, linked=asked.linked)
        items = self._items(asked.linked_items, linked, vector)
        ranking = rank(scope=linked, wanted=most, items=items)
        ranking.keep_near()
        lines = lines_of(self._store, ranking, leading_lines(ranking.search, ranking.best(most)))
        stage = StageReport(stage="related", counts={"tasks": len(asked.linked), "chosen": len(lines)})
        return Related(lines, ranking.certainty_at_least if lines else 0.0, [stage])

    def _most(self, query: RetrievalQuery) -> dict[int, int]:
        asked = (query.max_episodic, query.max_semantic, query.max_procedural)
        return {code: self._limit(asked[code], f"max_{kind}", kind) for code, kind in enumerate(MEMORY_TYPES)}

    def _limit(self, asked: int | None, name: str, setting: str | None = None) -> int:
        """Return the query's limit, else this object's, else the store's."""
        for limit in (asked, getattr(self._config, name)):
            if limit is not None:
                return int(limit)
        return int(getattr(self._store.config.retrieval_budget, setting or name))


def _as_vector(embedding: Vector | Sequence[float] | None) -> Vector | None:
    try:
        return None if embedding is None else to_vector(embedding)
    except ValueError as error:
        raise InvalidInputError(str(error), field="embedding", value=embedding) from None
