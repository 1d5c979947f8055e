"""`MemoryCommands`: the commands of a user: remember, forget, unforget, ask, list, show, stats, export, import."""

from __future__ import annotations

import builtins
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar

import numpy as np

from memgraph.embedding import embed_each, embed_query
from memgraph.errors import DuplicateIdError, EmbeddingError, InvalidInputError, NotFoundError
from memgraph.extraction.secrets import kinds_of_secrets
from memgraph.fold.fold import other_wordings
from memgraph.index.columns import FACT_TAG
from memgraph.index.index import superseded
from memgraph.lifecycle.dedup.near_duplicates import NEAR_DUPLICATE, copies_of
from memgraph.lifecycle.intake.observations import remember_text
from memgraph.logs import logger_of
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Callback, Limit, Name, QueryText, checked
from memgraph.model.ids import new_id
from memgraph.model.link import Link
from memgraph.model.memory import (
    MEMORY_TYPES,
    AgentMemory,
    EpisodicMemory,
    MemoryType,
    PrivacyTier,
    StoredMemory,
    TrustClass,
    Vector,
    parse_memory,
)
from memgraph.model.relevance import confidence_label
from memgraph.model.results.curation import (
    EXPORT_VERSION,
    MemoryCommandResult,
    MemoryExport,
    MemoryListEntry,
    MemoryStats,
    State,
)
from memgraph.model.results.retrieval import RetrievalQuery
from memgraph.model.timestamps import age, to_iso
from memgraph.ports import Embedder, Progress
from memgraph.privacy import OWNER, classified
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.context.task_labels import label_before, labelled
from memgraph.retrieval.likeness import holding, likeness
from memgraph.retrieval.pipeline import near_ids
from memgraph.retrieval.stages.rank import best
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import scope_of, task_of
from memgraph.store.access.visibility import INCLUDABLE, shown, visible
from memgraph.store.commit.records import VectorModel
from memgraph.tasks.pins import Pins
from memgraph.text.cutting import preview, shortened

logger = logger_of(__name__)

SortBy = Literal["relevance", "created", "accessed"]
_FORGET_ABOVE = 0.5
_LIKE_AN_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F-]*)?")
_ASK_MOST = 5
_ONLY_SIMILAR = "This is only similar; nothing shows that it belongs to the question"
_NO_SUCH_WORDS = "Without an embedding model only words are compared, and no memory shares enough of them: use the memory's own words."


class MemoryCommands:
    """Commands on a store, by default with its own embedder."""

    def __init__(
        self, store: AgentMemoryStore, embedder: Embedder | None = None, retrieval: MemoryRetrieval | None = None
    ) -> None:
        self._store = store
        self._given_embedder = embedder
        self._retrieval = retrieval or MemoryRetrieval(store, embedder)

    def remember(
        self,
        text: str,
        tags: Sequence[str] | None = None,
        *,
        project_id: str | None = None,
        privacy_tier: PrivacyTier | None = None,
        domain: str | None = None,
        agent: str | None = None,
        fact: bool = False,
    ) -> MemoryCommandResult:
        """Store a text as a pinned semantic memory. A long text is split into linked parts.

        It is a standing rule, preference or constraint, which agents get whatever their task is, unless it is only a fact.

        A text that was remembered before is not stored again, but in force again if it was forgotten; what it contradicts is replaced.
        While another process holds the graph, both wait for the next sleep. Secrets are redacted first. The privacy tier, unless it is
        given, follows from the domain and the text.

        `data` has ``ids``, the kinds of secrets as ``redacted``, the ``action`` (created, known or restored), the ids that it ``replaced``,
        and the ``event`` that changed a known text, if one did.

        Parameters
        ----------
        agent : str, optional
            The agent that saves it for the user: it is trusted as an agent's, is compared only with what that agent may have, and
            restores nothing that was forgotten. Default: the user saves it.
        fact : bool
            It is no standing rule, and has the tag ``fact``: it is recalled if it concerns the task.

        Raises
        ------
        InvalidInputError
            The text is empty or cannot be stored, or a tag is invalid.
        PermissionDeniedError
            The agent may not store memories of the domain. It is recorded.
        """
        text = checked(QueryText, text, "text")
        given = checked(list[Name] | None, tags, "tags") or []
        kinds = kinds_of_secrets([text, *given, project_id]) if self._store.config.redact_secrets else []
        text = self._store.without_secrets(text)  # before the text is split: a part of a secret would not be recognised
        access = OWNER if agent is None else self._store.access_of(agent)
        self._store.auditing.check_asked(access, "write", domain=checked(Name | None, domain, "domain") or "general")
        privacy_tier = checked(PrivacyTier | None, privacy_tier, "privacy_tier")
        given = [*given, FACT_TAG] if checked(bool, fact, "fact") else given
        message, data = remember_text(
            self._store, text, tags=given, project_id=project_id, access=access, domain=domain, tier=privacy_tier
        )
        return _done("remember", message, redacted=kinds, **data)

    def forget(self, query: str, *, dry_run: bool = False, pins: bool = False) -> MemoryCommandResult:
        """Suppress the memory with an id, or the listed memory that best matches a text.

        A memory that contains the text literally is preferred. Otherwise the most similar memory is chosen, if their cosine
        similarity is above 0.5; without vectors, the similarity of their words. A prefix of eight or more characters stands for
        an id if it is unique.

        Parameters
        ----------
        dry_run : bool
            Change nothing; the result names the memory that would be forgotten.
        pins : bool
            Remove a pin (`memgraph.tasks`), too; otherwise it is refused.
        """
        memory_id, why_not = self._meant(query)
        if memory_id is None:
            return MemoryCommandResult(command="forget", success=False, message=why_not)
        found = self._store.reader.known(memory_id)
        what = f"'{preview(found.content)}'"
        if found.is_suppressed:
            return _done("forget", f"{what} is forgotten already.", id=found.id)
        if dry_run:
            return _done("forget", f"Would forget: {what} ({found.id}); nothing was changed", id=found.id, dry_run=True)
        self._suppress(found.id, True, pins=pins)
        return _done("forget", f"Forgot: {what}; undo: memgraph unforget {found.id}", id=found.id)

    def unforget(self, query: str) -> MemoryCommandResult:
        """Undo `forget` for the memory with an id, or for the suppressed memory that best matches a text (as in `forget`)."""
        memory_id, why_not = self._meant(query, "suppressed")
        if memory_id is None:
            return MemoryCommandResult(command="unforget", success=False, message=why_not)
        known = self._store.reader.known(memory_id)
        self._suppress(known.id, False)
        what = f"'{preview(known.content)}'"
        message = f"No longer forgotten: {what}; undo: memgraph forget {known.id}"
        return _done("unforget", message if known.is_suppressed else f"{what} is not forgotten.", id=known.id)

    def _suppress(self, memory_id: str, is_suppressed: bool, *, pins: bool = False) -> None:
        """Suppress a memory and its copies, or undo that."""
        ids = [memory_id, *copies_of(self._store, memory_id)]
        if pins:
            Pins(self._store).forget(ids)
        self._store.curation.change(ids, lambda *_: {"is_suppressed": is_suppressed})

    def ask(
        self,
        query: str,
        *,
        agent: str = UNNAMED,
        justification: str | None = None,
        project_id: str | None = None,
        session: str | None = None,
        session_id: str | None = None,
        task_id: str | None = None,
        global_fallback: bool = True,
        all_tasks: bool = False,
        agents: Sequence[str] | None = None,
        privacy_tiers: Sequence[PrivacyTier] | None = None,
        trust_classes: Sequence[TrustClass] | None = None,
    ) -> MemoryCommandResult:
        """Return up to five episodes that match a question, most similar first, each with a label of its relevance.

        Only what the agent may have is searched; see `MemoryRetrieval.search_memories`. Without vectors, only episodes that share a word with the question match. Asking does not count as use.

        The other arguments restrict it as in `RetrievalQuery`.
        """
        vector = self._vector(query)
        asked = RetrievalQuery.parse(
            {
                "agent_name": agent,
                "justification": justification,
                "project_id": project_id,
                "session": session,
                "session_id": session_id,
                "task_id": task_id,
                "global_fallback": global_fallback,
                "all_tasks": all_tasks,
                "agents": agents,
                "privacy_tiers": privacy_tiers,
                "trust_classes": trust_classes,
            }
        )
        access = self._store.access_of(asked.agent_name, asked.justification)
        self._store.auditing.check_asked(access, "search", tiers=asked.privacy_tiers)
        sessions = (asked.session_id, asked.session)
        task = task_of(self._store.reader, asked.task_id, *sessions, all_tasks=asked.all_tasks)
        scope = scope_of(asked, access, task_id=task)
        with self._store.reader.frozen():
            index = self._store.reader.index
            shared = visible(self._store.reader, access, "search", scope=scope)
            episodes = shared & ~superseded(index, shared) & (index.column("type") == MEMORY_TYPES.index("episodic"))
            scores, near = likeness(self._store, query, vector, episodes)
            nearest = [index.ids.names[slot] for slot in best(index, scores, np.flatnonzero(near), _ASK_MOST)]
            evident = near_ids(self._store, query, vector, scope, nearest)
            memories = self._store.read_memories(nearest)
        self._store.auditing.record_disclosure(access, "search", memories)
        if not memories:
            message = f"{self._retrieval.get_confidence_text('none')}."
            if vector is None and episodes.any():
                message = f"{message} {_NO_SUCH_WORDS}"
            return _done("ask", message, ids=[])
        lines = [
            label_before(memory, scope.task_id) + self._described(memory, is_evident=memory.id in evident)
            for memory in memories
        ]
        with_evidence = [one for one in nearest if one in evident]
        return _done("ask", "\n".join(lines), ids=[memory.id for memory in memories], with_evidence=with_evidence)

    def list(
        self,
        *,
        type: MemoryType | None = None,
        project: str | None = None,
        include_suppressed: bool = False,
        state: State | None = None,
        limit: int = 20,
        sort_by: SortBy = "relevance",
        session: str | None = None,
        task_id: str | None = None,
        agents: Sequence[str] | None = None,
        privacy_tiers: Sequence[PrivacyTier] | None = None,
        trust_classes: Sequence[TrustClass] | None = None,
        domain: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[MemoryListEntry]:
        """Return an entry for each listed memory, or for each memory in a state; highest relevance or newest first.

        The arguments are those of `AgentMemoryStore.list_memories`.
        """
        memories = self._store.list_memories(
            type=checked(MemoryType | None, type, "type"),
            project_id=checked(Name | None, project, "project"),
            include_suppressed=checked(bool, include_suppressed, "include_suppressed"),
            state=checked(State | None, state, "state"),
            limit=checked(Limit, limit, "limit"),
            by=checked(SortBy, sort_by, "sort_by"),
            session=session,
            task_id=task_id,
            agents=agents,
            privacy_tiers=privacy_tiers,
            trust_classes=trust_classes,
            domain=domain,
            ids=ids,
        )
        with self._store.reader.frozen():
            replaced, slot_of = self._store.reader.superseded(), self._store.reader.index.slot
            superseded_ids = {memory.id for memory in memories if replaced[slot_of(memory.id)]}
        return [self._entry(memory, is_superseded=memory.id in superseded_ids) for memory in memories]

    def show(self, id: str) -> StoredMemory | None:
        """Return a memory, or None if it does not exist or was deleted."""
        return self._store.get_memory(checked(str, id, "id"))

    def wordings(self, id: str) -> builtins.list[str]:
        """Return the other wordings of a memory: its duplicates', and its own that theirs replaced. Reads the whole journal."""
        memory = self.show(id)
        if memory is None or memory.updated_at == memory.created_at:  # nothing was merged into it
            return []
        links = [one for one in self._store.links(memory.id) if one.reason == NEAR_DUPLICATE]
        others = self._store.read_memories([one.target_id for one in links if one.target_id != memory.id])
        stored = [one.content for one in others if not one.is_suppressed and one.content != memory.content]
        return [*dict.fromkeys([*other_wordings(self._store.reader.history(memory.id), memory.id), *stored])]

    def stats(self) -> MemoryStats:
        """Return the counts of the store."""
        return self._store.get_stats()

    def export_memories(self, *, shareable: bool = False, progress: Progress | None = None) -> MemoryExport:
        """Return a backup: every memory that is not deleted, with its vector and its links. Importing it yields an equal digest.

        Suppressed memories and memories derived from them are included and stay hidden after an import. In an export of a past view,
        memories that were deleted since are excluded.

        Parameters
        ----------
        shareable : bool
            Exclude suppressed, archived, sensitive and private memories, and memories derived from them, as pages and charts do
            (see `memgraph.store.access.visibility`).
        progress : callable, optional
            Called with the number of memories read and of all.
        """
        checked(Callback, progress, "progress")
        store = self._store
        store.check_graph()
        reader, model = store.reader, store.vector_model
        with reader.frozen():
            index = reader.index
            slots = np.flatnonzero(shown(reader, include=() if shareable else INCLUDABLE))
            in_order = slots[np.argsort(index.column("seq")[slots], kind="stable")]
            ids = dict.fromkeys(index.ids.names[slot] for slot in in_order.tolist())
            memories: builtins.list[StoredMemory] = []
            for portion in _portions(builtins.list(ids), _READ_AT_ONCE):
                memories += reader.read(portion)
                if progress:
                    progress(len(memories), len(ids))
            links = [link for link in store.every_link() if link.source_id in ids and link.target_id in ids]
        if shareable:
            memories = [_without_others(memory, ids) for memory in memories]
        return MemoryExport(
            version=EXPORT_VERSION,
            exported_at=store.now(),
            total_memories=len(memories),
            memories=memories,
            links=links,
            embedding_model=model.name if model.dimension else None,
        )

    def import_memories(
        self, data: MemoryExport | Mapping[str, Any], *, progress: Progress | None = None
    ) -> MemoryCommandResult:
        """Add the memories and links of an export that do not exist yet, in one commit for each write scope.

        A memory's `supporting_memory_ids` become links where the export has none and the ids exist, in the export or the
        store. Vectors of another model are discarded and the texts embedded again; a store without a model stores only the
        texts. If the process is killed during the write, import again.

        Parameters
        ----------
        progress : callable, optional
            Called with the number of texts embedded and of those to embed, which takes most of the time; the commit follows.

        Returns
        -------
        MemoryCommandResult
            An invalid export is refused as a whole: `success` is false, the message names the field and the value, and
            ``data["field"]`` the field (None for an id that occurs twice).

        Raises
        ------
        InvalidInputError
            `data` is neither an export nor a mapping.
        """
        checked(Callback, progress, "progress")
        if not isinstance(data, MemoryExport | Mapping):
            raise InvalidInputError(
                "must be an export: a mapping with version and memories", field="export", value=data
            )
        try:
            export = data if isinstance(data, MemoryExport) else MemoryExport.parse(_with_memories(data))
            return _import(self._store, export, progress)
        except (InvalidInputError, DuplicateIdError) as error:
            refused = {"imported": 0, "skipped": 0, "field": getattr(error, "field", None)}
            message = f"Nothing was imported: {error}"
            return MemoryCommandResult(command="import", success=False, message=message, data=refused)

    def format_age(self, iso_timestamp: str) -> str:
        """Return the age of a time: ``just now``, ``5 minutes ago``, … ``2 years ago``."""
        try:
            return age(to_iso(iso_timestamp), self._store.now())
        except ValueError:
            raise InvalidInputError("is not an ISO 8601 time", field="iso_timestamp", value=iso_timestamp) from None

    def _meant(self, query: str, state: State | None = None) -> tuple[str | None, str]:
        """Return the id of the memory that an id or a text refers to, among the listed memories or those in a state; else None and why."""
        query = checked(QueryText, query, "query")
        if _LIKE_AN_ID.fullmatch(query.strip()):
            with suppress(NotFoundError):
                return self._store.find_id(query), ""
        vector = self._vector(query)
        with self._store.reader.frozen():
            index = self._store.reader.index
            listed = self._store.reader.listed(state=state)
            literal = holding(self._store, query, listed)
            if (in_force := literal & ~self._store.reader.superseded()).any():
                literal = in_force
            scores, near = likeness(self._store, query, vector, literal if literal.any() else listed)
            meant = literal if literal.any() else near & (scores > _FORGET_ABOVE)
            nearest = [index.ids.names[slot] for slot in best(index, scores, np.flatnonzero(meant), 1)]
        if nearest:
            return nearest[0], ""
        kind = f"{state} memory" if state else "memory"
        return None, f"No {kind} matches that closely enough." if vector is not None else _NO_SUCH_WORDS

    def _vector(self, query: str) -> Vector | None:
        """Return a query's vector, or None if only words can be compared: in text-only mode, or, with a warning, if embedding fails."""
        text = checked(QueryText, query, "query")
        embedder = self._given_embedder or self._store.embedder  # the store may have changed to another one
        try:
            self._store.check_embedder(embedder)
            return embed_query(embedder, text) if embedder.dimension else None
        except EmbeddingError as error:
            logger.warning("comparing words only: %s", error.loggable)
            return None

    def _described(self, memory: StoredMemory, *, is_evident: bool) -> str:
        age = self.format_age(memory.occurred_at)
        content = labelled(memory.content, memory.trust_class)
        if not is_evident:
            return f"{_ONLY_SIMILAR} ({age}): {content}"
        label = self._retrieval.get_confidence_label(memory.relevance_score)
        # the sentence for "none" says that there is no memory, and here is one
        said = self._retrieval.get_confidence_text("vague" if label == "none" else label)
        return f"{said} ({age}): {content}"

    def _entry(self, memory: StoredMemory, *, is_superseded: bool) -> MemoryListEntry:
        is_invalid = memory.invalid_at is not None and memory.invalid_at <= self._store.now()
        states: tuple[tuple[bool, State], ...] = (
            (memory.is_suppressed, "suppressed"),
            (memory.archived_at is not None, "archived"),
            (is_invalid, "invalidated"),
            (is_superseded, "superseded"),
        )
        return MemoryListEntry(
            id=memory.id,
            type=memory.type,
            content=shortened(memory.content),
            relevance_score=memory.relevance_score,
            confidence_label=confidence_label(memory.relevance_score),
            outcome=memory.outcome,
            age=self.format_age(memory.occurred_at),
            access_count=memory.access_count,
            is_pinned=memory.is_pinned,
            privacy_tier=memory.privacy_tier,
            states=[state for holds, state in states if holds],
        )


T = TypeVar("T")
_READ_AT_ONCE = 1_000
_EMBEDDED_AT_ONCE = 64


def _done(command: str, message: str, **data: Any) -> MemoryCommandResult:
    return MemoryCommandResult(command=command, success=True, message=message, data=data)


def _import(store: AgentMemoryStore, export: MemoryExport, progress: Progress | None) -> MemoryCommandResult:
    _check(export)
    new = [memory for memory in export.memories if memory.id is None or store.get_memory(memory.id) is None]
    new = [memory.model_copy(update={"id": memory.id or new_id()}) for memory in new]
    links = _new_links(store, export)
    sources, unknown = _sources(store, export, new)
    model = store.vector_model
    bare = [_bare(memory, keep_vector=_is_from(memory, export.embedding_model, model)) for memory in new]
    store.import_memories(_embedded(store, bare, progress) if progress else bare, [*links, *sources])
    skipped = len(export.memories) - len(new)
    message = f"Imported {len(new)} memories, skipped {skipped} that already existed."
    if raised := sum(_is_raised(memory) for memory in new):
        are = "is" if raised == 1 else "are"
        message += f" {raised} {are} not public because of their domain or text; `memgraph list --tier private --tier sensitive` shows them."
    if unknown:
        ids = "supporting id" if unknown == 1 else "supporting ids"
        message += f" Left out {unknown} {ids} that no memory has."
    return _done("import", message, imported=len(new), skipped=skipped)


def _embedded(store: AgentMemoryStore, memories: Sequence[AgentMemory], progress: Progress) -> list[AgentMemory]:
    """Return the memories with their vectors, computed in portions; what fails is left to the store, which reports it."""
    memories = [store.without_secrets(memory) for memory in memories]  # the stored text is the one to embed
    lacking = [place for place, memory in enumerate(memories) if memory.embedding is None]
    if not store.embedder.dimension:
        return memories
    done = 0
    for portion in _portions(lacking, _EMBEDDED_AT_ONCE):
        try:
            vectors = embed_each(store.embedder, [memories[place].content for place in portion])
        except EmbeddingError:
            break  # the model does not work: the store says so, once
        for place, vector in zip(portion, vectors, strict=True):
            if not isinstance(vector, EmbeddingError):
                memories[place] = memories[place].model_copy(update={"embedding": vector})
        done += len(portion)
        progress(done, len(lacking))
    return memories


def _portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _sources(store: AgentMemoryStore, export: MemoryExport, new: Sequence[AgentMemory]) -> tuple[list[Link], int]:
    """Return the links to new memories' sources that the export names in the memory alone, and the number of unknown ids.

    Seed 0's exports have no links: a generalisation lists the ids of its episodes.
    """
    given = {_ends(link) for link in export.links}
    ids = {memory.id for memory in [*export.memories, *new]}
    made: dict[tuple[str, str, str], Link] = {}
    unknown = 0
    for memory in new:
        for source in () if isinstance(memory, EpisodicMemory) else memory.supporting_memory_ids:  # type: ignore[attr-defined]
            supports = Link.parse({"source_id": source, "relation": "SUPPORTS", "target_id": memory.id})
            derived = Link.parse({"source_id": memory.id, "relation": "DERIVED_FROM", "target_id": source})
            if _ends(supports) in given:
                continue
            if source == memory.id:
                raise InvalidInputError("names the memory itself", field="supporting_memory_ids", value=source)
            if source in ids or store.get_memory(source) is not None:
                made |= {_ends(link): link for link in (derived, supports) if _ends(link) not in given}
            else:
                unknown += 1
    return list(made.values()), unknown


def _new_links(store: AgentMemoryStore, export: MemoryExport) -> list[Link]:
    """Return the links that do not exist yet, without repetitions."""
    if not export.links:
        return []
    known = {_ends(link) for link in store.every_link()}
    ends = {memory.id for memory in export.memories}
    new = []
    for place, link in enumerate(export.links):
        for name in ("source_id", "target_id"):
            end = getattr(link, name)
            if end not in ends and store.get_memory(end) is None:
                problem = "is the end of a link, but no memory in the export or the store has this id"
                raise InvalidInputError(problem, field=f"links.{place}.{name}", value=end)
            ends.add(end)
        if _ends(link) not in known:
            known.add(_ends(link))
            new.append(link)
    return new


def _ends(link: Link) -> tuple[str, str, str]:
    return link.source_id, link.relation, link.target_id


def _without_others(memory: StoredMemory, ids: Container[str | None]) -> StoredMemory:
    """Return a memory without references to memories that are not exported with it."""
    updates: dict[str, Any] = {"previous_id": memory.previous_id if memory.previous_id in ids else None}
    if not isinstance(memory, EpisodicMemory):
        updates["supporting_memory_ids"] = [one for one in memory.supporting_memory_ids if one in ids]  # type: ignore[attr-defined]
    return memory.model_copy(update=updates)


def _with_memories(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an export's mapping with its memories parsed by their types."""
    memories = data.get("memories")
    if not isinstance(memories, list):
        raise InvalidInputError("must be a list", field="memories", value=memories)
    parsed = []
    for place, memory in enumerate(memories):
        try:
            parsed.append(parse_memory(memory))
        except InvalidInputError as error:
            raise InvalidInputError(error.problem, field=f"memories.{place}.{error.field}", value=error.value) from None
    return {**data, "memories": parsed}


def _is_raised(memory: AgentMemory) -> bool:
    """Return whether the store gives a memory a stricter privacy tier than public, since the export names none."""
    return "privacy_tier" not in memory.model_fields_set and classified(memory).privacy_tier != "public"


def _is_from(memory: AgentMemory, embedding_model: str | None, model: VectorModel) -> bool:
    """Return whether an imported vector is one of the store's model; without the model's name, its length decides."""
    if memory.embedding is None or not model.dimension:
        return False
    return model.name == embedding_model or (embedding_model is None and len(memory.embedding) == model.dimension)


def _bare(memory: AgentMemory, *, keep_vector: bool) -> AgentMemory:
    """Return a memory without the fields that links express, and without another model's vector."""
    updates: dict[str, Any] = {} if keep_vector else {"embedding": None}
    if not isinstance(memory, EpisodicMemory):
        updates["supporting_memory_ids"] = []
    return memory.model_copy(update=updates)


def _check(export: MemoryExport) -> None:
    if export.version != EXPORT_VERSION:
        raise InvalidInputError(f"must be {EXPORT_VERSION}", field="version", value=export.version)
    if export.total_memories != len(export.memories):
        raise InvalidInputError(
            f"does not fit the {len(export.memories)} memories: the file may be cut off",
            field="total_memories",
            value=export.total_memories,
        )
    seen: set[str] = set()
    for memory in export.memories:
        if memory.id is None:
            continue
        if memory.id in seen:
            raise DuplicateIdError(memory.id, where="in the export twice")
        seen.add(memory.id)
