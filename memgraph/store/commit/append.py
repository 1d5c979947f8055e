"""Appending: validate a commit against the current state, place its vectors, and record it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from memgraph.errors import InvalidInputError
from memgraph.fold import Workspace, check
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.vectors import row_sha256
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryUndeleted,
    VectorRef,
)
from memgraph.model.events.payload import Actor, Payload, WriteScope
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.ids import new_id
from memgraph.model.memory import AgentMemory, Vector
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.ports import Embedder, Key
from memgraph.store.commit.access import PendingAccess
from memgraph.store.commit.requests import check_effect, next_commit_id
from memgraph.store.commit.vectors import VectorModel, check_model, checked_vector, vector_model
from memgraph.store.projection.projector import Projector

Write = Payload | tuple[Payload, Vector] | AgentMemory
"""An event; an event with the vector that it refers to; or a memory to add."""

MANY = 100
"""From this many new ids on, the index checks whether they exist: loading it is cheaper than asking the graph."""


class Appender:
    """Appends commits together with pending access records. `append` and `append_all` require the writer lock."""

    def __init__(
        self,
        projector: Projector,
        *,
        embedder: Embedder,
        now: Callable[[], str],
        curve: ForgettingCurveConfig,
        on_damage: Callable[[int], None],
    ) -> None:
        self._projector = projector
        self.embedder = embedder
        self._now = now
        self._curve = curve
        self._on_damage = on_damage
        self.pending = PendingAccess(self.flush, curve, lambda: projector.projection.seq)
        self._made_ids: set[str] = set()

    @property
    def model(self) -> VectorModel:
        """The model of the stored vectors."""
        return vector_model(self._projector.journal.named, self.embedder)

    def use(self, embedder: Embedder) -> None:
        """Switch to another embedder."""
        self.embedder = embedder

    def checked(self, vector: object) -> Vector:
        """Return a vector after checking that this store can keep it."""
        return checked_vector(vector, self.model)

    def flush(self) -> None:
        """Commit the pending access records."""
        if self.pending:
            with self._projector.writing():
                self.append("system", [], actor="system")

    def new_id(self) -> str:
        """Return a new memory's id."""
        made = new_id()
        self._made_ids.add(made)  # freshly generated, so it need not be looked up
        return made

    def append(
        self,
        write_scope: WriteScope,
        writes: Sequence[Write],
        *,
        task_id: str | None = None,
        actor: Actor = "agent",
        made_by: Embedder | None = None,
    ) -> list[Event]:
        """Append one commit and return its events."""
        return self.append_all([(write_scope, task_id, writes)], actor=actor, made_by=made_by)

    def append_all(
        self,
        parts: Sequence[tuple[WriteScope, str | None, Sequence[Write]]],
        *,
        actor: Actor = "agent",
        made_by: Embedder | None = None,
    ) -> list[Event]:
        """Append commits, all or none, and return their events; `made_by` made the vectors, before the lock was taken."""
        given = [[_split(write) for write in writes] for _, _, writes in parts]
        vectors = [vector for writes in given for _, vector in writes if vector is not None]
        if vectors:
            check_model(self._projector.journal.named, made_by or self.embedder, in_use=self.embedder)
            model = self.model
            vectors = [checked_vector(vector, model) for vector in vectors]
        drafts = [
            CommitDraft(scope, [payload for payload, _ in writes], task_id=task_id, actor=actor)
            for (scope, task_id, _), writes in zip(parts, given, strict=True)
        ]
        self._check(drafts)
        with self._projector.view:
            drained = self.pending.drain(self._projector.rows.memories)
        first = CommitDraft("system", [*drained.payloads, *self._switch(vectors)], actor="system")
        before = self._projector.journal.tail.seq
        try:
            refs, write = self._placed(vectors)
            drafts = [first] + [
                replace(draft, payloads=[_naming(one, refs) for one in writes], commit_id=next_commit_id())
                for draft, writes in zip(drafts, given, strict=True)
            ]
            if not any(draft.payloads for draft in drafts):
                return []
            appended = self._projector.append(drafts, self._now(), first=write)
        except BaseException:
            if self._projector.journal.tail.seq == before:  # otherwise they are recorded and must not be counted twice
                with self._projector.view:
                    self.pending.put_back(drained)
            raise
        return appended[len(first.payloads) :]

    def _check(self, drafts: Sequence[CommitDraft]) -> None:
        """Refuse what may not be recorded, at the rows as they are."""
        payloads = [payload for draft in drafts for payload in draft.payloads]
        check_effect(payloads)
        if sum(isinstance(payload, MemoryAdded) for payload in payloads) >= MANY:
            _ = self._projector.index
        for payload in payloads:
            if getattr(payload, "vector", None) is not None and not isinstance(payload, MemoryUndeleted):
                raise InvalidInputError("is assigned by the store; pass the vector with the event", field="vector")
        check(Workspace(_Present(self._projector, self._made_ids)), drafts, self._now())
        self._made_ids.clear()

    def _placed(self, vectors: Sequence[Vector]) -> tuple[Iterator[VectorRef], Callable[[], None]]:
        """Return the references to vectors, and what writes them."""
        if not vectors:
            return iter(()), lambda: None
        model, dimension = self.model
        first = self._projector.journal.named.rows.get(model, 0)
        sums = map(row_sha256, vectors)
        refs = (VectorRef(model=model, row=row, sha256=sha256) for row, sha256 in enumerate(sums, start=first))
        stored = self._projector.journal.vectors(model, dimension)
        return refs, lambda: stored.restore(dict(enumerate(vectors, start=first)))

    def _switch(self, vectors: Sequence[Vector]) -> list[Payload]:
        """Return the event that sets the store's model, before its first vector."""
        if not vectors or self._projector.journal.named.model is not None:
            return []
        return [EmbeddingSwitched(model=self.model.name, dimension=self.model.dimension)]


class _Present:
    """Today's rows as the checks read them: without asking for what is known anyway."""

    def __init__(self, projector: Projector, made_ids: Collection[str]) -> None:
        self._projector = projector
        self._made_ids = made_ids
        self.get = projector.rows.get
        self.edges_at = projector.rows.edges_at
        self.sources = projector.rows.sources

    def has(self, table: str, key: Key) -> bool:
        """Return whether a row exists."""
        if table != "Memory":
            return self._projector.rows.has(table, key)
        if key in self._made_ids:
            return False
        index = self._projector.loaded_index
        return self._projector.rows.has(table, key) if index is None else index.slot(str(key)) >= 0


def _split(write: Write) -> tuple[Payload, Vector | None]:
    """Return the event of a write other than a memory, and its vector."""
    payload = write[0] if isinstance(write, tuple) and write else write
    if not isinstance(payload, Payload):
        raise InvalidInputError("must be an event, an event and its vector, or a memory", field="events", value=write)
    return payload, write[1] if isinstance(write, tuple) else None


def _naming(write: tuple[Payload, Vector | None], refs: Iterator[VectorRef]) -> Payload:
    payload, vector = write
    return payload if vector is None else payload.model_copy(update={"vector": next(refs)})


def payload_of(write: Write) -> Payload:
    """Return the event of a write other than a memory."""
    return _split(write)[0]


def with_vector(payload: Payload, vector: Vector | None) -> Write:
    """Return an event with a reference to its vector, if there is one."""
    return payload if vector is None else (payload, vector)
