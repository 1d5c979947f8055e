"""Appending: validate a commit against the current state, place its vectors, and record it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from memgraph.errors import DuplicateIdError, InvalidInputError, NotFoundError, ScopeError
from memgraph.fold.tasks import PIN, REMOVAL, is_pin
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.model.events.links import MemoryLinked
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryMerged,
    MemoryRevised,
    MemoryUndeleted,
    VectorRef,
)
from memgraph.model.events.payload import Actor, Payload, WriteScope
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.events.tasks import (
    PinAdded,
    PinEdited,
    PinPayload,
    PinRemoveCancelled,
    PinRemoved,
    PinRemoveRequested,
)
from memgraph.model.ids import new_id
from memgraph.model.memory import AgentMemory, Vector
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.ports import Embedder, Row
from memgraph.store.commit.access import PendingAccess
from memgraph.store.commit.effects import check_effect
from memgraph.store.commit.handoff_gate import check_handoffs
from memgraph.store.commit.requests import next_commit_id
from memgraph.store.commit.task_gate import check_task_events, check_writable, known_task
from memgraph.store.commit.vectors import VectorModel, check_model, checked_vector, vector_model
from memgraph.store.projection.projector import Projector

Rows = Callable[[str, str], Row | None]
PROTECTED = frozenset(
    (
        "content title is_pinned is_suppressed archived_at invalid_at valid_at project_id task_id session_id source "
        "privacy_tier domain trust_class"
    ).split()
)
"""Fields of a pin's memory that decide what it says, and whether, where and by whom it is recalled."""
Write = Payload | tuple[Payload, Vector] | AgentMemory
"""An event; an event with the vector that it refers to; or a memory to add."""

MANY = 100
"""From this many new ids on, the index checks whether they exist: loading it is cheaper than asking the graph."""


class Appender:
    """Appends commits together with pending access records. `append` and `append_all` require the writer lock.

    Parameters
    ----------
    on_damage : callable
        Called with the number of rows missing in a vector file that is about to be written.
    """

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
        self._embedder = embedder
        self._now = now
        self._on_damage = on_damage
        self.pending = PendingAccess(self.flush, curve, lambda: projector.projection.seq)
        self._made_ids: set[str] = set()

    @property
    def model(self) -> VectorModel:
        """The model of the stored vectors."""
        return vector_model(self._projector.journal.named, self._embedder)

    def use(self, embedder: Embedder) -> None:
        """Switch to another embedder."""
        self._embedder = embedder

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
        """Append commits, all or none, and return their events.

        Parameters
        ----------
        made_by : Embedder, optional
            The embedder that made the vectors, before the lock was taken. Default: the one in use.

        Raises
        ------
        ModelMismatchError
            The store has switched to another model since.
        """
        if any(isinstance(write, tuple) for _, _, writes in parts for write in writes):
            check_model(self._projector.journal.named, made_by or self._embedder, in_use=self._embedder)
        checked = [
            (
                scope,
                task_id,
                [self._ready(write) for write in writes],
            )
            for scope, task_id, writes in parts
        ]
        for scope, task_id, writes in checked:
            # reject mixed scopes before anything is written
            CommitDraft(scope, [payload_of(write) for write in writes], task_id=task_id, actor=actor)
        check_effect(payload_of(write) for _, _, writes in checked for write in writes)
        self._check([(task_id, payload_of(write)) for _, task_id, writes in checked for write in writes])
        for _, task_id, writes in checked:
            payloads = [payload_of(write) for write in writes]
            check_task_events(task_id, payloads, self._projector.rows.get)
            check_pins(task_id, payloads, self._projector.rows.get)
            check_handoffs(task_id, payloads, self._projector.rows.get)
        placed = iter(self._placed([write for _, _, writes in checked for write in writes]))
        with self._projector.view:
            drained = self.pending.drain(self._projector.rows.get)
        drafts = [CommitDraft("system", [*drained.payloads, *self._switch(checked)], actor="system")]
        for scope, task_id, writes in checked:
            payloads = [next(placed) for _ in writes]
            drafts.append(CommitDraft(scope, payloads, task_id=task_id, actor=actor, commit_id=next_commit_id()))
        if not any(draft.payloads for draft in drafts):
            return []
        before = self._projector.journal.tail.chain.seq
        try:
            appended = self._projector.append(drafts, self._now())
        except BaseException:
            if (
                self._projector.journal.tail.chain.seq == before
            ):  # otherwise they are recorded and must not be counted twice
                with self._projector.view:
                    self.pending.put_back(drained)
            raise
        return appended[len(drafts[0].payloads) :]

    def _ready(self, write: Write) -> Write:
        """Return a write in the form in which it is stored, with its vector checked."""
        return (write[0], self.checked(write[1])) if isinstance(write, tuple) else write

    def _check(self, payloads: Sequence[tuple[str | None, Payload]]) -> None:
        """Reject ids that exist, do not exist, or belong to another write scope than the commit, as the event requires."""
        added: dict[str, str | None] = {}
        if sum(isinstance(payload, MemoryAdded) for _, payload in payloads) >= MANY:
            _ = self._projector.index
        for task_id, payload in payloads:
            if getattr(payload, "vector", None) is not None and not isinstance(payload, MemoryUndeleted):
                raise InvalidInputError("is assigned by the store; pass the vector with the event", field="vector")
            if isinstance(payload, MemoryAdded | MemoryUndeleted):
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
        """Write and sync the vectors, and return the events that refer to them."""
        vectors = [write[1] for write in writes if isinstance(write, tuple)]
        if not vectors:
            return [payload_of(write) for write in writes]
        model, dimension = self.model
        first = self._projector.journal.named.rows.get(model, 0)
        file = self._projector.journal.vectors(model, dimension)
        if (missing := first - file.available()) > 0:  # the file was truncated
            self._on_damage(missing)
        places = iter(enumerate(file.write(first, np.stack(vectors)), start=first))
        placed = []
        for write in writes:
            payload = payload_of(write)
            if isinstance(write, tuple):
                row, sha256 = next(places)
                payload = payload.model_copy(update={"vector": VectorRef(model=model, row=row, sha256=sha256)})
            placed.append(payload)
        return placed

    def _switch(self, parts: Sequence[tuple[WriteScope, str | None, Sequence[Write]]]) -> list[Payload]:
        """Return the event that sets the store's model, before its first vector."""
        has_vectors = any(isinstance(write, tuple) for _, _, writes in parts for write in writes)
        if not has_vectors or self._projector.journal.named.model is not None:
            return []
        return [EmbeddingSwitched(model=self.model.name, dimension=self.model.dimension)]

    def _exists(self, memory_id: str) -> bool:
        index = self._projector.loaded_index
        if index is not None:
            return index.slot(memory_id) >= 0
        return self._projector.rows.get("Memory", memory_id) is not None


def payload_of(write: Write) -> Payload:
    """Return the event of a write other than a memory."""
    payload = write[0] if isinstance(write, tuple) and write else write
    if not isinstance(payload, Payload):
        raise InvalidInputError("must be an event, an event and its vector, or a memory", field="events", value=write)
    return payload


def with_vector(payload: Payload, vector: Vector | None) -> Write:
    """Return an event with a reference to its vector, if there is one."""
    return payload if vector is None else (payload, vector)


def check_pins(task_id: str | None, payloads: Sequence[Payload], rows: Rows) -> None:
    """Check the events of one commit.

    Raises
    ------
    InvalidInputError
        A pin would change, leave recall or be deleted, and no event of the commit edits or removes it; or its task is archived or closed.
    NotFoundError
        A memory that is to be edited or removed as a pin is none.
    ScopeError
        An event of a pin is committed in another write scope than that of the pin.
    """
    pins = [payload for payload in payloads if isinstance(payload, PinPayload)]
    if pins:
        _check_events(task_id, payloads, pins, rows)
    explicit = {payload.id for payload in pins if isinstance(payload, PinEdited | PinRemoved)}
    for memory_id, what in _changed(payloads):
        if memory_id not in explicit and is_pin(row := rows(PIN, memory_id)):
            lost = isinstance(what, MemoryMerged | MemoryRevised) and _loses_its_tag(what, row or {}, rows)
            if lost or not isinstance(what, MemoryMerged | MemoryRevised) or not _fields(what).isdisjoint(PROTECTED):
                problem = (
                    "is a pin, which only `memgraph pins edit` changes; `memgraph pins remove` or `memgraph forget --pins` "
                    "removes it"
                )
                raise InvalidInputError(problem, field="id", value=memory_id)


def _check_events(task_id: str | None, payloads: Sequence[Payload], pins: Sequence[PinPayload], rows: Rows) -> None:
    new = {payload.memory.id: payload.memory for payload in payloads if isinstance(payload, MemoryAdded)}
    if task_id is not None and any(not isinstance(payload, PinRemoveCancelled) for payload in pins):
        check_writable(task_id, known_task(rows, task_id)["status"])  # who cancels a removal keeps the pin as it is
    for payload in pins:
        if isinstance(payload, PinAdded):
            if payload.id not in new or not new[payload.id].is_pinned:
                raise InvalidInputError("must be a pinned memory of the same commit", field="id", value=payload.id)
            continue
        row = rows(PIN, payload.id)
        if row is None or not is_pin(row):
            raise NotFoundError("pin", payload.id, listed_by="memgraph pins")
        if row.get("task_id") != task_id:
            problem = f"pin {payload.id} belongs to task {row.get('task_id')!r}, the commit to {task_id!r}"
            raise ScopeError(f"{problem}: one commit has one write scope")
        request_id = None if isinstance(payload, PinRemoveRequested) else getattr(payload, "request_id", None)
        request = rows(REMOVAL, request_id) if request_id is not None else None
        if request_id is not None and (
            request is None or request["pin_id"] != payload.id or request["state"] != "open"
        ):
            raise NotFoundError("open request to remove the pin", request_id, listed_by="memgraph pins")


def _changed(payloads: Sequence[Payload]) -> Iterator[tuple[str, Payload]]:
    """Yield the memories that events change or replace."""
    for payload in payloads:
        if isinstance(payload, MemoryRevised | MemoryMerged | MemoryDeleted):
            yield payload.id, payload
        elif isinstance(payload, MemoryLinked) and payload.relation == "SUPERSEDES":
            yield payload.target_id, payload


def _fields(revision: MemoryRevised | MemoryMerged) -> set[str]:
    return {*revision.changed.model_fields_set, *revision.cleared}  # type: ignore[attr-defined]


def _loses_its_tag(revision: MemoryRevised | MemoryMerged, pin: Row, rows: Rows) -> bool:
    """Return whether a revision takes the tag from a constraint by which recall finds it."""
    if "tags" not in _fields(revision):
        return False
    tags = {tag.casefold() for tag in revision.row_after(rows("Memory", revision.id) or {}).get("tags", ())}
    return pin["kind"] not in tags
