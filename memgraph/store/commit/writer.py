"""Write operations: each call is one commit under the writer lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count, groupby
from typing import Any, TypeVar
from uuid import UUID, uuid5

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError, InvalidInputError, NotFoundError, ReadOnlyError
from memgraph.extraction.secrets import kinds_of_secrets, redact_any
from memgraph.fold import Workspace, check
from memgraph.fold.memories import chain_of
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.journal import Journal
from memgraph.journal.vectors import row_sha256
from memgraph.logs import logger_of
from memgraph.model.base import checked, checked_list
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryRevised,
    MemoryUndeleted,
    VectorRef,
)
from memgraph.model.events.payload import Actor, Payload, WriteScope
from memgraph.model.events.records import RetrievalRecorded
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.ids import new_id, stored_form
from memgraph.model.link import Link
from memgraph.model.memory import (
    RECORD_SOURCES,
    AgentMemory,
    EpisodicMemory,
    MemoryRecord,
    ProceduralMemory,
    Role,
    SemanticMemory,
    StoredMemory,
    Vector,
    fields_with,
    no_attempt,
    parse_memory,
)
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.learning import COUNTING_SOURCE, MADE_FROM_OTHERS
from memgraph.ports import Annotator, Embedder, Key, Row
from memgraph.privacy import TEXT_FIELDS, Inferred, M, inferred, strictest, text_of
from memgraph.store.commit.access import PendingAccess, Use
from memgraph.store.commit.records import (
    VectorModel,
    Write,
    annotated,
    check_model,
    checked_vector,
    patch,
    payload_and_vector,
    record_of,
    scope_of,
    vector_model,
    with_its_reasons,
    with_vector,
)
from memgraph.store.projector import Projector
from memgraph.store.rows import BULK_FROM, in_bulk

logger = logger_of(__name__)

MANY = 100
"""From this many new ids on, the index checks whether they exist: loading it is cheaper than a look-up for each."""
T = TypeVar("T")
Chain = tuple[str, str]
ChainOf = Callable[[AgentMemory], Chain | None]
_PARTS: Chain = ("", "parts of one text")

FIXED_FIELDS = fields_with(Role.STORE | Role.USE | Role.VECTOR) | {
    "type",
    "task_id",
    "project_id",
    "session_id",
    "supporting_memory_ids",
}
"""Fields that an update cannot set."""
_NO_VECTOR = {"embedding_model": None, "embedded_at": None}
_FIELD_OF_ALIAS = {
    field.alias: name
    for kind in (EpisodicMemory, SemanticMemory, ProceduralMemory)
    for name, field in kind.model_fields.items()
    if field.alias
}
_NAMES = ("agent_name", "project_id", "session_id", "task_id", "build_id")
"""What the caller of a retrieval gives of its record."""
_reads_only: ContextVar[bool] = ContextVar("reads_only", default=False)
_MOST_COMMITS = 256
"""Commits of one request that are looked for. A request that made more has made one of the first."""
_names: ContextVar[Iterator[str] | None] = ContextVar("commit_ids", default=None)


@dataclass(eq=False)
class Writer:
    """Turns requests into events (validates, annotates, embeds), and appends them with the pending access records, holding the writer lock."""

    _projector: Projector
    embedder: Embedder
    _annotator: Annotator
    _now: Callable[[], str]
    _curve: ForgettingCurveConfig
    _redacts: bool
    notices: list[str] = field(default_factory=list)
    _made_ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.pending = PendingAccess(self.flush, self._curve, lambda: self._projector.projection.seq)
        self.tiers = Tiers(self.notice)

    @property
    def model(self) -> VectorModel:
        """The model of the stored vectors."""
        return vector_model(self._projector.journal.named, self.embedder)

    def insert_memory(self, memory: AgentMemory | Mapping[str, Any]) -> StoredMemory:
        """Add a memory. A given id is kept; without an embedding the content is embedded."""
        return self.insert_memories([memory])[0]

    def insert_memories(
        self, memories: Sequence[AgentMemory | Mapping[str, Any]], *, annotate: bool = True
    ) -> list[StoredMemory]:
        """Add memories in one commit, all or none. They share one write scope.

        Parameters
        ----------
        annotate : bool
            Extract entities, predecessors and fingerprints; False stores the memories exactly as given (an import).
        """
        if isinstance(memories, str | Mapping) or not isinstance(memories, Iterable):
            raise InvalidInputError("must be a list of memories", field="memories", value=memories)
        return self.insert(list(memories), annotate=annotate)

    def insert_parts(self, memories: Sequence[AgentMemory], *, actor: Actor = "agent") -> list[StoredMemory]:
        """Add the parts of one text in one commit, each linked to the preceding part."""
        return self.insert(checked_list(AgentMemory, memories, "memories"), parts=True, actor=actor)

    def rewrite(
        self,
        *,
        add: Sequence[AgentMemory] = (),
        change: Mapping[str, Mapping[str, Any]] | None = None,
        delete: Sequence[str] = (),
        reason: str | None = None,
        actor: Actor = "agent",
    ) -> None:
        """Add, change and delete memories without a task in one commit, all or none.

        Parameters
        ----------
        change : mapping, optional
            By id the new values of fields, as `update_memory` takes them. A given ``embedding`` is that of the new content.
        reason : str, optional
            Why memories are deleted.
        """
        with self.exclusive():
            changed = checked(Mapping[str, Mapping[str, Any]], change or {}, "change")
            changes = [self.revision(one, updates) for one, updates in changed.items()]
            deletions = [MemoryDeleted(id=one, reason=reason) for one in checked_list(str, delete, "delete")]
            writes = [*checked_list(AgentMemory, add, "add"), *changes, *deletions]
            self.commit("global", writes, actor=actor)

    def import_memories(self, memories: Sequence[AgentMemory], links: Sequence[Link]) -> None:
        """Add memories as given, and their links, in one commit per write scope. One without a privacy tier gets that of its domain and text."""
        memories, links = checked_list(AgentMemory, memories, "memories"), checked_list(Link, links, "links")
        made_by = self.embedder
        with self._projector.graph.written_after():
            completed = self._completed(memories, annotate=False)
            with self._projector.writing():
                now = self._now()
                parts: list[tuple[WriteScope, str | None, Sequence[Write]]] = [
                    ("task" if task_id else "global", task_id, self._as_events(list(run), _chains(annotate=False)))
                    for task_id, run in groupby(completed, key=lambda memory: memory.task_id)
                ]
                dated = ({**link.model_dump(), "created_at": link.created_at or now} for link in links)
                made = [self.without_secrets(MemoryLinked(**fields)) for fields in dated]
                parts += [("global", None, made)] if made else []  # when their ends exist
                if parts:
                    self.append_all(parts, made_by=made_by)

    def commit(
        self,
        write_scope: WriteScope,
        writes: Sequence[Write],
        *,
        task_id: str | None = None,
        actor: Actor = "agent",
        made_by: Embedder | None = None,
        embeds: bool = True,
    ) -> list[Event]:
        """Commit events in one write scope; `made_by` is the embedder of the given vectors."""
        if write_scope == "none" or not writes:
            return []
        made_by = made_by or self.embedder
        memories = [write for write in writes if isinstance(write, AgentMemory)]
        whole = iter(self._completed(memories, embeds=embeds))
        completed = [next(whole) if isinstance(write, AgentMemory) else self._clean(write) for write in writes]
        with self._projector.writing():
            return self.append(
                write_scope, self._as_events(completed, _chains()), task_id=task_id, actor=actor, made_by=made_by
            )

    def insert(
        self,
        memories: Sequence[AgentMemory | Mapping[str, Any]],
        *,
        annotate: bool = True,
        parts: bool = False,
        actor: Actor = "agent",
    ) -> list[StoredMemory]:
        """Add memories in one commit and return them as stored; `parts` are linked in order."""
        if not memories:
            return []
        with ExitStack() as block:
            if len(memories) >= BULK_FROM:
                block.enter_context(in_bulk())
                block.enter_context(self._projector.graph.written_after())
            made_by = self.embedder
            completed = self._completed([parse_memory(memory) for memory in memories], annotate=annotate, are_one=parts)
            task_id, chains = completed[0].task_id, _chains(annotate=annotate, parts=parts)
            with self._projector.writing():
                writes = self._as_events(completed, chains)
                events = self.append(scope_of(completed[0]), writes, task_id=task_id, actor=actor, made_by=made_by)
            added = (event.content["memory"] for event in events if isinstance(event.payload, MemoryAdded))
            return [self._kept(row, memory) for row, memory in zip(added, completed, strict=True)]

    def _kept(self, row: Row, memory: AgentMemory) -> StoredMemory:
        """Return the stored memory that was made from a given one."""
        filled: dict[str, Any] = {"embedding": memory.embedding}
        if row["type"] != "episodic":
            filled["supporting_memory_ids"] = sorted(set(memory.supporting_memory_ids))  # type: ignore[attr-defined]
        return AgentMemory.from_row(row, now=self._now(), curve=self._curve, **filled)

    def note_uses(self, uses: Sequence[Use]) -> None:
        """Record uses of memories: visible at once, durable within a second."""
        self.note_retrieval(None, uses)

    def note_retrieval(self, record: RetrievalRecorded | None, uses: Sequence[Use]) -> None:
        """Record a retrieval and its uses."""
        journal = self._projector.journal
        if record is not None:
            given = {name: value for name in _NAMES if (value := getattr(record, name)) is not None}
            record = record.model_copy(update=self.without_secrets(given)) if given else record
        with self._projector.view:
            if not journal.is_read_only:
                self.pending.add(uses, record)
            elif refused := journal.refused_writes():
                self.pending.skip(refused)

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold the writer lock for a block; writes inside it nest."""
        return self._projector.writing()

    def update(self, memory_id: str, updates: Mapping[str, Any], *, actor: Actor = "agent") -> None:
        """Change fields of a memory."""
        updates = {_FIELD_OF_ALIAS.get(name, name): value for name, value in updates.items()}
        # before full validation, only the text to embed is checked
        if isinstance(updates.get("content"), str):
            updates["content"] = self.without_secrets(updates["content"])
        if wrong := sorted(updates.keys() & FIXED_FIELDS):
            raise InvalidInputError("cannot be updated", field=wrong[0], value=updates[wrong[0]])
        made_by = self.embedder
        ready = self.embedded(updates["content"]) if "embedding" not in updates and "content" in updates else None
        with self._projector.writing():
            row = self._row(memory_id)
            write = self.revision(memory_id, updates, ready=ready)
            self.append(scope_of(row), [write], task_id=row.get("task_id"), actor=actor, made_by=made_by)

    def revision(self, memory_id: str, updates: Mapping[str, Any], *, ready: Vector | None = None) -> Write:
        """Return the event that changes fields of a memory; requires the lock."""
        row, now = self._row(memory_id), self._now()
        given = self.without_secrets(self.updated(row, updates, now))
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
            model = {"embedding_model": self.model.name, "embedded_at": now}
            settled |= model if vector is not None else dict.fromkeys(model)
        new = record_of(given, now=now, max_relevance=self._curve.max_relevance, **settled)
        changed, cleared = patch(row, new)
        return with_vector(MemoryRevised(id=row["id"], changed=changed, cleared=cleared), vector)

    def updated(self, row: Row, updates: Mapping[str, Any], now: str) -> AgentMemory:
        """Return the validated memory that results from a row and new values of its fields."""
        old: AgentMemory = AgentMemory.from_row(row, now=now, curve=self._curve)
        if old.source in RECORD_SOURCES:  # who changes a record makes it a memory
            updates = {"source": RECORD_SOURCES[old.source], "archived_at": None, **updates}
        if old.source == COUNTING_SOURCE and "confidence" in updates:  # it is no longer as it was counted
            updates = {"pattern": None, **updates}
        updates = with_its_reasons(updates, row)
        fields = {name: value for name, value in old if name in old.model_fields_set and value is not None}
        if "outcome" in updates:
            fields.pop("outcome_word", None)
        given = type(old).parse({**fields, **updates})
        if given.content != old.content:  # annotations of the old text are dropped with it
            found: dict[str, Any] = {
                "cues": [],
                "entities": [],
                "failure_fingerprint": None,
                "is_solved": None,
                **no_attempt(),
            }
            kept = type(given).model_fields
            stale = {name: value for name, value in found.items() if name in kept and name not in updates}
            given = annotated(given.model_copy(update=stale), self._annotator)
        return (self.tiers.stated if "privacy_tier" in updates else self.tiers.changed)(old, given)

    def embedded(self, text: object) -> Vector | None:
        """Embed before the lock is taken, so that nobody waits for the model. A failure is raised when the vector is used."""
        with suppress(EmbeddingError):
            made = embed_each(self.embedder, [text])[0] if isinstance(text, str) else None
            return None if isinstance(made, EmbeddingError) else made
        return None

    def append_about(self, memory_id: str, make: Callable[[Row, str], Payload], *, actor: Actor = "agent") -> None:
        """Commit one event about a memory in its own scope, computed from its row and the time."""
        with self._projector.writing():
            row = self._row(memory_id)
            self.append(
                scope_of(row), [self.without_secrets(make(row, self._now()))], task_id=row.get("task_id"), actor=actor
            )

    def vectors_for(self, memories: Sequence[AgentMemory]) -> list[Vector | None]:
        """Return each memory's vector: the given one, else its content's embedding, in one batch; None, with a notice, where that fails."""
        vectors = [memory.embedding for memory in memories]
        # records are many, and found by their words until `embed_awaiting` comes to them
        lacking = [n for n, one in enumerate(memories) if vectors[n] is None and one.source not in RECORD_SOURCES]
        if not lacking or not self.embedder.dimension:
            return vectors
        made: list[Vector | EmbeddingError]
        try:
            made = embed_each(self.embedder, [memories[place].content for place in lacking])
        except EmbeddingError as error:
            made = [error] * len(lacking)
        for place, vector in zip(lacking, made, strict=True):
            vectors[place] = None if isinstance(vector, EmbeddingError) else vector
        if failed := [one for one in made if isinstance(one, EmbeddingError)]:
            many = "a memory is kept" if len(failed) == 1 else f"{len(failed)} memories are kept"
            self.notice(f"{many} without vectors, found by text alone until `memgraph embed` succeeds: {failed[0]}")
        return vectors

    def _completed(
        self, memories: Sequence[AgentMemory], *, annotate: bool = True, are_one: bool = False, embeds: bool = True
    ) -> list[AgentMemory]:
        """Redact secrets, classify, annotate and embed: all steps that need no lock."""
        memories = self.tiers.classified([self.without_secrets(memory) for memory in memories], are_one=are_one)
        if annotate:
            memories = [annotated(memory, self._annotator) for memory in memories]
        if not embeds:
            return memories
        vectors = self.vectors_for(memories)
        return [
            memory if memory.embedding is vector else memory.model_copy(update={"embedding": vector})
            for memory, vector in zip(memories, vectors, strict=True)
        ]

    def _clean(self, write: Payload | tuple[Payload, Vector]) -> Write:
        return (self.without_secrets(write[0]), write[1]) if isinstance(write, tuple) else self.without_secrets(write)

    def without_secrets(self, value: T) -> T:
        """Return the value with its secrets redacted, and report their number and kinds."""
        if not self._redacts:
            return value
        found = redact_any(value)
        if found.number:
            were = "secret was" if found.number == 1 else "secrets were"
            kinds = ", ".join(kinds_of_secrets(value))
            self.notice(f"{found.number} {were} redacted before storing ({kinds})")
        return found.value

    def _as_events(self, writes: Sequence[Write], chain_of: ChainOf) -> list[Write]:
        """Turn memories into events: set ids, times, predecessors and evidence; requires the lock."""
        now = self._now()
        last: dict[Chain, str | None] = {_PARTS: None}
        events: list[Write] = []
        for write in writes:
            if not isinstance(write, AgentMemory):
                events.append(write)
                continue
            record = self._record(write, now, chain_of(write), last)
            events.append(with_vector(MemoryAdded(memory=record), write.embedding))
            if sources := getattr(write, "supporting_memory_ids", []):
                if record.id in sources:
                    raise InvalidInputError("names the memory itself", field="supporting_memory_ids", value=record.id)
                events.append(MemoryDerived(id=record.id, source_ids=sources, created_at=now))
        return events

    def _record(
        self, memory: AgentMemory, now: str, chain: Chain | None, last: dict[Chain, str | None]
    ) -> MemoryRecord:
        settled: dict[str, Any] = {"id": memory.id or new_id(), **_NO_VECTOR}
        if memory.id is None:
            self._made_ids.add(settled["id"])  # freshly generated, so it need not be looked up
        if memory.embedding is not None:
            settled |= {"embedding_model": self.model.name, "embedded_at": memory.embedded_at or now}
        if chain is not None:
            if chain not in last:
                node = self._projector.rows.get(*chain)
                last[chain] = node.get("last_memory_id") if node else None
            settled["previous_id"] = memory.previous_id or last[chain]
            last[chain] = settled["id"]
        return record_of(memory, now=now, max_relevance=self._curve.max_relevance, **settled)

    def _row(self, memory_id: str) -> Row:
        row = self._projector.rows.get("Memory", stored_form(memory_id))
        if row is None:
            raise NotFoundError("memory", str(memory_id))
        return self.pending.over(row)

    def notice(self, text: str) -> None:
        """Show the user a notice once."""
        if text not in self.notices:
            logger.warning("%s", text)
            self.notices.append(text)

    def flush(self) -> None:
        """Commit the pending access records."""
        if self.pending:
            with self._projector.writing():
                self.append("system", [], actor="system")

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
        given = [[payload_and_vector(write) for write in writes] for _, _, writes in parts]
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
            taken = self.pending.taken(self._projector.rows.memories)
        first = CommitDraft("system", [*taken.payloads, *self._switch(vectors)], actor="system")
        refs, write = self._placed(vectors)
        drafts = [first] + [
            replace(
                draft,
                payloads=[
                    payload if vector is None else payload.model_copy(update={"vector": next(refs)})
                    for payload, vector in writes
                ],
                commit_id=next_commit_id(),
            )
            for draft, writes in zip(drafts, given, strict=True)
        ]
        recorded = partial(self.pending.forget, taken)
        if not any(draft.payloads for draft in drafts):
            with self._projector.view:
                recorded()  # uses of memories that are deleted by now
            return []
        before = self._projector.journal.tail.seq
        try:
            events = self._projector.append(drafts, self._now(), read=taken.rows, first=write, then=recorded)
            return events[len(first.payloads) :]
        except BaseException:
            if self._projector.journal.tail.seq != before:  # they are recorded, and must not be counted twice
                with self._projector.view:
                    recorded()
            raise

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
        if not vectors or self._projector.journal.named.model is not None:
            return []
        return [EmbeddingSwitched(model=self.model.name, dimension=self.model.dimension)]


class _Present:
    """Today's rows for the checks of the fold: whether a memory exists is not asked where it is known anyway."""

    def __init__(self, projector: Projector, made_ids: set[str]) -> None:
        self._projector = projector
        self._made_ids = made_ids
        self.get = projector.rows.get
        self.edges_at = projector.rows.edges_at

    def has(self, table: str, key: Key) -> bool:
        """Return whether a row exists."""
        if table != "Memory":
            return self._projector.rows.has(table, key)
        if key in self._made_ids:
            return False
        index = self._projector.loaded_index
        return self._projector.rows.has(table, key) if index is None else index.slot(str(key)) >= 0


def _chains(*, annotate: bool = True, parts: bool = False) -> ChainOf:
    """Return the function that finds a memory's predecessor: none if memories are stored exactly as given."""
    if parts:
        return lambda _memory: _PARTS
    if not annotate:
        return lambda _memory: None
    return lambda memory: chain_of(
        {"type": memory.type, "session_id": memory.session_id, "project_id": memory.project_id, "source": memory.source}
    )


class Tiers:
    """Gives memories their tiers."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice

    def classified(self, memories: Sequence[AgentMemory], *, are_one: bool = False) -> list[AgentMemory]:
        """Return memories with their tiers, unless they were given one; with `are_one`, the texts of all decide for each."""
        whole = "\n".join(map(text_of, memories)) if are_one else None
        found_in = cache(inferred)  # once in the whole text, not once for each part
        found = [
            memory
            if "privacy_tier" in memory.model_fields_set
            else self.raised(memory, found_in(memory.domain, text_of(memory) if whole is None else whole))
            for memory in memories
        ]
        for memory in found:
            self._tell_if_nobodys(memory)
        return found

    def raised(self, memory: M, found: Inferred | None = None) -> M:
        """Return a memory with a stricter tier, and the domain if it has none, if its domain or texts call for it."""
        found = inferred(memory.domain, text_of(memory)) if found is None else found
        if found.notice:
            self._notice(f"a memory was {found.notice}")
        if strictest(found.tier, memory.privacy_tier) == memory.privacy_tier:
            return memory
        return memory.model_copy(update={"privacy_tier": found.tier, "domain": memory.domain or found.domain})

    def changed(self, old: AgentMemory, new: M) -> M:
        """Return a changed memory with a stricter tier, if its new domain or its new texts call for it."""
        domain = new.domain if new.domain != old.domain else None
        texts = [name for name in TEXT_FIELDS if getattr(new, name, None) != getattr(old, name, None)]
        return self.raised(new, inferred(domain, text_of(new, texts)))

    def stated(self, old: AgentMemory, new: M) -> M:
        """Return a changed memory whose tier was stated."""
        if (old.privacy_tier, old.domain) != (new.privacy_tier, new.domain):
            self._tell_if_nobodys(new)
        return new

    def _tell_if_nobodys(self, memory: AgentMemory) -> None:
        if memory.privacy_tier == "private" and memory.domain is None and memory.source not in MADE_FROM_OTHERS:
            self._notice(
                "a private memory has no domain, so no agent may have it; `memgraph edit ID --domain NAME` gives it one"
            )


@contextmanager
def reading_only() -> Iterator[None]:
    """Reject all that this thread writes in the block except records of reading."""
    token = _reads_only.set(True)
    try:
        yield
    finally:
        _reads_only.reset(token)


def check_effect(payloads: Iterable[Payload]) -> None:
    """Reject what an operation that only reads must not write."""
    if _reads_only.get():
        for payload in payloads:
            if not payload.POLICY.is_of_reading:
                raise ReadOnlyError(
                    f"an operation that only reads was about to write {payload.TYPE}; nothing was written"
                )


def next_commit_id() -> str | None:
    """Return the id of the next commit of the present request; None outside a request: the journal then draws one."""
    names = _names.get()
    return None if names is None else next(names)


class Requests:
    """Names the commits of requests, and finds them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def seq(self) -> int:
        """Number of the last event that this process has seen: a new request's commits come later."""
        return self._journal.tail.seq

    @contextmanager
    def naming(self, request_id: str) -> Iterator[None]:
        """Derive the ids of the commits that this thread makes in the block from the id of a request, a UUID used for it alone."""
        token = _names.set(_commit_ids(request_id))
        try:
            yield
        finally:
            _names.reset(token)

    def made_by(self, request_id: str, *, after: int) -> list[Event]:
        """Return the events of a request's commits, in order, but for records of reading and of the embedding in use. Reads the events after `after`."""
        names = _commit_ids(request_id)
        wanted = {next(names) for _ in range(_MOST_COMMITS)}
        events = (one for one in self._journal.events_after(after) if one.commit_id in wanted)
        return [
            one
            for one in events
            if not (one.payload.POLICY.is_of_reading or isinstance(one.payload, EmbeddingSwitched))
        ]


def _commit_ids(request_id: str) -> Iterator[str]:
    space = UUID(request_id)
    return (str(uuid5(space, str(number))) for number in count())
