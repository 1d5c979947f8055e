"""Projector: keeps rows and index up to date with the journal by applying commits, catching up and rebuilding; keeps the index's snapshot on disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from memgraph.disk.files import clear
from memgraph.errors import BusyError, DiskFullError, GraphError, JournalError, OutdatedGraphError, StorageError
from memgraph.fold import Projection, project
from memgraph.fold.fold import SCHEMA_VERSION, digest_after
from memgraph.graph.copy import GraphCopy, Vendor
from memgraph.index import snapshot
from memgraph.index.index import RELATION_CODE, Index, IndexOffset, texts_of
from memgraph.journal.envelope import Chain, CommitDraft, Committed, Event
from memgraph.journal.journal import Journal
from memgraph.journal.sql import DamagedDatabaseError, Database, SQLite
from memgraph.logs import logger_of, timed
from memgraph.model.events.store import MemoryPurged, StoreReset
from memgraph.ports import Change, Key, Progress, Row
from memgraph.store.replayed import replayed
from memgraph.store.rows import Rows, State, in_bulk

logger = logger_of(__name__)
T = TypeVar("T")

_SNAPSHOT_SHARE = 50
"""The index is saved once more than one slot in this many has changed."""
_BATCH_EVENTS = 1_000
_LOOK_S = 0.005


class Projector:
    """Coordinates journal, rows and index. Thread-safe. One thread at a time writes, under `guard`; readers see the last completed commit.

    What readers see changes only under `view` as well, and briefly; `guard` is taken before `view`. The rows are in the journal's database, or in one of
    a view's own.
    """

    def __init__(self, journal: Journal, database: Database, folder: Path, vendor: Vendor) -> None:
        self.journal = journal
        self.database = database
        self._is_shared = database is journal.database
        # as they are, damaged or not
        self.stored = Rows(database, journal.seal("rows"), timeout_s=journal.lock_timeout_s, is_whole=False)
        note = folder / "cache" / "rows.json" if self._is_shared else None
        self.rows = Rows(database, journal.seal("rows"), timeout_s=journal.lock_timeout_s, note=note)
        self.rows.on_damage = self._restore
        self.guard = threading.RLock()
        self.view = threading.RLock()
        self.named = journal.named
        self.projection = Projection(journal.store_id)
        self._index: Index | None = None
        self._index_path = folder / "index" / "index.npz"
        self._folder = folder
        self.graph = GraphCopy(folder / "graph", vendor, journal.seal("graph"), self.snapshot)
        self._index_seal = journal.seal("index")
        self._here = threading.local()
        self._has_removed = False
        self.first_lag: int | None = None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Freeze rows and index for a block, as of the last completed commit, rebuilt if they cannot follow the journal. Nests, also in `writing`."""
        if self.is_reading or self.is_writing:
            yield
            return
        with ExitStack() as block:
            self._enter(block)
            self._here.is_reading = True
            try:
                yield
            finally:
                self._here.is_reading = False

    @contextmanager
    def snapshot(self) -> Iterator[Rows]:
        """Give the rows as they are now, unchanged for a block that keeps nobody from writing or reading."""
        self.catch_up()
        with in_bulk(), self.database.reading():
            yield self.rows

    @property
    def is_reading(self) -> bool:
        """Whether this thread is inside a block of reads."""
        return getattr(self._here, "is_reading", False)

    @property
    def is_writing(self) -> bool:
        """Whether this thread is inside `writing`."""
        return getattr(self._here, "depth", 0) > 0

    def _enter(self, block: ExitStack) -> None:
        """Freeze what readers see until the block ends. What another process is about to commit is not waited for."""
        is_caught_up = False
        while True:
            has_guard = self.guard.acquire(timeout=_LOOK_S)
            try:
                block.enter_context(self.view)
                block.enter_context(self.database.reading())
                block.enter_context(self.rows.pinned())
                state = self._usable_state()
                if state is not None and self._is_shown(state, is_caught_up=is_caught_up, has_guard=has_guard):
                    return
                block.close()
                if has_guard:
                    try:
                        self._catch_up(timeout_s=0.0 if state else self.journal.lock_timeout_s)
                    except BusyError:
                        if state is None:
                            raise
                        time.sleep(_LOOK_S)
                    is_caught_up = True
            finally:
                if has_guard:
                    self.guard.release()

    def _is_shown(self, state: State, *, is_caught_up: bool, has_guard: bool) -> bool:
        """Return whether readers may see these rows: they are at the journal's end, or someone is about to write what is missing."""
        rows = state.projection
        if not has_guard:  # another thread writes, and has caught up before
            return rows.seq == self.projection.seq
        if self.journal.has_changed():
            self.journal.refresh()
        tail = self.journal.tail
        if (rows.seq, rows.signature) != (tail.seq, tail.signature):
            is_behind = is_caught_up and rows.seq < tail.seq
            if not is_behind or self.journal.signature_of(rows.seq) != rows.signature:  # of a history that was given up
                return False
        self._see(rows)
        return True

    def _see(self, projection: Projection) -> None:
        with self.view:  # who is in a block of reads brings its index to what that block shows
            self.projection, self.named = projection, self.journal.named
        if self.first_lag is None:
            self.first_lag = 0

    def _usable_state(self) -> State | None:
        """Return the rows' state, unless there are none, or they are of another store or schema, or cannot be trusted."""
        try:
            state = self.rows.state()
        except GraphError:
            return None
        if state is None or state.projection.store_id != self.journal.store_id:
            return None
        return state if state.projection.schema_version == SCHEMA_VERSION else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer lock, with the rows caught up. Nests."""
        if self.is_reading:
            raise RuntimeError("a write was begun inside a block of reads")
        with self.guard:
            self._here.depth = getattr(self._here, "depth", 0) + 1
            try:
                if self.journal.holds_lock:
                    yield
                    return
                with self.journal.locked():
                    self._catch_up(timeout_s=self.journal.lock_timeout_s)
                    yield
            finally:
                self._here.depth -= 1

    @contextmanager
    def _committing(self, timeout_s: float) -> Iterator[list[Callable[[], None]]]:
        """Begin a transaction. What is put into the list is carried out once it is committed, before anybody reads what it wrote."""
        shows: list[Callable[[], None]] = []
        is_joint = self._is_shared and self.journal.holds_lock  # one transaction with the events that the rows follow
        with ExitStack() as shown:
            with self.journal.committing() if is_joint else self.database.writing(timeout_s):
                yield shows
                shown.enter_context(self.view)
            try:
                for show in shows:
                    show()
            except BaseException:
                self._index = None  # half of a change may be in it; it is made anew from what is committed
                raise

    def append(
        self,
        drafts: Sequence[CommitDraft],
        now: str,
        *,
        read: Sequence[Row] = (),
        first: Callable[[], None] = lambda: None,
        then: Callable[[], None] = lambda: None,
    ) -> list[Event]:
        """Append and project commits in one transaction, with what `first` writes; `then` is called before anybody reads it. Inside `writing` only.

        `read` are rows of memories that were read in this block.
        """
        if self.projection.seq != self.journal.tail.seq:
            self._catch_up(timeout_s=self.journal.lock_timeout_s)
        with self._committing(self.journal.lock_timeout_s) as shows:
            first()
            with timed(logger, logging.DEBUG, "appended to the journal") as counts:
                commits = self.journal.append(drafts, now)
                counts["events"] = sum(len(commit.events) for commit in commits)
            shows += [then, self._apply(commits, read)]
        return [event for commit in commits for event in commit.events]

    def remove(self, erase: Callable[[], T]) -> T:
        """Remove events, which `erase` does, and make the rows of those that remain, in one transaction. Inside `writing` only."""
        with in_bulk(), self._committing(self.journal.lock_timeout_s) as shows:
            erased = erase()
            self._has_removed = True
            shows.append(self._remake(self.journal.tail.seq))
        return erased

    def _apply(self, commits: Sequence[Committed], read: Sequence[Row]) -> Callable[[], None]:
        """Write what commits change, inside a transaction, and return the function that shows it."""
        events = [event for commit in commits for event in commit.events]
        if any(isinstance(event.payload, StoreReset) for event in events):
            self._has_removed = True
            return self._remake(commits[-1].after.seq)
        with timed(logger, logging.DEBUG, "wrote rows") as counts:
            try:
                changes, after, made = self._write(events, commits[-1].after, read)
            except GraphError as error:
                if type(error) is not GraphError:
                    raise
                self._restore(error)  # a row is missing, which nothing that was read could tell
                changes, after, made = self._write(events, commits[-1].after)
            index = self.loaded_index
            texts = {} if index is None else texts_of(changes)  # most of the index's work, while nobody waits
            counts |= {"events": len(events), "rows": len(changes)}
        self._has_removed |= any(change.table == "Memory" and change.new is None for change in changes)
        named = self.journal.named

        def show() -> None:
            if index is not None:
                index.apply(changes, texts)
            self.named = named
            self._show(index, after, made)

        return show

    def _write(
        self, events: Sequence[Event], end: Chain, read: Sequence[Row] = ()
    ) -> tuple[list[Change], Projection, str]:
        changes, after = project(events, end, self.projection, self.rows, read)
        return changes, after, self.rows.apply(changes, after)

    def _show(self, index: Index | None, projection: Projection, made: str) -> None:
        self.projection = projection
        if index is not None:
            index.offset = IndexOffset(projection.seq, projection.signature, made)
            self._index = index

    def catch_up(self) -> None:
        """Bring the rows to the journal's end, with a rebuild if necessary."""
        with self.reading():
            pass

    def _catch_up(self, *, timeout_s: float) -> None:
        """Bring the rows to the journal's end; `guard` is held. Raises a `BusyError` if another process writes them that long."""
        if self._is_at_end():
            return
        try:
            with in_bulk(), self._committing(timeout_s) as shows:
                if self._is_at_end():  # another process has written them
                    return
                state, tail = self._usable_state(), self.journal.tail
                if self.first_lag is None:
                    self.first_lag = tail.seq - (state.projection.seq if state else 0)
                if state is None:
                    self.rows.state()  # raises what is wrong with it
                    raise OutdatedGraphError("there are no rows of this store and schema")
                projection = self._advance(state.projection)
                shows.append(lambda: self._see(projection))
        except DiskFullError:
            self.journal.on_full()
            raise  # a rebuild would need more space, not less
        except (GraphError, DamagedDatabaseError) as error:
            level = logging.INFO if isinstance(error, OutdatedGraphError) else logging.WARNING
            logger.log(level, "rebuilding the rows from the journal: %s", error.loggable)
            self.rebuild()

    def _is_at_end(self) -> bool:
        with self.database.reading():
            if self.journal.has_changed():
                self.journal.refresh()
            state, tail = self._usable_state(), self.journal.tail
        if state is None or (state.projection.seq, state.projection.signature) != (tail.seq, tail.signature):
            return False
        self._see(state.projection)
        return True

    def _advance(self, projection: Projection) -> Projection:
        """Replay what the rows do not know yet, inside a transaction."""
        tail = self.journal.tail
        if projection.seq >= tail.seq:
            raise OutdatedGraphError("they are ahead of the journal")
        if projection.seq < self.journal.base.seq:
            raise OutdatedGraphError("they are older than the journal's baseline")
        with timed(logger, logging.INFO, "brought the rows up") as counts:
            counts["events"] = tail.seq - projection.seq
            reached = Chain(projection.store_id, projection.seq, projection.signature, projection.timestamp)
            batch: list[Event] = []
            try:
                for commit in self.journal.replay(reached if reached.seq else None):
                    if any(isinstance(event.payload, StoreReset | MemoryPurged) for event in commit.events):
                        raise OutdatedGraphError("the store was reset since, or events were purged")
                    batch += commit.events
                    if len(batch) >= _BATCH_EVENTS or commit.after.seq >= tail.seq:
                        changes, projection = project(batch, commit.after, projection, self.rows)
                        self.rows.apply(changes, projection)
                        batch = []
            except JournalError as error:
                # the rows' offset is not in this journal, or the journal is damaged: a full replay distinguishes them
                raise GraphError(f"their offset does not match the journal: {error.loggable}") from error
            if projection.seq < tail.seq:  # an excerpt, which keeps nothing of the last commits
                projection = projection.at(tail)
                self.rows.apply([], projection)
        return projection

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the whole journal, verified, into new rows and a new index."""
        with self.guard, in_bulk(), timed(logger, logging.INFO, "rebuilt rows and index") as counts:
            try:
                self._rebuild(progress)
            except (DamagedDatabaseError, GraphError):
                if self._is_shared or not isinstance(self.database, SQLite):
                    raise
                self.database.renew()
                self._rebuild(progress)
            self._save_index()
            self._remove_former_graph()
            counts["events"] = self.projection.seq

    def is_rebuilt_since(self, seq: int) -> bool:
        """Return whether any process made the rows anew at this event or after it."""
        state = self._usable_state()
        return state is not None and state.since >= seq

    def forget(self, *, erases: bool = True) -> bool:
        """Remove what was deleted from every file of the projections; False if another process goes on reading the database as it was."""
        self._remove_former_graph()
        self.graph.forget()
        clear(self._index_path)  # first: it may be that no new one can be saved
        try:
            if erases:
                self.database.erase()
        except BusyError:
            logger.info(
                "another process keeps on reading the database as it was: its files still hold what was deleted"
            )
            return False
        finally:
            self._save_index()
        return True

    def _remove_former_graph(self) -> None:
        for pattern in ("graph/memgraph.*", "graph/load-*", "graph/*.json", "graph.lock*"):
            for path in self._folder.glob(pattern):
                clear(path)

    def _rebuild(self, progress: Progress | None) -> None:
        with self._committing(self.journal.lock_timeout_s) as shows:
            if self.journal.has_changed():
                self.journal.refresh()
            shows.append(self._remake(self.journal.tail.seq, progress))

    def _remake(self, until_seq: int, progress: Progress | None = None) -> Callable[[], None]:
        """Replay the verified journal up to an event into new rows and a new index, inside a transaction; return what shows them."""
        changes, projection = replayed(self.journal, until_seq, progress)
        made = self.rows.rebuild(changes, projection)
        index, named = index_of(changes), self.journal.named

        def show() -> None:
            self.named = named
            self._show(index, projection, made)

        return show

    def _restore(self, why: GraphError) -> None:
        """Rebuild the rows, because one deviates from what was written. This thread reads them."""
        if not self.guard.acquire(blocking=False):
            raise why  # another thread writes; whoever reads next rebuilds them
        try:
            logger.warning("rebuilding the rows from the journal: %s", why.loggable)
            if self.database.is_writing:  # in the midst of a commit
                self._remake(self.projection.seq)()
            else:
                with self.database.paused():
                    self.rebuild()
        finally:
            self.guard.release()

    @property
    def index(self) -> Index:
        """The index at the journal's end; loaded or built on first use."""
        with self.reading(), self.view:
            index, self._index = self._index, None  # until it is whole again, also if this is interrupted
            if index is None:
                with timed(logger, logging.INFO, "read the index's snapshot") as counts:
                    index = snapshot.load(self._index_path, self.journal.store_id, self._index_seal)
                    counts["memories"] = len(index or ())
            if index is None or not self._bring_up(index):
                with timed(logger, logging.INFO, "built the index"):
                    index = self._built()
                self._index = index
                if self._is_shared:  # a view's is saved when it is made, and a purge may have removed it since
                    self._save_index()
            self._index = index
            index.use_vectors_of(self.named.model)
            return index

    @property
    def loaded_index(self) -> Index | None:
        """The index if it is in memory and current, without loading it."""
        index = self._index
        return index if index is not None and index.offset.seq == self.projection.seq else None

    def memories(self, memory_ids: Sequence[str]) -> list[Row]:
        """Return these memories' rows in this order, without deleted ones. Rows of which the index has one that is missing are rebuilt."""
        rows = self.rows.memories(memory_ids)
        if len(rows) < len(memory_ids):
            index = self.loaded_index if self.database.is_writing else self.index
            found = {row["id"] for row in rows}
            if index is not None and any(index.slot(one) >= 0 for one in memory_ids if one not in found):
                self._restore(GraphError("a row of Memory is not what was written: it is missing"))
                rows = self.rows.memories(memory_ids)
        return rows

    def _bring_up(self, index: Index) -> bool:
        """Update the index to the rows' state; return False if it must be rebuilt."""
        offset, now = index.offset, self.projection
        if offset.seq >= now.seq:
            return offset.seq == now.seq and offset.signature == now.signature
        changes = self.rows.changes_since(offset.seq) if self.rows.mark(offset.seq) == offset.made else None
        if changes is None:
            return False
        followers = [
            Change("Memory", key, row, row)
            for change in changes
            if change.table == "Memory" and change.new is None
            for key in index.followers(str(change.key))
            if (row := self.rows.get("Memory", key)) is not None
        ]
        index.apply([*changes, *followers])
        self._show(index, now, offset.made)
        return True

    def _built(self) -> Index:
        index = index_of(self._checked_rows())
        self._show(index, self.projection, self.rows.mark(self.projection.seq) or "")
        return index

    def check(self) -> None:
        """Compare memories and links with their digest, and rebuild rows that deviate."""
        with self.reading():
            self._checked_rows()

    def _checked_rows(self) -> list[Change]:
        """Return all memories and links, rebuilt if they do not match their digest."""

        def read() -> list[Change]:
            tables = ("Memory", *RELATION_CODE)
            return [Change(table, key, None, row) for table in tables for key, row in self.rows.scan(table)]

        rows = read()
        if digest_after(0, rows) != self.projection.digest:
            self._restore(GraphError("memories and links do not match their digest"))
            rows = read()
        return rows

    def _save_index(self) -> None:
        if self._index is None:
            return
        try:
            snapshot.save(self._index, self._index_path, self.journal.store_id, self._index_seal)
            with self.database.beside(), self.database.reading():
                state = self._usable_state()
            if state is None or state.made != self._index.offset.made:
                clear(self._index_path)  # another process may have purged meanwhile what this one knew
        except StorageError as error:  # a snapshot only saves time
            logger.warning("%s", error.loggable)

    def close(self) -> None:
        """Save the index if much has changed, record how far the journal is verified, and close the database."""
        with self.guard:
            try:
                # else a later purge may have removed what this process knows
                if self._is_shared and not self.journal.has_changed():
                    # the snapshot must not keep the names of what was removed
                    index = self.index if self._has_removed else self.loaded_index
                    share = len(index) + 1 if index is not None and self._has_removed else _SNAPSHOT_SHARE
                    if index is not None and index.changed * share > len(index):
                        self._save_index()
            finally:
                self.release()

    def release(self) -> None:
        """Close the graph, and the rows' database if it is not the journal's; save nothing."""
        self.graph.close()
        if not self._is_shared:
            self.database.close()

    def has_rows(self) -> bool:
        """Return whether rows were ever written."""
        try:
            return self.stored.state() is not None
        except GraphError:
            return True


def index_of(changes: Iterable[Change]) -> Index:
    """Return the index of these rows."""
    index = Index()
    rows, links = [], list[tuple[str, Key]]()
    for change in changes:
        if change.table == "Memory" and change.new:
            rows.append(change.new)
        elif change.table in RELATION_CODE:
            links.append((change.table, change.key))
    index.build(sorted(rows, key=lambda row: row["seq"]), links)
    return index
