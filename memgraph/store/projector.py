"""Keeps graph and index where the journal is: applies commits, catches up, rebuilds. Nobody has to ask."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memgraph.errors import DiskFullError, GraphError, JournalError, StorageError
from memgraph.fold import EmptyView, Projection, Workspace, fold, project
from memgraph.fold.projection import SCHEMA_VERSION, digest_after
from memgraph.index import snapshot
from memgraph.index.index import RELATION_CODE, Index, IndexOffset
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.journal import Journal
from memgraph.journal.replay import Committed, Offset
from memgraph.logs import logger_of, timed
from memgraph.model.events import AccessRecorded
from memgraph.ports import Change, GraphEngine, Key, Progress, Row
from memgraph.store.bulk import no_collections
from memgraph.store.cache import RowCache

logger = logger_of(__name__)

_BATCH_EVENTS = 1_000
_REBUILD_FROM_EVENTS = 5_000
"""A graph further behind than this is rebuilt by COPY rather than brought up by transactions."""
_REFETCH_LIMIT = 5_000
_ASIDE_FROM_ROWS = 1_000
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
        self.guard = threading.RLock()
        self.rows = RowCache(engine)
        self._generation = -1
        self._depth = 0
        self.projection = Projection(journal.store_id)
        self._index_path = index_path
        self._index: Index | None = None

    @contextmanager
    def holding(self, progress: Progress | None = None) -> Iterator[None]:
        """Hold the graph, caught up, for a block: inside it nothing changes but by the block itself. Nests.

        A graph that cannot be brought to the journal's end is rebuilt; if that fails too, the error comes out.
        """
        with self.guard, ExitStack() as stack:
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
        with self.guard:
            if self.journal.holds_lock:
                yield
                return
            if self._depth:
                raise RuntimeError("a write was begun inside a block of reads")
            with self.journal.locked(before_waiting=self.engine.release):
                if not needs_graph and not self.engine.is_held:
                    yield
                    return
                with self.holding():
                    yield
                self._mend()

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
            logger.warning("the graph failed after a commit (%s); it will be caught up", error.loggable)
            self._generation = -1  # what it says of itself counts, not what it should have come to
        return [event for commit in commits for event in commit.events]

    def catch_up(self, progress: Progress | None = None) -> None:
        """Bring the graph to the journal's end, by rebuilding it if it must be."""
        with self.holding(progress):
            pass

    @property
    def index(self) -> Index:
        """The index, at the journal's end; loaded or built at first use."""
        with self.holding():
            if self._index is None:
                with timed(logger, logging.INFO, "read the index's snapshot") as counts:
                    self._index = snapshot.load(self._index_path, self.journal.store_id)
                    counts["memories"] = len(self._index or ())
            if self._index is None or not self._advance_index(self._index):
                self._index = self._build_index()
            self._index.use_vectors_of(self.journal.named.model)
            return self._index

    @property
    def loaded_index(self) -> Index | None:
        """The index if it is in memory and current, without loading it."""
        index = self._index
        return index if index is not None and index.offset.seq == self.projection.seq else None

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the whole journal, verified, into a new graph; the index is made anew."""
        with self.guard, no_collections(), timed(logger, logging.INFO, "rebuilt graph and index") as counts:
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
            with self._aside(lambda: self._take_index(_index_of(changes, projection))):
                self.engine.rebuild(changes, projection.as_row(), progress=progress)
            self._generation = -1
            self._save_index()

    def close(self) -> None:
        """Save the index if much has changed, remember how far the journal is verified, and let go of the graph."""
        with self.guard:
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
        if self.journal.has_changed():
            self.journal.refresh()
        if self.engine.generation != self._generation:
            # another process may have had the graph, or deleted it: only what it says of itself counts
            self.rows.clear()
            self.projection = self._behind()
            self._generation = self.engine.generation
        if self.projection.seq != self.journal.tail.chain.seq:
            with timed(logger, logging.INFO, "brought the graph up") as counts:
                counts["events"] = self.journal.tail.chain.seq - self.projection.seq
                self._advance(progress)

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
            changes, after = project(events, commits[-1].after, self.projection, self.rows)
            if len(changes) > _MOST_ROWS_AT_ONCE:
                raise GraphError(f"{len(changes):,} rows are too many for one transaction of the engine")
            counts |= {"events": len(events), "rows": len(changes)}
            if index is None or len(changes) < _ASIDE_FROM_ROWS:
                self.engine.apply(changes, after.as_row())
                if index is not None:
                    index.apply(changes)
            else:
                with self._aside(lambda: index.apply(changes)):
                    self.engine.apply(changes, after.as_row())
        self.rows.absorb(changes)
        self.projection = after
        if index is not None:
            index.offset = _index_offset(after)

    @contextmanager
    def _aside(self, work: Callable[[], None]) -> Iterator[None]:
        """Bring the index up while the block waits for the engine, which works outside of the interpreter's lock."""
        with ThreadPoolExecutor(1, "memgraph-index") as pool:
            done = pool.submit(work)
            try:
                yield
            except BaseException:
                self._index = None  # it is where the graph did not get to
                raise
            done.result()

    def _take_index(self, index: Index) -> None:
        self._index = index

    def _offset(self, state: Projection | IndexOffset) -> Offset:
        if state.seq == 0:
            return self.journal.start
        return self.journal.resume_point(state.seq, state.signature, state.segment, state.offset, state.timestamp)

    def _advance_index(self, index: Index) -> bool:
        """Bring the index to the graph's state; False if it must be built anew."""
        if index.offset.seq >= self.projection.seq:
            return index.offset.seq == self.projection.seq and index.offset.signature == self.projection.signature
        touched: dict[str, bool] = {}  # whether more than its use has changed
        try:
            for commit in self.journal.replay(self._offset(index.offset)):
                for event in commit.events:
                    more = not isinstance(event.payload, AccessRecorded)
                    touched.update({key: more or touched.get(key, False) for key in event.payload.memory_ids()})
        except JournalError:
            return False
        if len(touched) > _REFETCH_LIMIT:
            return False
        with self.engine.open():
            rows: dict[str, Row | None] = {key: self.rows.get("Memory", key) for key in touched}
            for memory_id, row in rows.items():
                if row is not None:
                    index.put(row, None if touched[memory_id] else row)
                    continue
                followers = [self.rows.get("Memory", key) for key in index.followers(memory_id)]
                index.remove(memory_id)
                for follower in filter(None, followers):
                    index.put(follower)
            index.refollow(row for row in rows.values() if row is not None)
            for memory_id, row in rows.items():
                if row is not None and touched[memory_id]:
                    index.relink(memory_id, ((table, key) for table, key, _ in self.engine.links_of(memory_id)))
        index.offset = _index_offset(self.projection)
        return True

    def _build_index(self) -> Index:
        index = Index()
        with self.engine.open(), timed(logger, logging.INFO, "built the index"):
            rows = sorted((row for _, row in self.engine.scan("Memory")), key=lambda row: row["seq"])
            links = [(table, key) for table in RELATION_CODE for key, _ in self.engine.scan(table)]
        index.build(rows, links)
        index.offset = _index_offset(self.projection)
        self._index = index
        self._save_index()
        return index

    def _save_index(self) -> None:
        if self._index is None:
            return
        try:
            snapshot.save(self._index, self._index_path, self.journal.store_id)
        except StorageError as error:  # a snapshot only saves time
            logger.warning("%s", error.loggable)


def _index_of(changes: Sequence[Change], projection: Projection) -> Index:
    index = Index()
    rows = sorted(
        (change.new for change in changes if change.table == "Memory" and change.new), key=lambda row: row["seq"]
    )
    links: list[tuple[str, Key]] = [(change.table, change.key) for change in changes if change.table in RELATION_CODE]
    index.build(rows, links)
    index.offset = _index_offset(projection)
    return index


def _index_offset(state: Projection) -> IndexOffset:
    return IndexOffset(state.seq, state.signature, state.timestamp, state.segment, state.offset)
