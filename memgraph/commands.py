"""`MemoryCommands`: what a person says to a memory: remember, forget, ask, list, show, stats, export, import."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from memgraph.errors import DuplicateIdError, InvalidInputError
from memgraph.model.base import Limit, Name, QueryText, checked
from memgraph.model.link import Link
from memgraph.model.memory import (
    MEMORY_TYPES,
    AgentMemory,
    EpisodicMemory,
    MemoryType,
    SemanticMemory,
    Vector,
    parse_memory,
)
from memgraph.model.relevance import confidence_label
from memgraph.model.results import (
    EXPORT_VERSION,
    MemoryCommandResult,
    MemoryExport,
    MemoryListEntry,
    MemoryStats,
)
from memgraph.model.text import split_text
from memgraph.model.timestamps import age, to_iso
from memgraph.ports import Embedder
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.rank import best
from memgraph.retrieval.walk import hand_on
from memgraph.store import AgentMemoryStore

SortBy = Literal["relevance", "created", "accessed"]
_FORGET_ABOVE = 0.5
_ASK_MOST = 5
_SHOWN_CHARS = 80
_PREVIEW_CHARS = 60


class MemoryCommands:
    """Commands over a store.

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
        self._embedder = embedder or store.embedder
        self._retrieval = retrieval or MemoryRetrieval(store, self._embedder)

    def remember(
        self, text: str, tags: Sequence[str] | None = None, *, project_id: str | None = None
    ) -> MemoryCommandResult:
        """Keep a text as a pinned semantic memory; a long one in parts, each following the one before.

        Raises
        ------
        InvalidInputError
            The text is empty or cannot be stored, or a tag is refused.
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
        kept = self._store.insert_parts(memories)
        message = f"Remembered: '{_cut(text.strip(), _SHOWN_CHARS)}' (pinned, will not decay)"
        return MemoryCommandResult(
            command="remember", success=True, message=message, data={"ids": [memory.id for memory in kept]}
        )

    def forget(self, query: str) -> MemoryCommandResult:
        """Suppress the memory nearest to a text, if their cosine is above 0.5."""
        vector = self._vector(query)
        with self._store.reader.frozen():
            index = self._store.reader.index
            slots = np.flatnonzero(self._store.reader.listed() & (index.column("vector_row") >= 0))
            cosines = np.round(self._store.reader.cosines(vector, slots), 6)
            nearest = [index.ids.names[slot] for slot in slots[cosines == cosines.max(initial=_FORGET_ABOVE)]]
        if not nearest or cosines.max() <= _FORGET_ABOVE:
            return MemoryCommandResult(
                command="forget", success=False, message="No memory matches that closely enough."
            )
        memory = self._store.update_memory(min(nearest), is_suppressed=True)
        message = f"Forgot: '{memory.content[:_PREVIEW_CHARS]}'"
        return MemoryCommandResult(command="forget", success=True, message=message, data={"id": memory.id})

    def ask(self, query: str) -> MemoryCommandResult:
        """Tell what is remembered of what happened: up to five episodes, nearest first, each with how well it is remembered.

        Looking does not count as use. What belongs to a task is not told.
        """
        vector = self._vector(query)
        with self._store.reader.frozen():
            index = self._store.reader.index
            shared = self._store.reader.listed() & (index.column("task") < 0)
            cosines = np.zeros(len(index))
            _, current = hand_on(index, cosines, shared)
            mask = current & (index.column("type") == MEMORY_TYPES.index("episodic"))
            cosines[mask] = self._store.reader.cosines(vector, np.flatnonzero(mask))
            nearest = [index.ids.names[slot] for slot in best(index, cosines, mask, _ASK_MOST)]
            memories = self._store.read_memories(nearest)
        if not memories:
            message = self._retrieval.get_confidence_text("none")
            return MemoryCommandResult(command="ask", success=True, message=f"{message}.", data={"ids": []})
        lines = [self._told(memory) for memory in memories]
        return MemoryCommandResult(
            command="ask", success=True, message="\n".join(lines), data={"ids": [memory.id for memory in memories]}
        )

    def list(
        self,
        *,
        type: MemoryType | None = None,
        project: str | None = None,
        include_suppressed: bool = False,
        limit: int = 20,
        sort_by: SortBy = "relevance",
    ) -> list[MemoryListEntry]:
        """Return one line a memory, highest relevance or newest first."""
        memories = self._store.list_memories(
            type=checked(MemoryType | None, type, "type"),
            project_id=checked(Name | None, project, "project"),
            include_suppressed=checked(bool, include_suppressed, "include_suppressed"),
            limit=checked(Limit, limit, "limit"),
            by=checked(SortBy, sort_by, "sort_by"),
        )
        return [self._entry(memory) for memory in memories]

    def show(self, id: str) -> AgentMemory | None:
        """Return a memory unless it is deleted."""
        return self._store.get_memory(checked(str, id, "id"))

    def stats(self) -> MemoryStats:
        """Return the store's counts."""
        return self._store.get_stats()

    def export_memories(self) -> MemoryExport:
        """Return every memory that is not deleted, with its vector and its links."""
        memories = [*self._store.every_memory()]
        return MemoryExport(
            version=EXPORT_VERSION,
            exported_at=self._store.now(),
            total_memories=len(memories),
            memories=memories,
            links=self._store.every_link(),
            embedding_model=self._store.embedder.name,
        )

    def import_memories(self, data: MemoryExport | Mapping[str, Any]) -> MemoryCommandResult:
        """Add the memories and links of an export that are not known yet, in one commit: all of them, or none.

        Vectors of another model are left out and the texts embedded anew.

        Raises
        ------
        InvalidInputError
            The export is broken; names the field and the value.
        DuplicateIdError
            An id occurs twice in it.
        """
        export = data if isinstance(data, MemoryExport) else MemoryExport.parse(_with_memories(data))
        _check(export)
        is_same_model = export.embedding_model in (None, self._store.embedder.name)
        new = [memory for memory in export.memories if self._store.get_memory(memory.id or "") is None]
        links = self._new_links(export)
        self._store.import_memories([_bare(memory, keep_vector=is_same_model) for memory in new], links)
        skipped = len(export.memories) - len(new)
        message = f"Imported {len(new)} memories, skipped {skipped} that were known."
        return MemoryCommandResult(
            command="import", success=True, message=message, data={"imported": len(new), "skipped": skipped}
        )

    def _new_links(self, export: MemoryExport) -> builtins.list[Link]:
        """Return the links that are not there yet, each once."""
        if not export.links:
            return []
        known = {(link.source_id, link.relation, link.target_id) for link in self._store.every_link()}
        ends = {memory.id for memory in export.memories}
        new = []
        for place, link in enumerate(export.links):
            for name in ("source_id", "target_id"):
                end = getattr(link, name)
                if end not in ends and self._store.get_memory(end) is None:
                    problem = "is the end of a link, and neither the export nor the store has a memory of this id"
                    raise InvalidInputError(problem, field=f"links.{place}.{name}", value=end)
                ends.add(end)
            if (key := (link.source_id, link.relation, link.target_id)) not in known:
                known.add(key)
                new.append(link)
        return new

    def format_age(self, iso_timestamp: str) -> str:
        """Return how long ago a time was: ``just now``, ``5 minutes ago``, … ``2 years ago``."""
        try:
            return age(to_iso(iso_timestamp), self._store.now())
        except ValueError:
            raise InvalidInputError("is not an ISO 8601 time", field="iso_timestamp", value=iso_timestamp) from None

    def _vector(self, query: str) -> Vector:
        return self._embedder.embed_query(checked(QueryText, query, "query"))

    def _told(self, memory: AgentMemory) -> str:
        label = self._retrieval.get_confidence_text(self._retrieval.get_confidence_label(memory.relevance_score))
        age = self.format_age(memory.occurred_at or memory.created_at or "")
        return f"{label} ({age}): {memory.content}"

    def _entry(self, memory: AgentMemory) -> MemoryListEntry:
        return MemoryListEntry(
            id=memory.id or "",
            type=memory.type,
            content=_cut(memory.content, _SHOWN_CHARS),
            relevance_score=memory.relevance_score,
            confidence_label=confidence_label(memory.relevance_score),
            outcome=memory.outcome,
            age=self.format_age(memory.created_at or ""),
            access_count=memory.access_count,
            is_pinned=memory.is_pinned,
        )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


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
    """Return a memory without what the export's links say, and without another model's vector."""
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
        if memory.id in seen:
            raise DuplicateIdError(memory.id or "", where="in the export twice")
        seen.add(memory.id or "")
