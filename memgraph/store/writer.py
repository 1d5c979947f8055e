"""Everything that writes: each call is one commit under the writer lock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import Any

import numpy as np

from memgraph.errors import DuplicateIdError, EmbeddingError, InvalidInputError, NotFoundError, ScopeError
from memgraph.fold.edges import NODE_TABLES, chain_of
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.model.events import (
    Actor,
    EmbeddingSwitched,
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    Payload,
    VectorRef,
    WriteScope,
)
from memgraph.model.ids import new_id, stored_form
from memgraph.model.link import Link
from memgraph.model.memory import (
    AgentMemory,
    EpisodicMemory,
    MemoryRecord,
    ProceduralMemory,
    SemanticMemory,
    Vector,
    parse_memory,
    to_vector,
)
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.ports import Annotator, Embedder, Row
from memgraph.store.access import PendingAccess
from memgraph.store.drafts import annotated, patch, record_of, scope_of
from memgraph.store.projector import Projector

logger = logging.getLogger("memgraph.store")

Write = Payload | tuple[Payload, Vector] | AgentMemory
"""An event; an event and the vector that it is to name; or a memory to be added."""

_BULK = 100
"""From so many new ids on, the index answers whether they are known: loading it costs less than asking the graph."""
_FIXED = frozenset(
    "id type created_at updated_at access_count last_accessed_at previous_id task_id project_id session_id "
    "relevance_anchor relevance_at embedding_model embedded_at supporting_memory_ids".split()
)
_FIELD_OF_ALIAS = {
    field.alias: name
    for kind in (EpisodicMemory, SemanticMemory, ProceduralMemory)
    for name, field in kind.model_fields.items()
    if field.alias
}


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
        self.pending = PendingAccess(self.flush, curve)
        self._made_ids: set[str] = set()
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

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the writer lock for a block; writes inside it nest."""
        with self._projector.writing():
            yield

    def restore(self, memories: Sequence[AgentMemory], links: Sequence[Link]) -> None:
        """Add memories exactly as given, and links: appended together or not at all, in the order they are given.

        Each run of memories of one write scope is a commit; the links come last, when their ends are there.
        """
        completed = self._completed(memories, annotate=False)
        with self._projector.writing():
            now = self._now()
            parts: list[tuple[WriteScope, str | None, Sequence[Write]]] = [
                ("task" if task_id else "global", task_id, self._as_events(list(run), chained=False))
                for task_id, run in groupby(completed, key=lambda memory: memory.task_id)
            ]
            made = [MemoryLinked(**{**link.model_dump(), "created_at": link.created_at or now}) for link in links]
            if made:
                parts.append(("global", None, made))
            if parts:
                self._append_all(parts)

    def update(self, memory_id: str, updates: Mapping[str, Any], *, actor: Actor = "agent") -> None:
        """Change fields of a memory."""
        updates = {_FIELD_OF_ALIAS.get(name, name): value for name, value in updates.items()}
        if wrong := sorted(updates.keys() & _FIXED):
            raise InvalidInputError("cannot be updated", field=wrong[0], value=updates[wrong[0]])
        ready = self._embedded(updates["content"]) if "embedding" not in updates and "content" in updates else None
        with self._projector.writing():
            row = self._row(memory_id)
            now = self._now()
            given = self._updated(row, updates, now)
            moved = "relevance_score" in updates
            settled: dict[str, Any] = {
                "relevance_anchor": given.relevance_score if moved else row["relevance_anchor"],
                "relevance_at": now if moved else row["relevance_at"],
                "updated_at": now,
            }
            vector = None
            if "embedding" in updates or given.content != row["content"]:
                source = given if "embedding" in updates else given.model_copy(update={"embedding": ready})
                vector = self.vectors_for([source])[0]
                model = {"embedding_model": self._embedder.name, "embedded_at": now}
                settled |= model if vector is not None else dict.fromkeys(model)
            new = record_of(given, now=now, max_relevance=self._curve.max_relevance, **settled)
            changed, cleared = patch(row, new)
            payload = MemoryRevised(id=row["id"], changed=changed, cleared=cleared)
            self._append(scope_of(row), [_with(payload, vector)], task_id=row.get("task_id"), actor=actor)

    def _updated(self, row: Row, updates: Mapping[str, Any], now: str) -> AgentMemory:
        """Return the memory that a row and new values of its fields make, validated."""
        old = AgentMemory.from_row(row, now=now, curve=self._curve)
        fields = {name: value for name, value in old if name in old.model_fields_set and value is not None}
        if "outcome" in updates:
            fields.pop("outcome_word", None)
        given = type(old).parse({**fields, **updates})
        if given.content != old.content:  # what was found in the old text goes with it
            found: dict[str, Any] = {"entities": [], "failure_fingerprint": None}
            stale = {name: value for name, value in found.items() if name not in updates}
            given = annotated(given.model_copy(update=stale), self._annotator)
        return given

    def _embedded(self, text: object) -> Vector | None:
        """Embed before the lock is taken: nobody shall wait for the model. A failure shows when it counts."""
        with suppress(EmbeddingError):
            return self._embedder.embed([text])[0] if isinstance(text, str) else None
        return None

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
            if memory.embedding is not None:
                self._checked(memory.embedding)
        lacking = [index for index, memory in enumerate(memories) if memory.embedding is None]
        vectors: list[Vector | None] = [memory.embedding for memory in memories]
        if lacking:
            try:
                made = self._embedder.embed([memories[index].content for index in lacking])
            except EmbeddingError as error:
                self._notice(f"{len(lacking)} memories are kept without vectors and found by text alone: {error}")
                return vectors
            for index, vector in zip(lacking, made, strict=True):
                vectors[index] = self._checked(vector)
        return vectors

    def _checked(self, vector: object) -> Vector:
        """Return a vector that can be kept: of the store's dimension, finite, not zero.

        Raises
        ------
        InvalidInputError
        """
        try:
            kept = to_vector(vector)
        except ValueError as error:
            raise InvalidInputError(str(error), field="embedding", value=vector) from None
        if kept.size != self._embedder.dimension:
            raise InvalidInputError(
                f"must have {self._embedder.dimension} dimensions, as {self._embedder.name} has",
                field="embedding",
                value=f"{kept.size} dimensions",
            )
        return kept

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
                if record.id in sources:
                    raise InvalidInputError("names the memory itself", field="supporting_memory_ids", value=record.id)
                events.append(MemoryDerived(id=record.id, source_ids=sources, created_at=now))
        return events

    def _record(
        self, memory: AgentMemory, now: str, chains: dict[tuple[str, str], str | None], *, chained: bool
    ) -> MemoryRecord:
        settled: dict[str, Any] = {"id": memory.id or self._new_id()}
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

    def _new_id(self) -> str:
        made = new_id()
        self._made_ids.add(made)  # nobody can have it: it need not be looked up
        return made

    def _append(
        self, write_scope: WriteScope, writes: Sequence[Write], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> list[Event]:
        return self._append_all([(write_scope, task_id, writes)], actor=actor)

    def _append_all(
        self, parts: Sequence[tuple[WriteScope, str | None, Sequence[Write]]], *, actor: Actor = "agent"
    ) -> list[Event]:
        """Append commits, and before them what access records are pending; the lock is held."""
        checked = [
            (
                scope,
                task_id,
                [(write[0], self._checked(write[1])) if isinstance(write, tuple) else write for write in writes],
            )
            for scope, task_id, writes in parts
        ]
        for scope, task_id, writes in checked:
            # refuses mixed scopes before anything is written
            CommitDraft(scope, [_payload(write) for write in writes], task_id=task_id, actor=actor)
        self._check([(task_id, _payload(write)) for _, task_id, writes in checked for write in writes])
        placed = iter(self._placed([write for _, _, writes in checked for write in writes]))
        drained = self.pending.drain(self._projector.rows.get)
        drafts = [CommitDraft("system", [*drained.payloads, *self._switch(checked)], actor="system")]
        for scope, task_id, writes in checked:
            drafts.append(CommitDraft(scope, [next(placed) for _ in writes], task_id=task_id, actor=actor))
        if not any(draft.payloads for draft in drafts):
            return []
        before = self._projector.journal.tail.chain.seq
        try:
            appended = self._projector.append(drafts, self._now())
        except BaseException:
            if (
                self._projector.journal.tail.chain.seq == before
            ):  # else the uses are recorded: they must not count twice
                self.pending.put_back(drained)
            raise
        return appended[len(drafts[0].payloads) :]

    def _check(self, payloads: Sequence[tuple[str | None, Payload]]) -> None:
        """Refuse ids that are known, unknown, or of another write scope than their commit's."""
        added: dict[str, str | None] = {}
        if sum(isinstance(payload, MemoryAdded) for _, payload in payloads) >= _BULK:
            _ = self._projector.index
            self._projector.rows.load(NODE_TABLES)
        for task_id, payload in payloads:
            if getattr(payload, "vector", None) is not None:
                raise InvalidInputError("is placed by the store; give the vector beside the event", field="vector")
            if isinstance(payload, MemoryAdded):
                memory_id = payload.memory.id
                if memory_id in added:
                    raise DuplicateIdError(memory_id, where="in this call")
                if memory_id not in self._made_ids and self._exists(memory_id):
                    raise DuplicateIdError(memory_id)
                added[memory_id] = payload.memory.task_id
                continue
            for memory_id in payload.memory_ids():
                if memory_id not in added and not self._exists(memory_id):
                    raise NotFoundError("memory", memory_id)
            if isinstance(payload, MemoryRevised | MemoryMerged | MemoryDeleted):
                row = self._projector.rows.get("Memory", payload.id) or {"task_id": added.get(payload.id)}
                if row.get("task_id") != task_id:
                    raise ScopeError(
                        f"memory {payload.id} belongs to task {row.get('task_id')!r}, the commit to {task_id!r}: one commit "
                        "has one write scope"
                    )
        self._made_ids.clear()

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
        row = self._projector.rows.get("Memory", stored_form(memory_id))
        if row is None:
            raise NotFoundError("memory", str(memory_id))
        return self.pending.over(row)

    def _exists(self, memory_id: str) -> bool:
        index = self._projector.loaded_index
        if index is not None:
            return index.slot(memory_id) >= 0
        return self._projector.rows.get("Memory", memory_id) is not None

    def _notice(self, text: str) -> None:
        logger.warning("%s", text)
        self.notices.append(text)


def _payload(write: Write) -> Payload:
    payload = write[0] if isinstance(write, tuple) and write else write
    if not isinstance(payload, Payload):
        raise InvalidInputError("must be an event, an event and its vector, or a memory", field="events", value=write)
    return payload


def _with(payload: Payload, vector: Vector | None) -> Write:
    return payload if vector is None else (payload, vector)
