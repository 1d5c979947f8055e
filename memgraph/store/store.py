"""`AgentMemoryStore`: the store of memories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, partial, wraps
from threading import RLock
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.diagnostics.reports import RecallWatch
from memgraph.embedding import default_embedder
from memgraph.errors import ClosedError, MemGraphError, StorageError
from memgraph.extraction.annotate import RuleAnnotator
from memgraph.journal.envelope import Event
from memgraph.journal.journal import ReplacedJournalError
from memgraph.logs import logger_of
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import checked
from memgraph.model.events.payload import Actor, WriteScope
from memgraph.ports import Annotator, Clock, Embedder, KeyProvider, Progress
from memgraph.privacy import Access
from memgraph.store.access.auditing import Auditing
from memgraph.store.analysis import Projections
from memgraph.store.backups import Backups
from memgraph.store.commit.records import VectorModel, Write, check_commit, check_model
from memgraph.store.commit.writer import Writer
from memgraph.store.curation import Curation
from memgraph.store.deletions import Disclosures
from memgraph.store.listing import Listings
from memgraph.store.maintenance.vectors import Vectors
from memgraph.store.maintenance.verifying import Verifying
from memgraph.store.opening import Place, check_parts, open_projector, open_store_journal, place_of, times_of
from memgraph.store.outcomes import Usage
from memgraph.store.past import NoWriter, PastView, Views, When
from memgraph.store.projector import Projector
from memgraph.store.purge.purging import Purging
from memgraph.store.query import Reader
from memgraph.store.states import Resetting, Transitions

logger = logger_of(__name__)
_UNRECORDED = "the uses of memories in the last second are not recorded: %s"
_MOST_REPLACED = 3
"""How often a use is begun, if the journal is replaced meanwhile."""
P = ParamSpec("P")
T = TypeVar("T")


def _delegated(part: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that delegates to a part of the open store, with the same signature and docstring."""

    @wraps(method)
    def carried_out(store: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        is_repeatable = not any(isinstance(one, Iterator) for one in (*args, *kwargs.values()))  # they can be read once
        carry_out = store._carry_out  # noqa: SLF001 - a method of the store
        return cast("T", carry_out(lambda: method(getattr(store, part), *args, **kwargs), is_repeatable=is_repeatable))

    return carried_out


class AgentMemoryStore:
    """A store of memories in one directory: a context manager, thread-safe.

    Every write is durable and visible when its call returns; access records follow within a second. If another process replaces the journal
    (reseals it, or restores a backup), the next use opens the new one.

    Methods raise `NotFoundError` for a memory that does not exist, `InvalidInputError` for a value or a change that is refused, `DuplicateIdError` for
    an id that exists, `ReadOnlyError` where the store cannot be written, and `BusyError` if another process writes for too long; nothing is changed
    then. What does not verify raises a `JournalError`, `GraphError` or `VectorDamageError` that names the first deviation.

    Parameters
    ----------
    config : AgentMemoryConfig, optional
        Default: from environment and ``config.toml``.
    embedder : Embedder, optional
        Default: according to ``embedding_model``. A store keeps to the model of its first vector.
    clock : callable, optional
        Returns the current time as an aware datetime.
    keys : KeyProvider, optional
        Default: ``MEMGRAPH_KEY`` if set, else a file in the user's configuration directory.
    annotator : Annotator, optional
        Default: the rules.

    Raises
    ------
    NotAStoreError, StorageError
        The directory cannot be a store.
    JournalError
        The journal cannot be trusted, or its key is missing.
    ModelMismatchError
        The store's vectors were made by another model.
    """

    access_of = _delegated("_auditing", Auditing.access_of)
    audit = _delegated("_auditing", Auditing.audit)

    insert_memory = _delegated("_writer", Writer.insert_memory)
    insert_memories = _delegated("_writer", Writer.insert_memories)
    insert_parts = _delegated("_writer", Writer.insert_parts)
    rewrite = _delegated("_writer", Writer.rewrite)
    import_memories = _delegated("_writer", Writer.import_memories)

    without_secrets = _delegated("_writer", Writer.without_secrets)

    get_memory = _delegated("_listings", Listings.get_memory)
    read_memories = _delegated("_listings", Listings.read_memories)
    every_memory = _delegated("_reader", Reader.every)
    links = _delegated("_reader", Reader.links)
    every_link = _delegated("_reader", Reader.every_link)
    get_stats = _delegated("_listings", Listings.get_stats)
    list_memories = _delegated("_listings", Listings.list_memories)
    count_listed = _delegated("_listings", Listings.count_listed)
    query_by_type = _delegated("_listings", Listings.query_by_type)
    query_by_project = _delegated("_listings", Listings.query_by_project)
    get_all_memories = _delegated("_listings", Listings.get_all_memories)

    record_access = _delegated("_usage", Usage.record_access)
    record_retrieval = _delegated("_usage", Usage.record_retrieval)
    record_outcome = _delegated("_usage", Usage.record_outcome)

    digest = _delegated("_verifying", Verifying.digest)
    verify = _delegated("_verifying", Verifying.verify)
    inspection = _delegated("_verifying", Verifying.inspection)
    verification = _delegated("_verifying", Verifying.verification)

    batch = _delegated("_projections", Projections.batch)
    check_graph = _delegated("_projections", Projections.check_graph)
    rebuild = _delegated("_projections", Projections.rebuild)

    reset = _delegated("_resetting", Resetting.reset)

    backup = _delegated("_backups", Backups.backup)
    backups = _delegated("_backups", Backups.backups)
    last_backup_at = _delegated("_backups", Backups.last_backup_at)

    cypher = _delegated("_projections", Projections.cypher)
    graph_lag = _delegated("_projections", Projections.graph_lag)
    sizes = _delegated("_projections", Projections.sizes)
    query = _delegated("_projections", Projections.query)
    to_networkx = _delegated("_projections", Projections.to_networkx)

    update_memory = _delegated("_transitions", Transitions.update_memory)
    suppress = _delegated("_transitions", Transitions.suppress)
    unsuppress = _delegated("_transitions", Transitions.unsuppress)
    archive = _delegated("_transitions", Transitions.archive)
    unarchive = _delegated("_transitions", Transitions.unarchive)
    invalidate = _delegated("_transitions", Transitions.invalidate)
    revalidate = _delegated("_transitions", Transitions.revalidate)
    supersede = _delegated("_transitions", Transitions.supersede)
    supersession = _delegated("_transitions", Transitions.supersession)
    unsupersede = _delegated("_transitions", Transitions.unsupersede)
    link = _delegated("_transitions", Transitions.link)
    unlink = _delegated("_transitions", Transitions.unlink)
    delete_memory = _delegated("_transitions", Transitions.delete_memory)
    undelete = _delegated("_transitions", Transitions.undelete)
    find_id = _delegated("_transitions", Transitions.find_id)

    purge = _delegated("_purging", Purging.purge)
    preview_purge = _delegated("_purging", Purging.preview_purge)
    complete_begun = _delegated("_purging", Purging.complete_begun)
    complete_purges = _delegated("_purging", Purging.complete_purges)
    _expire = _delegated("_purging", Purging.expire)
    check_receipt = _delegated("_purging", Purging.check_receipt)

    check_embedder = _delegated("_vectors", Vectors.check_embedder)
    awaiting_vectors = _delegated("_vectors", Vectors.awaiting_vectors)
    embed_awaiting = _delegated("_vectors", Vectors.embed_awaiting)
    damaged_vectors = _delegated("_vectors", Vectors.damaged_vectors)
    repair_vectors = _delegated("_vectors", Vectors.repair_vectors)
    reembed = _delegated("_vectors", Vectors.reembed)

    _open_parts: Callable[[Embedder], None] | None = None
    _opening: AbstractContextManager[object] = nullcontext()
    """Opens the journal and all that works on it; None for a view."""

    def __init__(
        self,
        config: AgentMemoryConfig | None = None,
        *,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
        keys: KeyProvider | None = None,
        annotator: Annotator | None = None,
    ) -> None:
        check_parts(embedder=embedder, clock=clock, keys=keys, annotator=annotator)
        config = load_config() if config is None else AgentMemoryConfig.parse(config)
        time = times_of(clock)

        def open_parts(embedder: Embedder) -> None:
            journal = open_store_journal(config, keys, time)
            place = place_of(config.home, has_key=journal.has_key)
            self._assemble(
                config,
                place,
                open_projector(config.engine, journal, place.folder),
                now=lambda: max(time(), journal.tail.timestamp),
                embedder=embedder,
                annotator=annotator or RuleAnnotator(),
                refused=place.refused if place.copy else "",
            )

        self._open_parts, self._opening = open_parts, RLock()
        open_parts(embedder or default_embedder(config))

    def _assemble(
        self,
        config: AgentMemoryConfig,
        place: Place,
        projector: Projector,
        *,
        now: Callable[[], str],
        embedder: Embedder,
        annotator: Annotator,
        refused: str,
        view: PastView | None = None,
    ) -> None:
        self.config, self._place, self._projector, self._now, self._is_closed = config, place, projector, now, False
        self._release = view.release if view else partial(_close, projector)
        journal = projector.journal
        make = Writer if view is None else NoWriter
        self._writer = writer = make(
            projector, embedder, annotator, now, config.forgetting_curve, config.redact_secrets
        )
        self._reader = reader = Reader(projector, writer, now, config.forgetting_curve, view is None)
        self._listings = Listings(reader)
        parts = projector, writer, reader, now
        self._usage = Usage(*parts, RecallWatch(config, journal.store_id, now, is_silent=view is not None))
        self._views = Views(*parts, config, place.folder / "past", view and view.past)
        self._purging = Purging(*parts, config.home, self._views.close)
        self._verifying = Verifying(*parts, self._purging.complete_begun)
        self._projections = Projections(*parts, view.open.lease.check if view else lambda: None, refused)
        self._transitions = Transitions(*parts)
        self._curation = Curation(*parts)
        self._vectors = Vectors(*parts)
        self._backups = Backups(*parts, config.home)
        self._resetting = Resetting(*parts)
        self._auditing = Auditing(*parts, config.agents)
        self._journal = journal  # last: until then other threads find that the one before was replaced, and wait
        check_model(journal.named, embedder)
        self._purging.complete_begun()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def store_id(self) -> str:
        """Identifier used for the store's key and head file."""
        return self._journal.store_id

    @property
    def embedder(self) -> Embedder:
        """The embedder of memories and queries; `reembed` changes it."""
        return self._writer.embedder

    @property
    def vector_model(self) -> VectorModel:
        """Name and dimension of the store's vectors, or the embedder's until there are any; dimension 0: no vectors are stored."""
        return self._writer.model

    @property
    def notices(self) -> list[str]:
        """Notices for the user."""
        notices = [*self._journal.notices, *self._writer.notices]
        return notices if self._is_closed else [*notices, *self._vectors.notices]

    def now(self) -> str:
        """Return the clock's time, but never a time before the last event's; for a view of the past, its moment."""
        return self._now()

    def commit(
        self,
        write_scope: WriteScope,
        events: Sequence[Write],
        *,
        task_id: str | None = None,
        actor: Actor = "agent",
        embeds: bool = True,
    ) -> list[Event]:
        """Commit events in one write scope: payloads, pairs of a payload and its vector, or memories to add.

        Scope ``none`` writes nothing. Unless the commit embeds the memories without a vector, `embed_awaiting` does.

        Raises
        ------
        ScopeError
            The events do not share the scope; nothing is written.
        InvalidInputError
            An event is reserved for the store itself.
        """
        check_commit(write_scope, events, task_id=task_id, actor=actor)
        return self._carry_out(
            lambda: self._writer.commit(write_scope, events, task_id=task_id, actor=actor, embeds=embeds),
            is_repeatable=True,
        )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the writer lock for a block: what is read in it is still valid when it commits. Nests."""
        with ExitStack() as stack:
            self._carry_out(lambda: stack.enter_context(self._writer.exclusive()), is_repeatable=True)
            yield

    def flush(self) -> None:
        """Commit the pending access records now."""
        self._check_open()
        self._writer.flush()

    @property
    def reader(self) -> Reader:
        """Bulk access to all memories: index, masks, cosines and relevance."""
        self._check_open()
        return self._reader

    @property
    def curation(self) -> Curation:
        """Corrections by a person; `MemGraph.curation` documents them."""
        self._check_open()
        return self._curation

    @property
    def auditing(self) -> Auditing:
        """Decides what agents may ask for, and records what was refused or justified."""
        self._check_open()
        return self._auditing

    def hmac_of(self, text: str) -> str:
        """Return the HMAC of a text under the store's key: it identifies the text without revealing it."""
        return self._journal.hmac_of(checked(str, text, "text"))

    def at(self, when: When, *, recorded: bool = False, progress: Progress | None = None) -> PastStore:
        """Return the store as of a moment: a read-only store, to be closed after use.

        It is made from the journal, at about 3,000 events a second, and cached until something is written.

        Parameters
        ----------
        when : str, date or datetime
            ISO 8601; UTC unless it has an offset; a day alone means its end. Later than now means now, or for a view
            its moment.
        recorded : bool
            Include what had been recorded by then instead of what had happened: history that was ingested later is left
            out. A view has one of the two kinds, and so do views of it.
        progress : callable, optional
            Called with (done, total) events.

        Raises
        ------
        InvalidInputError
            `when` is not a time, or lies before the first memory, whose time the message names. Or the view has the
            other kind.
        """
        self._check_open()
        return self._reading(self._views.open(when, recorded=recorded, progress=progress))

    def as_agent(
        self, agent: str = UNNAMED, *, justification: str | None = None, progress: Progress | None = None
    ) -> PastStore:
        """Return the store as an agent may read it now: a read-only store, to be closed after use.

        It holds only what the agent may have (see `memgraph.privacy`), and is made and cached as a view of the past.

        Parameters
        ----------
        justification : str, optional
            Why the agent needs sensitive memories: more than 20 characters; else a `PermissionDeniedError` is raised.
        """
        self._check_open()
        access = self._auditing.access_of(agent, justification)
        return self._reading(self._views.open_for(access, progress=progress)).act_for(access, self._auditing)

    def close(self) -> None:
        """Commit pending uses and release everything. Idempotent."""
        with self._opening:
            if self._is_closed:
                return
            try:
                self._release_parts()
            except ReplacedJournalError as error:
                logger.warning(_UNRECORDED, error.loggable)
            finally:
                self._is_closed = True

    def _release_parts(self) -> None:
        try:
            if not self._journal.is_read_only:
                self._reader.settle()
        finally:
            self._writer.pending.stop()
            self._usage.close()
            self._views.close()
            try:
                self._projector.graph.write_due()
            finally:
                self._release()
            self._place = self._place._replace(copy=None)  # a copy is removed unless a view of the past still uses it

    def _reading(self, view: PastView) -> PastStore:
        try:
            return PastStore(self.config, self._place, view, embedder=self.embedder)
        except BaseException:
            view.release()
            raise

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the store is closed; open it again")
        if self._open_parts is not None and self._is_replaced():
            self._reopen(self._open_parts)

    def _is_replaced(self) -> bool:
        """Return whether the journal was resealed, or restored from a backup, since the store was opened: every use is refused then."""
        is_inside = self._journal.holds_lock or self._projector.is_reading  # what began on this journal ends on it
        try:
            return not is_inside and self._journal.is_replaced()
        except ReplacedJournalError:  # another thread has closed it, and opens the new one
            return True

    def _carry_out(self, call: Callable[[], T], *, is_repeatable: bool) -> T:
        """Run a use of the open store. If the journal was replaced while it waited for the lock, and it has committed nothing, run it again on the new one."""
        for left in reversed(range(_MOST_REPLACED)):
            self._check_open()
            journal, appended = self._journal, self._journal.appended
            try:
                return call()
            except ReplacedJournalError:
                if not is_repeatable or not left or journal.appended != appended:
                    raise
                self._check_open()
                if self._journal is journal:
                    raise
        raise AssertionError("unreachable: the last use returns or raises")  # pragma: no cover

    def _reopen(self, open_parts: Callable[[Embedder], None]) -> None:
        """Open the journal that is in the place of the one that was opened, and all that works on it."""
        with self._opening:
            if self._is_closed:
                raise ClosedError("the store is closed; open it again")
            if not self._is_replaced():
                return  # another thread has opened it
            if not self.config.home.exists():
                raise StorageError("the store was removed", path=self.config.home)
            logger.warning("the journal was replaced; opening the store again")
            self._journal.database.refusal = self._journal.replaced
            try:
                self._release_parts()
            except MemGraphError as error:
                logger.warning(_UNRECORDED, error.loggable)
            open_parts(self.embedder)


def _close(projector: Projector) -> None:
    try:
        projector.close()
    finally:
        projector.journal.close()


class PastStore(AgentMemoryStore):
    """A store as of a moment, made by `AgentMemoryStore.at`, or as an agent may read it, made by `as_agent`.

    It can be read; writing raises `ReadOnlyError`.

    It does not change with later writes, nor when the original store is closed. Memories hidden or deleted between its
    moment and its creation are readable, but pictures and exports leave them out (see `memgraph.store.access.visibility`).

    Attributes
    ----------
    as_of : str
        The moment: ISO 8601, UTC. Its clock stands there.
    is_recorded : bool
        Whether it includes what had been recorded by then, rather than what had happened.
    agent : str or None
        The agent whose view it is.
    """

    def __init__(self, config: AgentMemoryConfig, place: Place, view: PastView, *, embedder: Embedder) -> None:
        self.as_of, self.is_recorded = view.past.as_of, view.past.recorded
        self.agent = view.past.access.agent if view.past.access else None
        self._assemble(
            config,
            place,
            view.open.projector,
            now=lambda: view.past.as_of,
            embedder=embedder,
            annotator=RuleAnnotator(),
            refused=view.open.journal.why,
            view=view,
        )
        self._reader.today = cache(lambda: Disclosures(view.open.journal.every_event()))

    def act_for(self, access: Access, auditing: Auditing) -> Self:
        """Check what is asked of this agent's view, and record the sensitive memories that it gives."""
        self._projections.on_query, self._listings.check = auditing.watch(access, self._reader)
        return self
