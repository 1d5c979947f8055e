"""Keeps graph and index where the journal is: applies commits, catches up, rebuilds. Nobody has to ask."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from memgraph.errors import DiskFullError, GraphError, JournalError, StorageError
from memgraph.fold import EmptyView, Projection, Workspace, fold, project
from memgraph.fold.projection import SCHEMA_VERSION, digest_after
from memgraph.index import snapshot
from memgraph.index.index import Index, IndexOffset
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.journal import Journal
from memgraph.journal.replay import Committed, Offset
from memgraph.logs import logger_of, timed
from memgraph.ports import GraphEngine, Progress
from memgraph.store.bulk import in_bulk
from memgraph.store.cache import RowCache
from memgraph.store.indexing import Stale, aside, brought_up, index_from, index_of, offset_of, refetch
from memgraph.store.turns import Turns

logger = logger_of(__name__)

_BATCH_EVENTS = 1_000
_REBUILD_FROM_EVENTS = 5_000
"""A graph further behind than this is rebuilt by COPY rather than brought up by transactions."""
_REFETCH_LIMIT = 5_000
_ASIDE_FROM_ROWS = 1_000
"""So many are brought into a copy of the index, which then takes its place: nobody waits for them."""
_MOST_ROWS_AT_ONCE = 600_000
"""Some 45,000 memories: more do not fit into the engine's buffer pool, and are brought in by a rebuild."""
_SNAPSHOT_SHARE = 50
"""The index is saved when more than one in so many slots has changed."""


class Projector:
    """The one place where journal, graph and index meet. Thread-safe.

    Parameters
    ----------
    journal : Journal
    engine : GraphEngine
    index_path : Path
        Where the index's snapshot lies.
    """

    def __init__(self, journal: Journal, engine: GraphEngine, index_path: Path) -> None:
        self.journal = journal
        self.engine = engine
        self.turns = Turns()
        self.rows = RowCache(engine, lambda: len(self._index or ()))
        self.named = journal.named
        self._generation = -1
        self._depth = 0
        self._has_failed = False
        self.projection = Projection(journal.store_id)
        self._index_path = index_path
        self._index: Index | None = None

    @contextmanager
    def holding(self, progress: Progress | None = None) -> Iterator[None]:
        """Hold the graph, caught up, for a block: inside it nothing changes but by the block itself. Nests.

        A graph that cannot be brought to the journal's end is rebuilt; if that fails too, the error comes out.
        """
        if self.turns.is_reading:
            raise RuntimeError("the graph was wanted inside a block of reads without it; use frozen(links=True)")
        with self._held(progress):
            yield

    @contextmanager
    def reading(self, *, links: bool = False) -> Iterator[None]:
        """Hold still what the index, and the rows of memories, say for a block. Nests.

        While another thread writes, that may be the state after the last commit that it has finished. With `links` the block
        waits for the writer, and holds the graph as `holding` does.
        """
        if self.turns.is_reading:
            if links:
                raise RuntimeError("links were wanted inside a block of reads without them; use frozen(links=True)")
            yield
            return
        with self.turns.taken(beside=not links) as is_beside:
            if is_beside:
                yield
                return
            if links or self._depth:
                with self._held():
                    yield
                return
            with nullcontext() if self._is_at_hand() else self._held(), self.turns.reading():
                yield

    def _is_at_hand(self) -> bool:
        """Whether index and rows are in memory and at the journal's end: what another process does with the graph is the same."""
        return self._has_all() and self.projection.seq == self.journal.tail.chain.seq and not self.journal.has_changed()

    @contextmanager
    def _held(self, progress: Progress | None = None) -> Iterator[None]:
        with self.turns.guard, ExitStack() as stack:
            if self._depth == 0:
                try:
                    stack.enter_context(self.engine.open())
                    self._catch_up(progress)
                except DiskFullError:
                    raise  # a rebuild would need more room, not less
                except GraphError as error:
                    stack.close()
                    logger.warning("rebuilding the graph from the journal: %s", error.loggable)
                    self.rebuild(progress)
                    stack.enter_context(self.engine.open())
                    self._catch_up(progress)
            self._depth += 1
            try:
                yield
            except GraphError as error:
                self._has_failed |= type(error) is GraphError  # neither a query's error nor a full disk
                raise
            finally:
                self._depth -= 1

    @property
    def has_graph(self) -> bool:
        """Whether the graph is held, by this thread's block."""
        return self._depth > 0

    @contextmanager
    def writing(self, *, needs_graph: bool = True) -> Iterator[None]:
        """Hold the writer lock and the graph, caught up. Nests.

        The journal's lock comes before the graph's: who waits for the former must not sit on the latter. A write that need
        not look anything up does without a graph that is not open: whoever has it next brings it up.
        """
        if self.turns.is_reading:
            raise RuntimeError("a write was begun inside a block of reads")
        with self.turns.guard:
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
        """Let other threads read beside a write that may take long; inside `writing` only, and of use if it has the graph."""
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
            self.turns.close()

    def _admit(self) -> None:
        if self._has_all():
            self.turns.open()

    def _has_all(self) -> bool:
        return self.rows.has_memories and self.loaded_index is not None

    def append(self, drafts: Sequence[CommitDraft], now: str) -> list[Event]:
        """Append commits and project them; inside `writing` only. Durable when it returns, and visible.

        When the graph fails after the journal has taken the commit, the commit stands: the graph is rebuilt.
        """
        before = self.journal.tail.chain.seq
        with timed(logger, logging.DEBUG, "appended to the journal") as counts:
            commits = self.journal.append(drafts, now)
            counts["events"] = sum(len(commit.events) for commit in commits)
        try:
            if self.has_graph and self.projection.seq == before:
                self._apply(commits)
            elif self.has_graph:  # an earlier commit of this block did not get into the graph
                self._advance(None)
        except GraphError as error:
            self.turns.close()
            logger.warning("the graph failed after a commit (%s); it will be caught up", error.loggable)
            self._has_failed |= not isinstance(error, DiskFullError)
            self._generation = -1  # what it says of itself counts, not what it should have come to
        return [event for commit in commits for event in commit.events]

    def catch_up(self, progress: Progress | None = None) -> None:
        """Bring the graph to the journal's end, by rebuilding it if it must be."""
        with self.holding(progress):
            pass

    @property
    def index(self) -> Index:
        """The index, at the journal's end; loaded or built at first use."""
        with self.reading():
            if self._index is None:
                with timed(logger, logging.INFO, "read the index's snapshot") as counts:
                    self._index = snapshot.load(self._index_path, self.journal.store_id)
                    counts["memories"] = len(self._index or ())
            if self._index is None or not self._advance_index(self._index):
                with timed(logger, logging.INFO, "built the index"):
                    self._index = index_from(self.engine, offset_of(self.projection))
                self._save_index()
            self._index.use_vectors_of(self.named.model)
            return self._index

    @property
    def loaded_index(self) -> Index | None:
        """The index if it is in memory and current, without loading it."""
        index = self._index
        return index if index is not None and index.offset.seq == self.projection.seq else None

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the whole journal, verified, into a new graph; the index is made anew."""
        with ExitStack() as stack:
            stack.enter_context(self.turns.guard)
            if self._is_at_hand():
                stack.enter_context(self._admitting())
            stack.enter_context(in_bulk())
            counts = stack.enter_context(timed(logger, logging.INFO, "rebuilt graph and index"))
            workspace = Workspace(EmptyView())
            projection = Projection(self.journal.store_id)
            total = self.journal.tail.chain.seq
            for commit in self.journal.replay():
                for event in commit.events:
                    fold(workspace, event)
                projection = projection.at(commit.after)
                if progress:
                    progress(projection.seq, total)
            changes = list(workspace.changes())
            counts |= {"events": projection.seq, "rows": len(changes)}
            projection = projection.with_digest(digest_after(0, changes))
            index = aside(
                lambda: index_of(changes, projection),
                lambda: self.engine.rebuild(changes, projection.as_row(), progress=progress),
            )
            with self.turns.view:
                self.turns.close()
                self.rows.clear()  # they may be of a graph that was damaged
                self._index = index
            self._generation, self._has_failed = -1, False
            self._save_index()

    def close(self) -> None:
        """Save the index if much has changed, remember how far the journal is verified, and let go of the graph."""
        with self.turns.guard:
            try:
                index = self.loaded_index
                if index is not None and index.changed * _SNAPSHOT_SHARE > len(index):
                    self._save_index()
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
            raise GraphError("it failed when it was read or written last, after which its rows may be garbage")
        if self.journal.has_changed():
            self.journal.refresh()
        if self.engine.generation != self._generation:
            # another process may have had the graph, or deleted it: only what it says of itself counts
            state = self._behind()
            if state != self.projection:  # else the rows that are known are those of the graph
                self.rows.clear()
            self.projection = state
            self._generation = self.engine.generation
        if self.projection.seq != self.journal.tail.chain.seq:
            with timed(logger, logging.INFO, "brought the graph up") as counts:
                counts["events"] = self.journal.tail.chain.seq - self.projection.seq
                self._advance(progress)
        self.named = self.journal.named

    def _mend(self) -> None:
        """Catch up after a commit that the graph failed to take. The commit stands, so a failure here is only told."""
        if self.projection.seq != self.journal.tail.chain.seq:
            try:
                self.catch_up()
            except GraphError as error:
                logger.warning("the graph is behind and will be caught up later: %s", error.loggable)

    def _behind(self) -> Projection:
        """Return the graph's state.

        Raises
        ------
        GraphError
            The journal cannot bring it up.
        """
        row = self.engine.state()
        tail = self.journal.tail.chain
        if row is None:  # a graph that was never written
            return Projection(self.journal.store_id)
        try:
            state = Projection.from_row(row)
        except (KeyError, ValueError, TypeError) as error:
            raise GraphError(f"its state cannot be read ({error!r})") from None
        if state.store_id != self.journal.store_id or state.schema_version != SCHEMA_VERSION:
            raise GraphError("it is another store's, or of another schema")
        if state.seq > tail.seq or (state.seq == tail.seq and state.signature != tail.signature):
            raise GraphError("it is ahead of the journal")
        return state

    def _advance(self, progress: Progress | None) -> None:
        state = self.projection
        if self.journal.tail.chain.seq - state.seq > _REBUILD_FROM_EVENTS:
            raise GraphError("it is far behind")
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
            # either the graph's offset is not of this journal, or the journal is damaged: a full replay tells
            raise GraphError(f"the graph's offset does not fit the journal: {error.loggable}") from error
        if batch:
            self._apply(batch)

    def _apply(self, commits: Sequence[Committed]) -> None:
        events = [event for commit in commits for event in commit.events]
        if not events:
            return
        index = self.loaded_index
        with timed(logger, logging.DEBUG, "wrote to graph and index") as counts:
            changes, after = project(events, commits[-1].after, self.projection, self.rows.ready_for(events))
            if len(changes) > _MOST_ROWS_AT_ONCE:
                raise GraphError(f"{len(changes):,} rows are too many for one transaction of the engine")
            counts |= {"events": len(events), "rows": len(changes)}
            fresh = index
            if index is None or len(changes) < _ASIDE_FROM_ROWS:
                self.engine.apply(changes, after.as_row())
            else:
                with self.turns.view:
                    copy = index.copy()
                fresh = aside(lambda: brought_up(copy, changes), lambda: self.engine.apply(changes, after.as_row()))
            absorb = self.rows.absorbing(changes)
            with self.turns.view:
                if fresh is not None:
                    if fresh is index:
                        fresh.apply(changes)
                    fresh.offset = offset_of(after)
                    self._index = fresh
                absorb()
                self.projection = after
                if self.named.model not in (None, self.journal.named.model):
                    self.turns.close()  # queries are still embedded by the model before
                self.named = self.journal.named

    def _offset(self, state: Projection | IndexOffset) -> Offset:
        if state.seq == 0:
            return self.journal.start
        return self.journal.resume_point(state.seq, state.signature, state.segment, state.offset, state.timestamp)

    def _advance_index(self, index: Index) -> bool:
        """Bring the index to the graph's state; False if it must be built anew."""
        if index.offset.seq >= self.projection.seq:
            return index.offset.seq == self.projection.seq and index.offset.signature == self.projection.signature
        stale = Stale()
        try:
            for commit in self.journal.replay(self._offset(index.offset)):
                for event in commit.events:
                    stale.note(event.payload)
        except JournalError:
            return False
        if len(stale.used) > _REFETCH_LIMIT:
            return False
        with self.engine.open():
            refetch(index, stale, self.rows.get, self.engine.links_of)
        index.offset = offset_of(self.projection)
        return True

    def _save_index(self) -> None:
        if self._index is None:
            return
        try:
            snapshot.save(self._index, self._index_path, self.journal.store_id)
        except StorageError as error:  # a snapshot only saves time
            logger.warning("%s", error.loggable)
