"""Keeps graph and index where the journal is: applies commits, catches up, rebuilds. Nobody has to ask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

from memgraph.errors import DiskFullError, GraphError, JournalError, OutdatedGraphError
from memgraph.fold import Projection, project
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.index.index import Index, IndexOffset
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.journal import Journal
from memgraph.journal.replay import Committed, Offset
from memgraph.logs import logger_of, timed
from memgraph.ports import GraphEngine, Progress
from memgraph.store.projection.bulk import in_bulk
from memgraph.store.projection.index_building import Stale, aside, brought_up, index_of, offset_of, refetch
from memgraph.store.projection.index_sync import IndexKeeper
from memgraph.store.projection.read_gate import Turns
from memgraph.store.projection.replayed_rows import replayed, stored
from memgraph.store.projection.row_cache import RowCache
from memgraph.store.projection.upkeep import UpkeepFile

logger = logger_of(__name__)

_BATCH_EVENTS = 1_000
_REBUILD_FROM_EVENTS = 5_000
"""A graph further behind than this is rebuilt by COPY rather than brought up by transactions."""
_REFETCH_LIMIT = 5_000
_ASIDE_FROM_ROWS = 1_000
"""So many are brought into a copy of the index, which then takes its place: nobody waits for them."""
_MOST_ROWS_AT_ONCE = 600_000
"""Some 45,000 memories: more do not fit into the engine's buffer pool, and are brought in by a rebuild."""
T = TypeVar("T")


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
        self.rows = RowCache(self.ask, lambda: len(self._indexes.index or ()))
        self.named = journal.named
        self.after_commit: Callable[[], None] = lambda: None
        self._generation = -1
        self._depth = 0
        self._has_failed = False
        self.projection = Projection(journal.store_id)
        self._indexes = IndexKeeper(index_path, journal.store_id, journal.seal("index"))
        self.upkeep = UpkeepFile(index_path.parents[1] / "graph" / "upkeep.json", journal.seal("upkeep"))

    @contextmanager
    def holding(self, progress: Progress | None = None) -> Iterator[None]:
        """Hold the graph, caught up, for a block: inside it nothing changes but by the block itself. Nests.

        A graph that cannot be brought to the journal's end is rebuilt; if that fails too, the error comes out.
        """
        if self.turns.is_reading:
            raise RuntimeError("the graph was requested inside a block of reads without it; use frozen(links=True)")
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
                raise RuntimeError("links were requested inside a block of reads without them; use frozen(links=True)")
            yield
            return
        with self.turns.taken(beside=not links) as is_beside:
            if is_beside:
                yield
            elif links or self._depth:
                with self._held():
                    yield
            else:
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
                    self._note_damage(error)
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

    def gives_way(self) -> Callable[[], bool] | None:
        """Return what tells whether another thread waits; None if this thread's block cannot end for it. Inside `holding` only."""
        return None if self._depth > 1 else lambda: self.turns.guard.is_awaited

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
            if self.has_graph:
                self.after_commit()
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
            index = self._indexes.current(self.projection, self._bring_up, self.ask)
            index.use_vectors_of(self.named.model)
            return index

    @property
    def loaded_index(self) -> Index | None:
        """The index if it is in memory and current, without loading it."""
        return self._indexes.loaded(self.projection)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the whole journal, verified, into a new graph; the index is made anew."""
        with ExitStack() as stack:
            stack.enter_context(self.turns.guard)
            if self._is_at_hand():
                stack.enter_context(self._admitting())
            stack.enter_context(in_bulk())
            counts = stack.enter_context(timed(logger, logging.INFO, "rebuilt graph and index"))
            counts["events"] = self._remake(self.journal.tail.chain.seq, progress).seq
            self._generation, self._has_failed = -1, False

    def ask(self, question: Callable[[GraphEngine], T]) -> T:
        """Ask the graph; one that cannot answer is rebuilt from the journal and asked once more.

        It is rebuilt as it stood, up to the same event: for who holds it, nothing changes.
        """
        try:
            return question(self.engine)
        except GraphError as error:
            if type(error) is not GraphError or not self._depth:
                raise  # a query's error and a full disk are no damage
            self.restore(error)
            return question(self.engine)

    def restore(self, why: GraphError) -> None:
        """Make graph and index anew as they stand, inside `holding`, because the graph is not what was written to it."""
        self._note_damage(why)
        self.projection = self._remake(self.projection.seq)

    def _remake(self, until_seq: int, progress: Progress | None = None) -> Projection:
        """Replay the verified journal up to an event into a new graph and index: what was read from the old one may be wrong."""
        changes, projection = replayed(self.journal, until_seq, progress)
        index = aside(
            lambda: index_of(changes, projection),
            lambda: self.engine.rebuild(changes, projection.as_row(), progress=progress),
        )
        self.upkeep.note_fresh(size=self.engine.size_bytes(), rows=self.engine.count_rows())
        with self.turns.view:
            self.turns.close()
            self.rows.clear()
            self._indexes.index = index
        self._indexes.save()
        return projection

    def _note_damage(self, why: GraphError) -> None:
        logger.warning("rebuilding the graph from the journal: %s", why.loggable)
        if not isinstance(why, OutdatedGraphError):
            self.upkeep.note_damage(why.loggable)

    def close(self) -> None:
        """Save the index if much has changed, remember how far the journal is verified, and let go of the graph."""
        with self.turns.guard:
            try:
                self._indexes.save_if_changed(self.projection)
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
        state, tail = stored(self.engine, self.journal.store_id), self.journal.tail.chain
        if state.store_id != self.journal.store_id or state.schema_version != SCHEMA_VERSION:
            raise OutdatedGraphError("it belongs to another store or schema")
        if state.seq > tail.seq or (state.seq == tail.seq and state.signature != tail.signature):
            raise OutdatedGraphError("it is ahead of the journal")
        return state

    def _advance(self, progress: Progress | None) -> None:
        state = self.projection
        if self.journal.tail.chain.seq - state.seq > _REBUILD_FROM_EVENTS:
            raise OutdatedGraphError("it is far behind")
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
            raise GraphError(f"the graph's offset does not match the journal: {error.loggable}") from error
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
                    self._indexes.index = fresh
                absorb()
                self.projection = after
                if self.named.model not in (None, self.journal.named.model):
                    self.turns.close()  # queries are still embedded by the model before
                self.named = self.journal.named

    def _offset(self, state: Projection | IndexOffset) -> Offset:
        if state.seq == 0:
            return self.journal.start
        return self.journal.resume_point(state.seq, state.signature, state.segment, state.offset, state.timestamp)

    def _bring_up(self, index: Index) -> bool:
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
            refetch(index, stale, self.rows.get, lambda key: self.ask(lambda engine: engine.links_of(key)))
        index.offset = offset_of(self.projection)
        return True
