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
    MemoryRevised,
    Payload,
    VectorRef,
    WriteScope,
)
from memgraph.model.memory import AgentMemory, MemoryRecord, Vector, parse_memory
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.ports import Annotator, Embedder, Row
from memgraph.store.access import PendingAccess
from memgraph.store.drafts import annotated, patch, record_of
from memgraph.store.projector import Projector

logger = logging.getLogger("memgraph.store")

Write = Payload | tuple[Payload, Vector]
"""An event, or an event and the vector that it is to name."""

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
        with self._projector.writing():
            return self._append(write_scope, writes, task_id=task_id, actor=actor)

    def insert(
        self, memories: Sequence[AgentMemory | Mapping[str, Any]], *, annotate: bool = True, actor: Actor = "agent"
    ) -> list[str]:
        """Add memories in one commit and return their ids."""
        parsed = [parse_memory(memory) for memory in memories]
        if not parsed:
            return []
        if annotate:
            parsed = [annotated(memory, self._annotator) for memory in parsed]
        vectors = self.vectors_for(parsed)
        with self._projector.writing():
            now = self._now()
            chains: dict[tuple[str, str], str | None] = {}
            writes: list[Write] = []
            records: list[MemoryRecord] = []
            for memory, vector in zip(parsed, vectors, strict=True):
                record = self._record(memory, now, chains, vector=vector, chained=annotate)
                records.append(record)
                writes.append(_with(MemoryAdded(memory=record), vector))
            for memory, record in zip(parsed, records, strict=True):
                if sources := getattr(memory, "supporting_memory_ids", []):
                    writes.append(MemoryDerived(id=record.id, source_ids=sources, created_at=now))
            self._append(scope_of(records[0]), writes, task_id=records[0].task_id, actor=actor)
        return [record.id for record in records]

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

    def _record(
        self,
        memory: AgentMemory,
        now: str,
        chains: dict[tuple[str, str], str | None],
        *,
        vector: Vector | None,
        chained: bool,
    ) -> MemoryRecord:
        settled: dict[str, Any] = {}
        if vector is not None:
            settled = {"embedding_model": self._embedder.name, "embedded_at": memory.embedded_at or now}
        record = record_of(memory, now=now, max_relevance=self._curve.max_relevance, **settled)
        chain = chain_of({"type": record.type, "session_id": record.session_id, "project_id": record.project_id})
        if chain is None or not chained:
            return record
        if chain not in chains:
            node = self._projector.rows.get(*chain)
            chains[chain] = node.get("last_memory_id") if node else None
        previous, chains[chain] = chains[chain], record.id
        if record.previous_id is None and previous is not None:
            return record.model_copy(update={"previous_id": previous})
        return record

    def _append(
        self, write_scope: WriteScope, writes: Sequence[Write], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> list[Event]:
        """Append events, and before them what access records are pending; the lock is held."""
        payloads = [write[0] if isinstance(write, tuple) else write for write in writes]
        CommitDraft(write_scope, payloads, task_id=task_id, actor=actor)  # refuses mixed scopes before anything is written
        self._check(payloads)
        placed = self._placed(writes)
        accessed = self.pending.drain(self._exists)
        drafts = [
            CommitDraft("system", accessed, actor="system"),
            CommitDraft(write_scope, placed, task_id=task_id, actor=actor),
        ]
        if not accessed and not placed:
            return []
        try:
            events = self._projector.append(drafts, self._now())
        except BaseException:
            self.pending.put_back(accessed)
            raise
        return events[len(accessed) :]

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
        """Write the vectors and return the events that name them."""
        vectors = [write[1] for write in writes if isinstance(write, tuple)]
        if not vectors:
            return [write for write in writes if not isinstance(write, tuple)]
        projection, model = self._projector.projection, self._embedder.name
        first = projection.vector_rows.get(model, 0)
        file = self._projector.journal.vectors(model, self._embedder.dimension)
        digests = file.write(first, np.stack(vectors))
        places = iter(enumerate(digests, start=first))
        placed: list[Payload] = []
        if projection.embedding_model is None:
            placed.append(EmbeddingSwitched(model=model, dimension=self._embedder.dimension))
        for write in writes:
            if isinstance(write, tuple):
                row, sha256 = next(places)
                vector = VectorRef(model=model, row=row, sha256=sha256)
                placed.append(write[0].model_copy(update={"vector": vector}))
            else:
                placed.append(write)
        return placed

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




def _with(payload: Payload, vector: Vector | None) -> Write:
    return payload if vector is None else (payload, vector)
