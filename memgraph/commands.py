"""`MemoryCommands`: the commands of a user: remember, forget, unforget, ask, list, show, stats, export, import."""

from __future__ import annotations

import builtins
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from memgraph.embedding import embed_query
from memgraph.errors import DuplicateIdError, EmbeddingError, InvalidInputError, NotFoundError
from memgraph.index.supersession import superseded
from memgraph.lifecycle.dedup.copies import merge_copies_of
from memgraph.logs import logger_of
from memgraph.model.base import Limit, Name, QueryText, checked
from memgraph.model.link import Link
from memgraph.model.memory import (
    MEMORY_TYPES,
    AgentMemory,
    EpisodicMemory,
    MemoryType,
    SemanticMemory,
    StoredMemory,
    Vector,
    parse_memory,
)
from memgraph.model.relevance import confidence_label
from memgraph.model.results.listing import (
    EXPORT_VERSION,
    MemoryCommandResult,
    MemoryExport,
    MemoryListEntry,
    MemoryStats,
)
from memgraph.model.timestamps import age, to_iso
from memgraph.ports import Embedder
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.likeness import holding, likeness
from memgraph.retrieval.stages.rank import best
from memgraph.store import AgentMemoryStore
from memgraph.store.visibility import INCLUDABLE, shown
from memgraph.text.cutting import preview, split_text

logger = logger_of(__name__)

SortBy = Literal["relevance", "created", "accessed"]
State = Literal["suppressed", "archived", "invalidated", "superseded"]
_FORGET_ABOVE = 0.5
_LIKE_AN_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F-]*)?")
_ASK_MOST = 5
_SHOWN_CHARS = 80
_NO_SUCH_WORDS = "Without an embedding model only words are compared, and no memory shares enough of them: use the memory's own words."


class MemoryCommands:
    """Commands on a store.

    Parameters
    ----------
    store : AgentMemoryStore
    embedder : Embedder, optional
        Default: the store's.
    retrieval : MemoryRetrieval, optional
    """

    def __init__(
        self, store: AgentMemoryStore, embedder: Embedder | None = None, retrieval: MemoryRetrieval | None = None
    ) -> None:
        self._store = store
        self._given_embedder = embedder
        self._retrieval = retrieval or MemoryRetrieval(store, embedder)

    def remember(
        self, text: str, tags: Sequence[str] | None = None, *, project_id: str | None = None
    ) -> MemoryCommandResult:
        """Store a text as a pinned semantic memory. A long text is split into linked parts.

        Raises
        ------
        InvalidInputError
            The text is empty or cannot be stored, or a tag is invalid.
        """
        text = checked(QueryText, text, "text")
        given = checked(list[Name] | None, tags, "tags") or []
        parts = split_text(text) if text.strip() else [text]
        memories: list[AgentMemory] = [
            SemanticMemory(
                content=part,
                tags=given,
                outcome="positive",
                is_pinned=True,
                trust_class="user",
                project_id=project_id,
                reason="the user asked to remember it",
                source="remember",
            )
            for part in parts
        ]
        kept = self._store.insert_parts(memories, actor="user")
        ids = [memory.id for memory in kept]
        # do not wait for the graph: remaining copies are merged by the next sleep
        stays = merge_copies_of(self._store, ids) if self._store.reader.holds_graph else {}
        stored = kept[0].content  # without secrets, unlike `text`
        message = f"Remembered: '{_cut(stored.strip(), _SHOWN_CHARS)}' (pinned, will not decay)"
        return MemoryCommandResult(
            command="remember",
            success=True,
            message=message,
            data={"ids": [stays.get(one, one) for one in ids]},
        )

    def forget(self, query: str, *, dry_run: bool = False) -> MemoryCommandResult:
        """Suppress the memory with an id, or the listed memory that best matches a text.

        A memory that contains the text literally is preferred. Otherwise the most similar memory is chosen, if their cosine
        similarity is above 0.5; without vectors, the similarity of their words. A prefix of eight or more characters stands for
        an id if it is unique.

        Parameters
        ----------
        dry_run : bool
            Change nothing; the result names the memory that would be forgotten.
        """
        memory_id, why_not = self._meant(query)
        if memory_id is None:
            return MemoryCommandResult(command="forget", success=False, message=why_not)
        if dry_run:
            found = self._store.reader.known(memory_id)
            message = f"Would forget: '{preview(found.content)}' ({found.id}); nothing was changed"
            data = {"id": found.id, "dry_run": True}
            return MemoryCommandResult(command="forget", success=True, message=message, data=data)
        memory = self._store.curation.states.suppress(memory_id)
        message = f"Forgot: '{preview(memory.content)}'; undo: memgraph unforget {memory.id}"
        return MemoryCommandResult(command="forget", success=True, message=message, data={"id": memory.id})

    def unforget(self, query: str) -> MemoryCommandResult:
        """Undo `forget` for the memory with an id, or for the suppressed memory that best matches a text (as in `forget`)."""
        memory_id, why_not = self._meant(query, "suppressed")
        if memory_id is None:
            return MemoryCommandResult(command="unforget", success=False, message=why_not)
        known = self._store.get_memory(memory_id)
        memory = self._store.curation.states.unsuppress(memory_id)
        shown = f"'{preview(memory.content)}'"
        if known is not None and not known.is_suppressed:
            message = f"{shown} is not forgotten."
        else:
            message = f"No longer forgotten: {shown}; undo: memgraph forget {memory.id}"
        return MemoryCommandResult(command="unforget", success=True, message=message, data={"id": memory.id})

    def ask(self, query: str) -> MemoryCommandResult:
        """Return up to five episodes that match a question, most similar first, each with a label of its relevance.

        Without vectors, only episodes that share a word with the question match. Memories of a task (`task_id`) are excluded.
        Asking does not count as use.
        """
        vector = self._vector(query)
        with self._store.reader.frozen():
            index = self._store.reader.index
            shared = self._store.reader.listed() & (index.column("task") < 0)
            episodes = shared & ~superseded(index, shared) & (index.column("type") == MEMORY_TYPES.index("episodic"))
            scores, near = likeness(self._store, query, vector, episodes)
            nearest = [index.ids.names[slot] for slot in best(index, scores, np.flatnonzero(near), _ASK_MOST)]
            memories = self._store.read_memories(nearest)
        if not memories:
            message = f"{self._retrieval.get_confidence_text('none')}."
            if vector is None and episodes.any():
                message = f"{message} {_NO_SUCH_WORDS}"
            return MemoryCommandResult(command="ask", success=True, message=message, data={"ids": []})
        lines = [self._described(memory) for memory in memories]
        return MemoryCommandResult(
            command="ask", success=True, message="\n".join(lines), data={"ids": [memory.id for memory in memories]}
        )

    def list(
        self,
        *,
        type: MemoryType | None = None,
        project: str | None = None,
        include_suppressed: bool = False,
        state: State | None = None,
        limit: int = 20,
        sort_by: SortBy = "relevance",
    ) -> list[MemoryListEntry]:
        """Return an entry for each listed memory, or for each memory in a state; highest relevance or newest first."""
        memories = self._store.list_memories(
            type=checked(MemoryType | None, type, "type"),
            project_id=checked(Name | None, project, "project"),
            include_suppressed=checked(bool, include_suppressed, "include_suppressed"),
            state=checked(State | None, state, "state"),
            limit=checked(Limit, limit, "limit"),
            by=checked(SortBy, sort_by, "sort_by"),
        )
        return [self._entry(memory) for memory in memories]

    def show(self, id: str) -> StoredMemory | None:
        """Return a memory, or None if it does not exist or was deleted."""
        return self._store.get_memory(checked(str, id, "id"))

    def stats(self) -> MemoryStats:
        """Return the counts of the store."""
        return self._store.get_stats()

    def export_memories(self, *, shareable: bool = False) -> MemoryExport:
        """Return a backup: every memory that is not deleted, with its vector and its links. Importing it yields an equal digest.

        Suppressed memories and memories derived from them are included and stay hidden after an import. In an export of a past view,
        memories that were deleted since are excluded.

        Parameters
        ----------
        shareable : bool
            Exclude suppressed, archived, sensitive and private memories, and memories derived from them, as pages and charts do
            (see `memgraph.store.visibility`).
        """
        self._store.check_graph()
        reader, model = self._store.reader, self._store.vector_model
        with reader.frozen(links=True):
            index = reader.index
            slots = np.flatnonzero(shown(reader, include=() if shareable else INCLUDABLE))
            in_order = slots[np.argsort(index.column("seq")[slots], kind="stable")]
            ids = dict.fromkeys(index.ids.names[slot] for slot in in_order.tolist())
            memories = reader.read(list(ids))
            links = [link for link in self._store.every_link() if link.source_id in ids and link.target_id in ids]
        if shareable:
            memories = [_without_others(memory, ids) for memory in memories]
        return MemoryExport(
            version=EXPORT_VERSION,
            exported_at=self._store.now(),
            total_memories=len(memories),
            memories=memories,
            links=links,
            embedding_model=model.name if model.dimension else None,
        )

    def import_memories(self, data: MemoryExport | Mapping[str, Any]) -> MemoryCommandResult:
        """Add the memories and links of an export that do not exist yet, in one commit for each write scope.

        An invalid export is refused as a whole. If the process is killed during the write, import again.

        Vectors of another model are discarded and the texts embedded again; a store without a model stores only the texts.

        Raises
        ------
        InvalidInputError
            The export is malformed; the error names the field and the value.
        DuplicateIdError
            The export contains an id twice.
        """
        export = data if isinstance(data, MemoryExport) else MemoryExport.parse(_with_memories(data))
        _check(export)
        model = self._store.vector_model
        is_same_model = bool(model.dimension) and export.embedding_model in (None, model.name)
        new = [memory for memory in export.memories if memory.id is None or self._store.get_memory(memory.id) is None]
        links = self._new_links(export)
        self._store.import_memories([_bare(memory, keep_vector=is_same_model) for memory in new], links)
        skipped = len(export.memories) - len(new)
        message = f"Imported {len(new)} memories, skipped {skipped} that already existed."
        return MemoryCommandResult(
            command="import", success=True, message=message, data={"imported": len(new), "skipped": skipped}
        )

    def _new_links(self, export: MemoryExport) -> builtins.list[Link]:
        """Return the links that do not exist yet, without repetitions."""
        if not export.links:
            return []
        known = {(link.source_id, link.relation, link.target_id) for link in self._store.every_link()}
        ends = {memory.id for memory in export.memories}
        new = []
        for place, link in enumerate(export.links):
            for name in ("source_id", "target_id"):
                end = getattr(link, name)
                if end not in ends and self._store.get_memory(end) is None:
                    problem = "is the end of a link, but no memory in the export or the store has this id"
                    raise InvalidInputError(problem, field=f"links.{place}.{name}", value=end)
                ends.add(end)
            if (key := (link.source_id, link.relation, link.target_id)) not in known:
                known.add(key)
                new.append(link)
        return new

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

    def _described(self, memory: StoredMemory) -> str:
        label = self._retrieval.get_confidence_text(self._retrieval.get_confidence_label(memory.relevance_score))
        age = self.format_age(memory.occurred_at)
        return f"{label} ({age}): {memory.content}"

    def _entry(self, memory: StoredMemory) -> MemoryListEntry:
        return MemoryListEntry(
            id=memory.id,
            type=memory.type,
            content=_cut(memory.content, _SHOWN_CHARS),
            relevance_score=memory.relevance_score,
            confidence_label=confidence_label(memory.relevance_score),
            outcome=memory.outcome,
            age=self.format_age(memory.created_at),
            access_count=memory.access_count,
            is_pinned=memory.is_pinned,
        )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


def _without_others(memory: StoredMemory, ids: Container[str | None]) -> StoredMemory:
    """Return a memory without references to memories that are not exported with it."""
    updates: dict[str, Any] = {"previous_id": memory.previous_id if memory.previous_id in ids else None}
    if not isinstance(memory, EpisodicMemory):
        updates["supporting_memory_ids"] = [one for one in memory.supporting_memory_ids if one in ids]  # type: ignore[attr-defined]
    return memory.model_copy(update=updates)


def _with_memories(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an export's mapping with its memories parsed by their types."""
    if not isinstance(data, Mapping):
        raise InvalidInputError("must be an export: a mapping with version and memories", field="export", value=data)
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


def _bare(memory: AgentMemory, *, keep_vector: bool) -> AgentMemory:
    """Return a memory without the fields that the export's links express, and without another model's vector."""
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
