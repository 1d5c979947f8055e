"""Everything that writes: each call is one commit under the writer lock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from memgraph.errors import DuplicateIdError, EmbeddingError, InvalidInputError, NotFoundError
from memgraph.fold.edges import chain_of
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.model.events import (
    Actor,
    EmbeddingSwitched,
    MemoryAdded,
    MemoryDerived,
    MemoryLinked,
    MemoryRevised,
    Payload,
    VectorRef,
    WriteScope,
)
from memgraph.model.ids import new_id
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, MemoryRecord, Vector, parse_memory
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.ports import Annotator, Embedder, Row
from memgraph.store.access import PendingAccess
from memgraph.store.drafts import annotated, patch, record_of
from memgraph.store.projector import Projector

logger = logging.getLogger("memgraph.store")

Write = Payload | tuple[Payload, Vector] | AgentMemory
"""An event; an event and the vector that it is to name; or a memory to be added."""

_BULK = 100
"""From so many new ids on, the index answers whether they are known: loading it costs less than asking the graph."""
_FIXED = frozenset(
    "id type created_at updated_at access_count last_accessed_at previous_id task_id relevance_anchor relevance_at "
    "embedding_model embedded_at".split()
)


class Writer:
    """Validates, places vectors, appends."""

    def __init__(
        self,
        projector: Projector,
        *,
        embedder: Embedder,
        annotator: Annotator,
        now: Callable[[], str],
        curve: ForgettingCurveConfig,
    ) -> None:
        self._projector = projector
        self._embedder = embedder
        self._annotator = annotator
        self._now = now
        self._curve = curve
        self.pending = PendingAccess(self.flush)
        self.notices: list[str] = []

    def commit(
        self, write_scope: WriteScope, writes: Sequence[Write], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> list[Event]:
        """Commit events in one write scope."""
        if write_scope == "none" or not writes:
            return []
        memories = [write for write in writes if isinstance(write, AgentMemory)]
        whole = iter(self._completed(memories))
        completed = [next(whole) if isinstance(write, AgentMemory) else write for write in writes]
        with self._projector.writing():
            return self._append(write_scope, self._as_events(completed, chained=True), task_id=task_id, actor=actor)

    def insert(
        self, memories: Sequence[AgentMemory | Mapping[str, Any]], *, annotate: bool = True, actor: Actor = "agent"
    ) -> list[str]:
        """Add memories in one commit and return their ids."""
        if not memories:
            return []
        completed = self._completed([parse_memory(memory) for memory in memories], annotate=annotate)
        task_id = completed[0].task_id
        with self._projector.writing():
            writes = self._as_events(completed, chained=annotate)
            events = self._append("task" if task_id else "global", writes, task_id=task_id, actor=actor)
        return [event.payload.memory.id for event in events if isinstance(event.payload, MemoryAdded)]

    def restore(self, memories: Sequence[AgentMemory], links: Sequence[Link]) -> None:
        """Add memories exactly as given, and links: one commit a write scope, all appended together or not at all."""
        completed = self._completed(memories, annotate=False)
        tasks: dict[str | None, list[Write]] = {}
        for memory in completed:
            tasks.setdefault(memory.task_id, []).append(memory)
        if links:
            tasks.setdefault(None, [])
        with self._projector.writing():
            tasks = {task_id: self._as_events(writes, chained=False) for task_id, writes in tasks.items()}
            now = self._now()
            fields = [{**link.model_dump(), "created_at": link.created_at or now} for link in links]
            if links:
                tasks[None] += [MemoryLinked(**link) for link in fields]
            parts = sorted(
                tasks.items(), key=lambda part: part[0] is None
            )  # links come last: their ends are there then
            self._append_all([("task" if task_id else "global", task_id, writes) for task_id, writes in parts])

    def update(self, memory_id: str, updates: Mapping[str, Any], *, actor: Actor = "agent") -> None:
        """Change fields of a memory."""
        if wrong := sorted(updates.keys() & _FIXED):
            raise InvalidInputError("cannot be updated", field=wrong[0], value=updates[wrong[0]])
        with self._projector.writing():
            row = self._row(memory_id)
            now = self._now()
            old = AgentMemory.from_row(row, now=now, curve=self._curve)
            fields = {name: value for name, value in old if name in old.model_fields_set and value is not None}
            given = type(old).parse({**fields, "relevance_score": old.relevance_score, **updates, "outcome_word": None}
                                    if "outcome" in updates else {**fields, **updates})  # fmt: skip
            moved = "relevance_score" in updates
            if "content" in updates and "entities" not in updates:
                given = annotated(given.model_copy(update={"entities": []}), self._annotator)
            new = record_of(
                given,
                now=now,
                max_relevance=self._curve.max_relevance,
                relevance_anchor=given.relevance_score if moved else row["relevance_anchor"],
                relevance_at=now if moved else row["relevance_at"],
                updated_at=now,
            )
            vector = None
            if "embedding" in updates or ("content" in updates and given.content != row["content"]):
                source = given if "embedding" in updates else given.model_copy(update={"embedding": None})
                vector = self.vectors_for([source])[0]
            if vector is not None:
                new = new.model_copy(update={"embedding_model": self._embedder.name, "embedded_at": now})
            changed, cleared = patch(row, new)
            payload = MemoryRevised(id=memory_id, changed=changed, cleared=cleared)
            self._append(scope_of(row), [_with(payload, vector)], task_id=row.get("task_id"), actor=actor)

    def append_about(self, memory_id: str, make: Callable[[Row, str], Payload], *, actor: Actor = "agent") -> None:
        """Commit one event about a memory, made from its row and the time, in the memory's own scope."""
        with self._projector.writing():
            row = self._row(memory_id)
            self._append(scope_of(row), [make(row, self._now())], task_id=row.get("task_id"), actor=actor)

    def flush(self) -> None:
        """Commit the pending access records."""
        if self.pending:
            with self._projector.writing():
                self._append("system", [], actor="system")

    def vectors_for(self, memories: Sequence[AgentMemory]) -> list[Vector | None]:
        """Return each memory's vector: the given one, else its content's embedding in one batch.

        Without a working embedder the memories are kept without vectors, found by text alone, and a notice says so.
        """
        for memory in memories:
            if memory.embedding is not None and memory.embedding.shape != (self._embedder.dimension,):
                raise InvalidInputError(
                    f"must have {self._embedder.dimension} dimensions, as {self._embedder.name} has",
                    field="embedding",
                    value=f"{memory.embedding.size} dimensions",
                )
        lacking = [index for index, memory in enumerate(memories) if memory.embedding is None]
        vectors: list[Vector | None] = [memory.embedding for memory in memories]
        if lacking:
            try:
                made = self._embedder.embed([memories[index].content for index in lacking])
            except EmbeddingError as error:
                self._notice(f"{len(lacking)} memories are kept without vectors and found by text alone: {error}")
                return vectors
            for index, vector in zip(lacking, made, strict=True):
                vectors[index] = vector
        return vectors

    def _completed(self, memories: Sequence[AgentMemory], *, annotate: bool = True) -> list[AgentMemory]:
        """Annotate and embed: all that needs no lock."""
        if annotate:
            memories = [annotated(memory, self._annotator) for memory in memories]
        vectors = self.vectors_for(memories)
        return [
            memory if memory.embedding is vector else memory.model_copy(update={"embedding": vector})
            for memory, vector in zip(memories, vectors, strict=True)
        ]

    def _as_events(self, writes: Sequence[Write], *, chained: bool) -> list[Write]:
        """Turn memories into events: ids, times, predecessors, evidence; the lock is held."""
        now = self._now()
        chains: dict[tuple[str, str], str | None] = {}
        events: list[Write] = []
        for write in writes:
            if not isinstance(write, AgentMemory):
                events.append(write)
                continue
            record = self._record(write, now, chains, chained=chained)
            events.append(_with(MemoryAdded(memory=record), write.embedding))
            if sources := getattr(write, "supporting_memory_ids", []):
                events.append(MemoryDerived(id=record.id, source_ids=sources, created_at=now))
        return events

    def _record(
        self, memory: AgentMemory, now: str, chains: dict[tuple[str, str], str | None], *, chained: bool
    ) -> MemoryRecord:
        settled: dict[str, Any] = {"id": memory.id or new_id()}
        if memory.embedding is not None:
            settled |= {"embedding_model": self._embedder.name, "embedded_at": memory.embedded_at or now}
        chain = chain_of({"type": memory.type, "session_id": memory.session_id, "project_id": memory.project_id})
        if chained and chain is not None:
            if chain not in chains:
                node = self._projector.rows.get(*chain)
                chains[chain] = node.get("last_memory_id") if node else None
            settled["previous_id"] = memory.previous_id or chains[chain]
            chains[chain] = settled["id"]
        return record_of(memory, now=now, max_relevance=self._curve.max_relevance, **settled)

    def _append(
        self, write_scope: WriteScope, writes: Sequence[Write], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> list[Event]:
        return self._append_all([(write_scope, task_id, writes)], actor=actor)

    def _append_all(
        self, parts: Sequence[tuple[WriteScope, str | None, Sequence[Write]]], *, actor: Actor = "agent"
    ) -> list[Event]:
        """Append commits, and before them what access records are pending; the lock is held."""
        payloads = [[_payload(write) for write in writes] for _, _, writes in parts]
        for (scope, task_id, _), events in zip(parts, payloads, strict=True):
            CommitDraft(scope, events, task_id=task_id, actor=actor)  # refuses mixed scopes before anything is written
        self._check([payload for events in payloads for payload in events])
        placed = iter(self._placed([write for _, _, writes in parts for write in writes]))
        accessed = self.pending.drain(self._exists)
        drafts = [CommitDraft("system", [*accessed, *self._switch(parts)], actor="system")]
        for scope, task_id, writes in parts:
            drafts.append(CommitDraft(scope, [next(placed) for _ in writes], task_id=task_id, actor=actor))
        if not any(draft.payloads for draft in drafts):
            return []
        try:
            appended = self._projector.append(drafts, self._now())
        except BaseException:
            self.pending.put_back(accessed)
            raise
        return appended[len(drafts[0].payloads) :]

    def _check(self, payloads: Sequence[Payload]) -> None:
        added: set[str] = set()
        if sum(isinstance(payload, MemoryAdded) for payload in payloads) >= _BULK:
            _ = self._projector.index
        for payload in payloads:
            if getattr(payload, "vector", None) is not None:
                raise InvalidInputError("is placed by the store; give the vector beside the event", field="vector")
            if isinstance(payload, MemoryAdded):
                if payload.memory.id in added:
                    raise DuplicateIdError(payload.memory.id, where="in this call")
                if self._exists(payload.memory.id):
                    raise DuplicateIdError(payload.memory.id)
                added.add(payload.memory.id)
            else:
                for memory_id in payload.memory_ids():
                    if memory_id not in added and not self._exists(memory_id):
                        raise NotFoundError("memory", memory_id)

    def _placed(self, writes: Sequence[Write]) -> list[Payload]:
        """Write and sync the vectors, and return the events that name them."""
        vectors = [write[1] for write in writes if isinstance(write, tuple)]
        if not vectors:
            return [_payload(write) for write in writes]
        model = self._embedder.name
        first = self._projector.projection.vector_rows.get(model, 0)
        file = self._projector.journal.vectors(model, self._embedder.dimension)
        places = iter(enumerate(file.write(first, np.stack(vectors)), start=first))
        placed = []
        for write in writes:
            payload = _payload(write)
            if isinstance(write, tuple):
                row, sha256 = next(places)
                payload = payload.model_copy(update={"vector": VectorRef(model=model, row=row, sha256=sha256)})
            placed.append(payload)
        return placed

    def _switch(self, parts: Sequence[tuple[WriteScope, str | None, Sequence[Write]]]) -> list[Payload]:
        """Return the event that names the store's model, before its first vector."""
        has_vectors = any(isinstance(write, tuple) for _, _, writes in parts for write in writes)
        if not has_vectors or self._projector.projection.embedding_model is not None:
            return []
        return [EmbeddingSwitched(model=self._embedder.name, dimension=self._embedder.dimension)]

    def _row(self, memory_id: str) -> Row:
        row = self._projector.rows.get("Memory", memory_id)
        if row is None:
            raise NotFoundError("memory", memory_id)
        return self.pending.over(row)

    def _exists(self, memory_id: str) -> bool:
        index = self._projector.loaded_index
        if index is not None:
            return index.slot(memory_id) >= 0
        return self._projector.rows.get("Memory", memory_id) is not None

    def _notice(self, text: str) -> None:
        logger.warning("%s", text)
        self.notices.append(text)


def scope_of(memory: MemoryRecord | Row) -> WriteScope:
    """Return the write scope that a memory belongs to."""
    task_id = memory.get("task_id") if isinstance(memory, dict) else memory.task_id
    return "task" if task_id else "global"


def _payload(write: Write) -> Payload:
    if isinstance(write, AgentMemory):
        raise TypeError("memories become events before they are appended")
    return write[0] if isinstance(write, tuple) else write


def _with(payload: Payload, vector: Vector | None) -> Write:
    return payload if vector is None else (payload, vector)
