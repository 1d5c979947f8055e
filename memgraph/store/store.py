"""`AgentMemoryStore`: memories in, memories out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Self

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.embedding import default_embedder
from memgraph.errors import ClosedError, InvalidInputError, NotFoundError
from memgraph.extraction.annotate import RuleAnnotator
from memgraph.journal.envelope import Event
from memgraph.model.base import Callback, checked, checked_list
from memgraph.model.events.payload import Actor, WriteScope
from memgraph.model.events.recalls import OutcomeRecorded, RetrievalRecorded
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, MemoryType
from memgraph.model.results.listing import MemoryStats
from memgraph.model.timestamps import to_iso
from memgraph.ports import Annotator, Clock, Embedder, GraphEngine, KeyProvider, Progress
from memgraph.store.analysis import AnswersQueries
from memgraph.store.commit.access import Use
from memgraph.store.commit.append import Write
from memgraph.store.commit.records import check_commit
from memgraph.store.commit.vectors import check_model
from memgraph.store.commit.writer import Writer
from memgraph.store.hidden_sources import withheld
from memgraph.store.maintenance.reembedding import ReembedsVectors
from memgraph.store.maintenance.vector_repair import RepairsVectors
from memgraph.store.maintenance.verification import Verification
from memgraph.store.maintenance.verifying import refuse, verify
from memgraph.store.opening import check_parts, utc_now
from memgraph.store.outcomes import check_outcome, events_of, is_recorded, newly_used
from memgraph.store.past.as_of import LooksBack
from memgraph.store.projection.batches import Batches, WritesInBatches
from memgraph.store.projection.bulk import BULK_FROM
from memgraph.store.projection.place import Place
from memgraph.store.query import Reader
from memgraph.store.states import Ways


class AgentMemoryStore(AnswersQueries, LooksBack, RepairsVectors, ReembedsVectors, WritesInBatches, Ways):
    """A store of memories in one directory: a context manager, thread-safe.

    Every write is durable and visible when its call returns; access records follow within a second.

    Parameters
    ----------
    config : AgentMemoryConfig, optional
        Default: what environment and ``config.toml`` say.
    embedder : Embedder, optional
        Default: what ``embedding_model`` says. A store keeps to the model of its first vector.
    clock : callable, optional
        Returns the time as an aware datetime.
    keys : KeyProvider, optional
        Default: ``MEMGRAPH_KEY`` where set, else a file in the user's configuration directory.
    annotator : Annotator, optional
        Default: the rules.
    engine : GraphEngine, optional
        Holds the graph. It is filled from the journal, and closed with the store. Default: a database under ``graph/``, which is what
        views of the past always have.

    Raises
    ------
    NotAStoreError, StorageError
        The directory cannot be a store.
    JournalError
        The journal cannot be trusted, or its key is missing.
    ModelMismatchError
        The store's vectors were made by another model.
    """

    def __init__(
        self,
        config: AgentMemoryConfig | None = None,
        *,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
        keys: KeyProvider | None = None,
        annotator: Annotator | None = None,
        engine: GraphEngine | None = None,
    ) -> None:
        check_parts(embedder=embedder, clock=clock, keys=keys, annotator=annotator, engine=engine)
        self.config = load_config() if config is None else AgentMemoryConfig.parse(config)
        self.embedder = embedder or default_embedder(self.config)
        self._clock = clock or utc_now
        self._is_closed = False
        self._journal, self._projector = self._parts(keys, engine)
        curve = self.config.forgetting_curve
        self._batches = Batches(self._projector)
        self._writer = Writer(
            self._projector,
            embedder=self.embedder,
            annotator=annotator or RuleAnnotator(),
            now=self.now,
            curve=curve,
            redacts=self.config.redact_secrets,
            on_damage=self._tell_damage,
        )
        pending = self._writer.pending
        self._reader = Reader(
            self._projector,
            embedder=lambda: self.embedder,
            pending=pending,
            now=self.now,
            curve=curve,
            on_damage=self._tell_damage,
        )
        check_model(self._journal.named, self.embedder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def store_id(self) -> str:
        """Names the store's key and head file."""
        return self._journal.store_id

    def now(self) -> str:
        """Return the clock's time, never before the last event's."""
        return max(to_iso(self._clock()), self._journal.tail.chain.timestamp)

    def insert_memory(self, memory: AgentMemory | Mapping[str, Any]) -> AgentMemory:
        """Add a memory. A given id is kept; without an embedding the content is embedded.

        Raises
        ------
        InvalidInputError
            A field is refused; nothing is stored.
        DuplicateIdError
            The id is known.
        """
        return self.insert_memories([memory])[0]

    def insert_memories(
        self, memories: Sequence[AgentMemory | Mapping[str, Any]], *, annotate: bool = True
    ) -> list[AgentMemory]:
        """Add memories in one commit, all or none: the bulk path. They share one write scope.

        Parameters
        ----------
        annotate : bool
            Find entities, predecessors and fingerprints; False keeps the memories exactly as given (an import).
        """
        self._check_open()
        if isinstance(memories, str | Mapping) or not isinstance(memories, Iterable):
            raise InvalidInputError("must be a list of memories", field="memories", value=memories)
        memories = list(memories)
        with self.batch() if len(memories) >= BULK_FROM else nullcontext():
            return self._writer.insert(memories, annotate=annotate)

    def insert_parts(self, memories: Sequence[AgentMemory]) -> list[AgentMemory]:
        """Add the parts of one text in one commit, each with the part before as its predecessor."""
        self._check_open()
        return self._writer.insert(checked_list(AgentMemory, memories, "memories"), parts=True)

    def import_memories(self, memories: Sequence[AgentMemory], links: Sequence[Link]) -> None:
        """Add memories exactly as given, and their links, in one commit for each write scope.

        Raises
        ------
        NotFoundError
            A link's end is neither given nor in the store; nothing is stored.
        """
        self._check_open()
        memories, links = checked_list(AgentMemory, memories, "memories"), checked_list(Link, links, "links")
        with self.batch():
            self._writer.restore(memories, links)

    def update_memory(self, id: str, **updates: Any) -> AgentMemory:
        """Change fields of a memory; new content is embedded anew. Returns the memory after the change.

        Raises
        ------
        NotFoundError
            There is no such memory.
        InvalidInputError
            A field is refused or cannot be updated.
        """
        self._check_open()
        self._writer.update(id, updates)
        return self._known(id)

    def commit(
        self, write_scope: WriteScope, events: Sequence[Write], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> list[Event]:
        """Commit events in one write scope: payloads, pairs of a payload and the vector it is to name, memories to be added.

        Scope ``none`` writes nothing.

        Raises
        ------
        ScopeError
            The events do not share the scope; nothing is written.
        InvalidInputError
            An event is one that the store alone can make.
        """
        self._check_open()
        check_commit(write_scope, events, task_id=task_id, actor=actor)
        return self._writer.commit(write_scope, events, task_id=task_id, actor=actor)

    def record_access(self, id: str) -> AgentMemory:
        """Count a use of a memory and reinforce it. Visible at once; durable within a second."""
        self._check_open()
        with self._reader.frozen():
            known = self._known(id)
            self._note([Use(known.id or "", self.now())])
            return self._known(id)

    def record_retrieval(self, record: RetrievalRecorded, memories: Sequence[AgentMemory]) -> None:
        """Note a retrieval: every use is counted, and a memory is reinforced at most once a day."""
        self._check_open()
        record, memories = RetrievalRecorded.parse(record), checked_list(AgentMemory, memories, "memories")
        with self._reader.frozen():
            used = [Use(memory.id or "", self.now(), by_retrieval=True) for memory in memories]
            self._note(used, self._writer.without_secrets(record))

    def record_outcome(
        self, query_id: str, outcome: str, *, used: Sequence[str] = (), overridden: Sequence[str] = ()
    ) -> None:
        """Say what became of a retrieval: its outcome, the memories that were used, those that were overridden.

        A memory's use counts and reinforces it as `record_access` does, whatever the outcome. Said again, nothing is recorded;
        said otherwise, the last word holds, only what is newly used counts, and what was counted stays so.

        Raises
        ------
        NotFoundError, InvalidInputError
            There was no such retrieval, a memory was not among its results or is said to be both, the outcome is unknown.
        """
        used, overridden = checked(list[str], used, "used"), checked(list[str], overridden, "overridden")
        self.flush()
        with self.exclusive():
            payload = OutcomeRecorded(
                query_id=query_id, outcome=outcome, used=used, overridden=overridden, recorded_at=self.now()
            )
            check_outcome(payload, self._reader)
            if not is_recorded(payload, self._reader):
                new = newly_used(payload, self._reader)
                self.commit("system", events_of(payload, self._reader))
                self._note([Use(memory_id, payload.recorded_at) for memory_id in new])

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the writer lock for a block: what is read in it is still so when it commits. Nests."""
        self._check_open()
        with self._writer.exclusive():
            yield

    def flush(self) -> None:
        """Commit the pending access records now."""
        self._check_open()
        self._writer.flush()

    def get_memory(self, id: str) -> AgentMemory | None:
        """Return a memory unless it is deleted."""
        self._check_open()
        return self._reader.get(id)

    def read_memories(self, memory_ids: Sequence[str]) -> list[AgentMemory]:
        """Return these memories in this order, without those that are gone."""
        self._check_open()
        return self._reader.read(checked(list[str], memory_ids, "memory_ids"))

    def query_by_type(
        self, type: MemoryType, *, limit: int = 50, include_suppressed: bool = False
    ) -> list[AgentMemory]:
        """Return listed memories of a type, most relevant first."""
        return self.list_memories(type=type, limit=limit, include_suppressed=include_suppressed)

    def query_by_project(
        self, project_id: str, *, type: MemoryType | None = None, limit: int = 50
    ) -> list[AgentMemory]:
        """Return listed memories of a project, most relevant first."""
        return self.list_memories(type=type, project_id=project_id, limit=limit)

    def list_memories(
        self,
        *,
        type: MemoryType | None = None,
        project_id: str | None = None,
        include_suppressed: bool = False,
        state: str | None = None,
        limit: int | None = None,
        by: str = "relevance",
    ) -> list[AgentMemory]:
        """Return memories that are neither archived nor invalidated nor, unless asked, suppressed or made of what is.

        Parameters
        ----------
        include_suppressed : bool
            Also what was forgotten, and what sleep made of what was forgotten, or made less public, since.
        state : {"suppressed", "archived", "invalidated", "superseded"}, optional
            Those instead that are in this state, whatever else they are.
        by : {"relevance", "created", "accessed"}
            Highest or newest first; ties in id order.
        """
        self._check_open()
        with self._reader.frozen():
            mask = self._reader.listed(
                type=type, project_id=project_id, include_suppressed=include_suppressed, state=state
            )
            if state is None and not include_suppressed and (telltale := withheld(self._reader)) is not None:
                mask &= ~telltale
            return self._reader.read(self._reader.ranked_ids(mask, by=by, limit=limit))

    def get_all_memories(self, *, include_suppressed: bool = False) -> list[AgentMemory]:
        """Return all listed memories, most relevant first."""
        return self.list_memories(include_suppressed=include_suppressed)

    def every_memory(self) -> Iterator[AgentMemory]:
        """Iterate over all memories that are not deleted, whatever their state, in the order they were recorded."""
        self._check_open()
        return self._reader.every()

    def links(self, id: str) -> list[Link]:
        """Return the links at a memory, both ways, NEXT included."""
        self._check_open()
        return self._reader.links(id)

    def every_link(self) -> list[Link]:
        """Return all links but NEXT, in a fixed order."""
        self._check_open()
        return self._reader.every_link()

    def get_stats(self) -> MemoryStats:
        """Count memories that are neither archived nor deleted."""
        self._check_open()
        return self._reader.stats()

    def digest(self) -> str:
        """Digest of the state: 64 hexadecimal digits, equal for equal memories and links however they came about."""
        self.reader.settle()
        self._projector.catch_up()
        return f"{self._projector.projection.digest:064x}"

    @property
    def reader(self) -> Reader:
        """Index, masks, cosines and relevance of all memories at once."""
        self._check_open()
        return self._reader

    def hmac_of(self, text: str) -> str:
        """HMAC of a text under the store's key: recognisable, not readable."""
        return self._journal.hmac_of(checked(str, text, "text"))

    def verify(self, progress: Progress | None = None, *, deep: bool = False) -> int:
        """Verify journal, vectors and graph, with `deep` every row of the graph and the index too; return the number of events.

        Raises
        ------
        JournalError, VectorDamageError, GraphError
            Names what differs first, where, and how many things do.
        """
        found = self.verification(progress, deep=deep)
        refuse(found, self._projector)
        return found.events

    def verification(self, progress: Progress | None = None, *, deep: bool = False) -> Verification:
        """Verify as `verify` does, and return what was found instead of raising it.

        Raises
        ------
        JournalError
            The journal itself does not verify.
        """
        checked(Callback, progress, "progress")
        self.reader.settle()
        return verify(self._projector, deep=deep, progress=progress)

    def close(self) -> None:
        """Commit what is pending and release everything. Idempotent."""
        if self._is_closed:
            return
        try:
            if not self._journal.is_read_only:
                self._reader.settle()
                self._batches.close()
        finally:
            self._is_closed = True
            self._writer.pending.stop()
            self._projector.close()
            self._place = Place(self._place.folder)  # a copy is removed unless a view of the past still uses it

    def _known(self, id: str) -> AgentMemory:
        memory = self._reader.get(id)
        if memory is None:
            raise NotFoundError("memory", id)
        return memory

    def _note(self, uses: Sequence[Use], record: RetrievalRecorded | None = None) -> None:
        if not self._journal.is_read_only:
            self._writer.pending.add(uses, record)
        elif refused := self._journal.refused_writes():
            self._writer.pending.skip(refused)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the store is closed; open it again")
