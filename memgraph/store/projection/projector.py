"""Projector: keeps graph and index up to date with the journal by applying commits, catching up and rebuilding; keeps the index's snapshot on disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from memgraph.disk.seal import Seal
from memgraph.errors import DiskFullError, GraphError, JournalError, OutdatedGraphError, StorageError
from memgraph.fold import Projection, project
from memgraph.index import snapshot
from memgraph.index.index import Index, IndexOffset, Text, texts_of
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.journal import Journal
from memgraph.journal.replay import Committed, Offset
from memgraph.logs import logger_of, timed
from memgraph.model.events.store import StoreReset
from memgraph.ports import GraphEngine, Progress
from memgraph.store.projection.bulk import in_bulk
from memgraph.store.projection.index_building import (
    aside,
    index_from,
    index_of,
    offset_of,
    refetch,
    stale_after,
)
from memgraph.store.projection.read_gate import ReadGate
from memgraph.store.projection.replayed_rows import replayed, resumable
from memgraph.store.projection.row_cache import RowCache
from memgraph.store.projection.upkeep import UpkeepFile

_SNAPSHOT_SHARE = 50
"""The index is saved once more than one slot in this many has changed."""
logger = logger_of(__name__)

_BATCH_EVENTS = 1_000
_REBUILD_FROM_EVENTS = 5_000
"""A graph further behind than this is rebuilt by COPY rather than updated by transactions."""
_REFETCH_LIMIT = 5_000
_ASIDE_FROM_ROWS = 1_000
"""From this many changes on, their texts are analysed while the engine writes them, so that readers wait only for the rest."""
_MOST_ROWS_AT_ONCE = 600_000
"""About 45,000 memories: more do not fit into the engine's buffer pool, and require a rebuild."""
T = TypeVar("T")


class Projector:
    """Coordinates journal, graph and index. Thread-safe.

    Parameters
    ----------
    journal : Journal
    engine : GraphEngine
    index_path : Path
        Location of the index snapshot.
    """

    def __init__(self, journal: Journal, engine: GraphEngine, index_path: Path) -> None:
        self.journal = journal
        self.engine = engine
        self.gate = ReadGate()
        self.rows = RowCache(self.ask, lambda: len(self._indexes.index or ()))
        self.named = journal.named
        self.after_commit: Callable[[], None] = lambda: None
        self._generation = -1
        self._depth = 0
        self._has_failed = self._has_removed = False
        self.first_lag: int | None = None
        self.projection = Projection(journal.store_id)
        self._indexes = IndexKeeper(index_path, journal.store_id, journal.seal("index"))
        self.upkeep = UpkeepFile(index_path.parents[1] / "graph" / "upkeep.json", journal.seal("upkeep"))

    @contextmanager
    def holding(self, progress: Progress | None = None) -> Iterator[None]:
        """Hold the graph, caught up, for a block: only the block itself can change it. Nests.

        A graph that cannot be brought to the journal's end is rebuilt; if that fails too, the error is raised.
        """
        if self.gate.is_reading:
            raise RuntimeError("the graph was requested inside a block of reads without it; use frozen(links=True)")
        with self._held(progress):
            yield

    @contextmanager
    def reading(self, *, links: bool = False) -> Iterator[None]:
        """Freeze the index and the memory rows for a block. Nests.

        While another thread writes, they may show the state after its last completed commit. With `links` the block
        waits for the writer, and holds the graph as `holding` does.
        """
        if self.gate.is_reading:
            if links:
                raise RuntimeError("links were requested inside a block of reads without them; use frozen(links=True)")
            yield
            return
        with self.gate.taken(beside=not links) as is_beside:
            if is_beside:
                yield
            elif links or self._depth:
                with self._held():
                    yield
            else:
                with nullcontext() if self._is_at_hand() else self._held(), self.gate.reading():
                    yield

    def _is_at_hand(self) -> bool:
        """Return whether index and rows are in memory and current: then what other processes do with the graph is irrelevant."""
        return self._has_all() and self.projection.seq == self.journal.tail.chain.seq and not self.journal.has_changed()

    @contextmanager
    def _held(self, progress: Progress | None = None) -> Iterator[None]:
        with self.gate.guard, ExitStack() as stack:
            if self._depth == 0:
                try:
                    stack.enter_context(self.engine.open())
                    self._catch_up(progress)
                except DiskFullError:
                    self.journal.on_full()
                    raise  # a rebuild would need more space, not less
                except GraphError as error:
                    stack.close()
                    self._note_damage(error)
                    self.rebuild(progress)
                    stack.enter_context(self.engine.open())
                    self._catch_up(progress)
            self._depth += 1
            try:
                yield
            except GraphError as error:
                self._has_failed |= type(error) is GraphError  # not for a query's error or a full disk
                raise
            finally:
                self._depth -= 1

    def gives_way(self) -> Callable[[], bool] | None:
        """Return a function that tells whether another thread waits; None if this block cannot be interrupted. Inside `holding` only."""
        return None if self._depth > 1 else lambda: self.gate.guard.is_awaited

    @property
    def has_graph(self) -> bool:
        """Whether this thread's block holds the graph."""
        return self._depth > 0

    @contextmanager
    def writing(self, *, needs_graph: bool = True) -> Iterator[None]:
        """Hold the writer lock and the graph, caught up. Nests.

        The journal's lock is taken before the graph's, so that nobody waiting for the former blocks the latter. A write
        that needs no look-up does not open the graph: the next holder updates it.
        """
        if self.gate.is_reading:
            raise RuntimeError("a write was begun inside a block of reads")
        with self.gate.guard:
            if self.journal.holds_lock:
                yield
                return
            if self._depth:
                raise RuntimeError("a write was begun inside a block of reads")
            with self.journal.locked(before_waiting=self.engine.release):
                if not needs_graph and not self.engine.is_held:
                    yield
                    return
                with self.holding(), self._admitting():
                    yield
                self._mend()

    def admit_readers(self) -> None:
        """Allow other threads to read during a long write; inside `writing` only, and effective only if it has the graph."""
        if self.has_graph:
            _ = self.index
            self.rows.load_memories()
            self._admit()

    @contextmanager
    def _admitting(self) -> Iterator[None]:
        self._admit()
        try:
            yield
        finally:
            self.gate.close()

    def _admit(self) -> None:
        if self._has_all():
            self.gate.open()

    def _has_all(self) -> bool:
        return self.rows.has_memories and self.loaded_index is not None

    def append(self, drafts: Sequence[CommitDraft], now: str) -> list[Event]:
        """Append commits and project them; inside `writing` only. They are durable and visible when it returns.

        If the graph fails after the journal has accepted the commit, the commit stands, and the graph is rebuilt.
        """
        before = self.journal.tail.chain.seq
        with timed(logger, logging.DEBUG, "appended to the journal") as counts:
            commits = self.journal.append(drafts, now)
            counts["events"] = sum(len(commit.events) for commit in commits)
        try:
            if self.has_graph and self.projection.seq == before:
                self._apply(commits)
            elif self.has_graph:  # an earlier commit of this block did not reach the graph
                self._advance(None)
            if self.has_graph:
                self.after_commit()
        except GraphError as error:
            self.gate.close()
            logger.warning("the graph failed after a commit (%s); it will be caught up", error.loggable)
            if isinstance(error, DiskFullError):
                self.journal.on_full()
            self._has_failed |= not isinstance(error, DiskFullError)
            self._generation = -1  # read its actual state instead of the expected one
        return [event for commit in commits for event in commit.events]

    def catch_up(self, progress: Progress | None = None) -> None:
        """Bring the graph to the journal's end, with a rebuild if necessary."""
        with self.holding(progress):
            pass

    @property
    def index(self) -> Index:
        """The index at the journal's end; loaded or built on first use."""
        with self.reading():
            index = self._indexes.current(self.projection, self._bring_up, self.ask)
            index.use_vectors_of(self.named.model)
            return index

    @property
    def loaded_index(self) -> Index | None:
        """The index if it is in memory and current, without loading it."""
        return self._indexes.loaded(self.projection)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the whole journal, verified, into a new graph and a new index."""
        with ExitStack() as stack:
            stack.enter_context(self.gate.guard)
            if self._is_at_hand():
                stack.enter_context(self._admitting())
            stack.enter_context(in_bulk())
            counts = stack.enter_context(timed(logger, logging.INFO, "rebuilt graph and index"))
            counts["events"] = self._remake(self.journal.tail.chain.seq, progress).seq
            self._generation, self._has_failed = -1, False

    def ask(self, question: Callable[[GraphEngine], T]) -> T:
        """Query the graph; if it fails, rebuild it from the journal and query it once more.

        It is rebuilt up to the same event, so nothing changes for its holder.
        """
        try:
            return question(self.engine)
        except GraphError as error:
            if type(error) is not GraphError or not self._depth:
                raise  # a query's error or a full disk is no damage
            self.restore(error)
            return question(self.engine)

    def restore(self, why: GraphError) -> None:
        """Rebuild graph and index at their current state, inside `holding`, because the graph deviates from what was written."""
        self._note_damage(why)
        self.projection = self._remake(self.projection.seq)

    def _remake(self, until_seq: int, progress: Progress | None = None) -> Projection:
        """Replay the verified journal up to an event into a new graph and index, and drop what was read from the old ones."""
        changes, projection = replayed(self.journal, until_seq, progress)
        index = aside(
            lambda: index_of(changes, projection),
            lambda: self.engine.rebuild(changes, projection.as_row(), progress=progress),
        )
        self.upkeep.note_fresh(size=self.engine.size_bytes(), rows=self.engine.count_rows())
        with self.gate.view:
            self.gate.close()
            self.rows.clear()
            self._indexes.index = index
        self._indexes.save()
        return projection

    def _note_damage(self, why: GraphError) -> None:
        logger.warning("rebuilding the graph from the journal: %s", why.loggable)
        if not isinstance(why, OutdatedGraphError):
            self.upkeep.note_damage(why.loggable)

    def close(self) -> None:
        """Save the index if much has changed, record how far the journal is verified, and release the graph."""
        with self.gate.guard:
            try:
                if not self.journal.has_changed():  # else a later purge may have removed what this process knows
                    # the snapshot must not keep the names of what was removed
                    _ = self._has_removed and self.engine.is_held and self.index
                    self._indexes.save_if_changed(self.projection, at_once=self._has_removed)
                    self.journal.checkpoint()
            finally:
                self.engine.close()

    def _catch_up(self, progress: Progress | None) -> None:
        """Bring the open graph to the journal's end.

        Raises
        ------
        GraphError
            It must be rebuilt.
        """
        if self._has_failed:
            raise GraphError("its last read or write failed, so its rows may be corrupt")
        if self.journal.has_changed():
            self.journal.refresh()
        if self.engine.generation != self._generation:
            # another process may have changed or deleted the graph: only its own state record counts
            state = resumable(self.engine, self.journal)
            if state != self.projection:  # otherwise the cached rows are the graph's
                self.rows.clear()
            self.projection = state
            self._generation = self.engine.generation
        if self.first_lag is None:
            self.first_lag = self.journal.tail.chain.seq - self.projection.seq
        if self.projection.seq != self.journal.tail.chain.seq:
            with timed(logger, logging.INFO, "brought the graph up") as counts:
                counts["events"] = self.journal.tail.chain.seq - self.projection.seq
                self._advance(progress)
        self.named = self.journal.named

    def _mend(self) -> None:
        """Catch up after a commit that did not reach the graph. The commit stands, so a failure here is only logged."""
        if self.projection.seq != self.journal.tail.chain.seq:
            try:
                self.catch_up()
            except GraphError as error:
                logger.warning("the graph is behind and will be caught up later: %s", error.loggable)

    def _advance(self, progress: Progress | None) -> None:
        state = self.projection
        if self.journal.tail.chain.seq - state.seq > _REBUILD_FROM_EVENTS:
            raise OutdatedGraphError("it is far behind")
        if state.seq < self.journal.base.chain.seq:
            raise OutdatedGraphError("it is older than the journal's baseline")
        total = self.journal.tail.chain.seq
        batch: list[Committed] = []
        try:
            for commit in self.journal.replay(self._offset(state)):
                batch.append(commit)
                if sum(len(known.events) for known in batch) >= _BATCH_EVENTS:
                    self._apply(batch)
                    batch = []
                    if progress:
                        progress(self.projection.seq, total)
        except JournalError as error:
            # the graph's offset is not in this journal, or the journal is damaged: a full replay distinguishes them
            raise GraphError(f"the graph's offset does not match the journal: {error.loggable}") from error
        if batch:
            self._apply(batch)

    def _apply(self, commits: Sequence[Committed]) -> None:
        events = [event for commit in commits for event in commit.events]
        if not events:
            return
        if any(isinstance(event.payload, StoreReset) for event in events):
            # a new graph is quicker than removing most of the old one, and its file holds nothing of what is gone
            self.projection, self.named = self._remake(commits[-1].after.chain.seq), self.journal.named
            return
        index = self.loaded_index
        with timed(logger, logging.DEBUG, "wrote to graph and index") as counts:
            changes, after = project(events, commits[-1].after, self.projection, self.rows.ready_for(events))
            if len(changes) > _MOST_ROWS_AT_ONCE:
                raise GraphError(f"{len(changes):,} rows are too many for one transaction of the engine")
            counts |= {"events": len(events), "rows": len(changes)}
            self._has_removed |= any(change.table == "Memory" and change.new is None for change in changes)
            texts: dict[str, Text] = {}
            if index is None or len(changes) < _ASIDE_FROM_ROWS:
                self.engine.apply(changes, after.as_row())
            else:
                texts = aside(lambda: texts_of(changes), lambda: self.engine.apply(changes, after.as_row()))
            absorb = self.rows.absorbing(changes)
            with self.gate.view:
                if index is not None:
                    index.apply(changes, texts)
                    index.offset = offset_of(after)
                absorb()
                self.projection = after
                if self.named.model not in (None, self.journal.named.model):
                    self.gate.close()  # queries are still embedded by the previous model
                self.named = self.journal.named

    def _offset(self, state: Projection | IndexOffset) -> Offset:
        if state.seq == 0:
            return self.journal.start
        return self.journal.resume_point(state.seq, state.signature, state.segment, state.offset, state.timestamp)

    def _bring_up(self, index: Index) -> bool:
        """Update the index to the graph's state; return False if it must be rebuilt."""
        if index.offset.seq < self.journal.base.chain.seq:
            return False
        if index.offset.seq >= self.projection.seq:
            return index.offset.seq == self.projection.seq and index.offset.signature == self.projection.signature
        try:
            stale = stale_after(self.journal.replay(self._offset(index.offset)))
        except JournalError:
            return False
        if stale is None or len(stale.used) > _REFETCH_LIMIT:
            return False
        with self.engine.open():
            refetch(index, stale, self.rows.get, lambda key: self.ask(lambda engine: engine.links_of(key)))
        index.offset = offset_of(self.projection)
        return True


class IndexKeeper:
    """The index of one graph.

    Attributes
    ----------
    index : Index or None
        The index in memory, at any state.
    """

    def __init__(self, path: Path, store_id: str, seal: Seal) -> None:
        self._path = path
        self._store_id = store_id
        self._seal = seal
        self.index: Index | None = None

    def loaded(self, projection: Projection) -> Index | None:
        """Return the index if it is in memory and at this state."""
        index = self.index
        return index if index is not None and index.offset.seq == projection.seq else None

    def current(
        self,
        projection: Projection,
        bring_up: Callable[[Index], bool],
        ask: Callable[[Callable[[GraphEngine], Index]], Index],
    ) -> Index:
        """Return the index at this state: loaded and updated, or built from the graph.

        Parameters
        ----------
        bring_up : callable
            Updates an index to this state; returns False if it must be rebuilt.
        ask : callable
            Queries the graph.
        """
        if self.index is None:
            with timed(logger, logging.INFO, "read the index's snapshot") as counts:
                self.index = snapshot.load(self._path, self._store_id, self._seal)
                counts["memories"] = len(self.index or ())
        if self.index is None or not bring_up(self.index):
            with timed(logger, logging.INFO, "built the index"):
                self.index = ask(lambda engine: index_from(engine, projection))
            self.save()
        return self.index

    def save_if_changed(self, projection: Projection, *, at_once: bool = False) -> None:
        """Save the index if it is current and has changed much since the last save, or at all if that is wanted."""
        index = self.loaded(projection)
        if index is not None and index.changed * (len(index) + 1 if at_once else _SNAPSHOT_SHARE) > len(index):
            self.save()

    def save(self) -> None:
        """Save the index."""
        if self.index is None:
            return
        try:
            snapshot.save(self.index, self._path, self._store_id, self._seal)
        except StorageError as error:  # a snapshot only saves time
            logger.warning("%s", error.loggable)
