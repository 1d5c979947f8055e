"""Compacts a journal: its state at a commit becomes a signed baseline, and the segments before it are archived.

Retention is a part of it: archived segments of some age are condensed, and memories that were deleted by then lose their texts.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.folders import remove_unused_views
from memgraph.errors import InvalidInputError, StorageError
from memgraph.fold import fold
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.baseline.archive import complete
from memgraph.journal.closed.condensed import Done
from memgraph.journal.closed.digest import Extent, JournalDigest
from memgraph.journal.closed.files import ARCHIVE, files_in, name_of, remove_shadowed
from memgraph.journal.envelope import BEGINNING_BYTES, CommitDraft, Event, is_unsigned
from memgraph.journal.journal import Journal
from memgraph.journal.purge.intent import check_no_purge
from memgraph.journal.purge.rewriting import zero_rows
from memgraph.journal.replay import Offset
from memgraph.journal.retention.condensing import condense
from memgraph.journal.retention.reduction import has_words
from memgraph.journal.vectors.damage import NamedRows
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, checked
from memgraph.model.events.memories import MemoryAdded, MemoryReembedded, MemoryUndeleted, Revision
from memgraph.model.events.store import ArchiveCondensed
from memgraph.model.results.maintenance import CompactionResult
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.compaction.state import State, adopt, baseline_of
from memgraph.store.opening import open_store_journal, release, utc_now
from memgraph.store.projection.replayed_rows import beginning

logger = logger_of(__name__)

When = str | date | datetime
_OPEN = ("active", "suspended")
"""States of tasks whose events stay after the baseline if that is wanted."""


def compact(
    config: AgentMemoryConfig | None = None,
    *,
    before: When | None = None,
    closed_tasks: bool = False,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> CompactionResult:
    """Make a signed baseline of a store's state before a moment, and archive the closed segments that it stands for.

    From then on opening the store, and rebuilding its graph and index, cost what the events after the baseline cost. The archive keeps the
    history: everything that reads it reads archive and journal as before. Others may use the store meanwhile, but not write to it.
    With the setting ``archive_retention_days``, archived segments of that age are condensed: their events lose their signatures, and the texts
    of memories that were deleted by then. There is no undo.
    A process that is killed meanwhile leaves the store as it was, or compacted; the next opening moves what is left.

    Parameters
    ----------
    before : str, date or datetime, optional
        The baseline is the state after the last commit that was recorded before this moment: a day means its beginning, in UTC. Default:
        the beginning of the present month.
    closed_tasks : bool
        Stop before the first event of a task that is neither closed nor archived.
    progress : callable, optional
        Called with (done, total) events.

    Raises
    ------
    InvalidInputError
        `before` is not a time.
    JournalError
        The journal cannot be trusted.
    StorageError
        There is no room for the baseline. Nothing is changed.
    """
    now, began = _now(clock), time.perf_counter()
    journal, limit, days = _opened(config, keys, now, before, closed_tasks, progress)
    with timed(logger, logging.INFO, "compacted the journal") as counts, journal.locked():
        state, is_new, _, plan = _planned(journal, limit, days, now(), closed_tasks, progress)
        present = journal.baseline
        journal.name_closed()  # from now on the digest begins at the baseline
        if is_new or (present is not None and present.schema_version != SCHEMA_VERSION):
            present = baseline_of(journal, state, now())
            adopt(journal, present)
            is_new = True
        moved = complete(journal.segments, present) if present is not None else []
        condensed = retain(journal, plan, days, now())
        while journal.pack_next():
            pass
        counts |= {"events": state.end.chain.seq, "segments": len(moved), "condensed": len(condensed)}
    done = _result(journal, present.offset if present else journal.start, is_new=is_new, began=began)
    removed = len(plan.fresh) if condensed else 0
    updates = {"archived_segments": len(moved), "condensed_segments": len(condensed), "removed_texts": removed}
    return done.model_copy(update=updates)


def preview_compaction(
    config: AgentMemoryConfig | None = None,
    *,
    before: When | None = None,
    closed_tasks: bool = False,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> CompactionResult:
    """Return what `compact` would do with the same arguments. Nothing is changed. Raises the same errors."""
    now, began = _now(clock), time.perf_counter()
    journal, limit, days = _opened(config, keys, now, before, closed_tasks, progress)
    _, is_new, end, plan = _planned(journal, limit, days, now(), closed_tasks, progress)
    staying = {name for name in journal.segments.names() if name >= end.position.segment}
    updates = {
        "archived_segments": len({name_of(path) for path in files_in(journal.folder)} - staying),
        "condensed_segments": len(plan.changing),
        "removed_texts": len(plan.fresh),
        "dry_run": True,
    }
    return _result(journal, end, is_new=is_new, began=began).model_copy(update=updates)


def _now(clock: Clock | None) -> Callable[[], str]:
    return lambda: to_iso((clock or utc_now)())


def _opened(
    config: AgentMemoryConfig | None,
    keys: KeyProvider | None,
    now: Callable[[], str],
    before: When | None,
    closed_tasks: bool,
    progress: Progress | None,
) -> tuple[Journal, str, int]:
    """Return the journal, the moment before which it is compacted, and the retention days."""
    checked(Callback, progress, "progress")
    checked(bool, closed_tasks, "closed_tasks")
    config = config or load_config()
    limit = _moment(now()[:7] + "-01" if before is None else before)
    if not (config.home / "journal" / "manifest.json").exists():
        raise StorageError("there is no store here; name one with --home or MEMGRAPH_HOME", path=config.home)
    return open_store_journal(config, keys, now, with_expired_keys=True), limit, config.archive_retention_days


def _planned(
    journal: Journal, limit: str, days: int, now: str, closed_tasks: bool, progress: Progress | None
) -> tuple[State, bool, Offset, RetentionPlan]:
    """Return the state before the moment, whether it makes a new baseline, where the baseline then ends, and what is condensed.

    It verifies what is to be condensed; nothing is changed.
    """
    check_no_purge(journal.folder, journal.purged, after=journal.tail.chain.seq)
    open_tasks = _open_tasks(journal) if closed_tasks or days else frozenset()
    state = _state_before(journal, limit, open_tasks if closed_tasks else frozenset(), progress)
    present = journal.baseline
    is_new = state.end.chain.seq > (present.seq if present else 0)
    end = state.end if is_new or present is None else present.offset
    if not days:
        return state, is_new, end, RetentionPlan()
    plan = retention_plan(journal, days, now, before=end.position.segment, open_tasks=open_tasks, progress=progress)
    return state, is_new, end, plan


def _moment(before: When) -> str:
    try:
        return to_iso(before)
    except ValueError:
        problem = "is not a date: give a date such as 2024-06-01, or an ISO 8601 time"
        raise InvalidInputError(problem, field="before", value=before) from None


def _state_before(journal: Journal, limit: str, open_tasks: frozenset[str], progress: Progress | None) -> State:
    """Return the state after the last commit before a moment, and before any event of these tasks; at least the baseline's."""
    workspace, start = beginning(journal)
    named = journal.baseline.named if journal.baseline and start.chain.seq else NamedVectors()
    state = State(workspace, start, named)
    least = journal.baseline.seq if journal.baseline else 0
    for commit in journal.replay(start):
        is_free = commit.after.chain.timestamp < limit and not any(one.task_id in open_tasks for one in commit.events)
        if not is_free and commit.after.chain.seq > least:
            break
        state.take(commit)
        if progress:
            progress(commit.after.chain.seq, journal.tail.chain.seq)
    return state


def _open_tasks(journal: Journal) -> frozenset[str]:
    """Return the names of the tasks that are neither closed nor archived."""
    workspace, start = beginning(journal)
    for commit in journal.replay(start):
        for event in commit.events:
            fold(workspace, event)
    rows = [change.new for change in workspace.changes() if change.table == "Task" and change.new is not None]
    return frozenset(str(row["name"]) for row in rows if row.get("status") in _OPEN)


def _result(journal: Journal, end: Offset, *, is_new: bool, began: float) -> CompactionResult:
    """Return the result for a baseline that ends, or would end, at a point."""
    baseline, reached = journal.baseline, end.chain.seq
    is_there = baseline is not None and baseline.seq == reached
    present, archived = (
        sum(path.stat().st_size for path in files_in(place)) for place in (journal.folder, journal.folder / ARCHIVE)
    )
    return CompactionResult(
        seq=reached,
        until=end.chain.timestamp or None,
        is_new=is_new,
        rows=baseline.rows if baseline and is_there else 0,
        baseline_bytes=baseline.size_bytes if baseline and is_there else 0,
        archived_segments=0,
        events_left=journal.tail.chain.seq - reached,
        journal_bytes=present,
        archive_bytes=archived,
        seconds=round(time.perf_counter() - began, 3),
    )


@dataclass(slots=True)
class RetentionPlan:
    """What a retention condenses.

    Attributes
    ----------
    segments : dict of str to Extent
        All segments that are old enough, with their contents as they were verified.
    through, until : int, str
        The last event in them, and when it was recorded.
    gone : set of str
        The memories that did not exist any more at that event, and have not been restored since.
    fresh : set of str
        Those of them of which these segments still have words.
    changing : list of str
        The segments that are to be written: those with signatures, and those that name a memory of `fresh`.
    is_done : bool
        Whether all of it was carried out before, to its end.
    """

    segments: dict[str, Extent] = field(default_factory=dict)
    through: int = 0
    until: str = ""
    gone: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    changing: list[str] = field(default_factory=list)
    is_done: bool = True

    @property
    def done(self) -> Done:
        """What the proof of the condensed segments notes when it has been carried out."""
        return Done(self.through, hashlib.sha256(" ".join(sorted(self.gone)).encode()).hexdigest())


def retention_plan(
    journal: Journal, days: int, now: str, *, before: str, open_tasks: Collection[str], progress: Progress | None = None
) -> RetentionPlan:
    """Verify every event, and return what a retention of so many days condenses now: 40 seconds for a million events.

    Parameters
    ----------
    before : str
        The segment in which the baseline ends: only those before it are condensed.
    open_tasks : collection of str
        The tasks whose memories keep their words: those that are neither closed nor archived.
    progress : callable, optional
        Called with (done, total) events.

    Raises
    ------
    JournalError
        An event is not what was signed. Nothing is changed.
    """
    plan, limit = RetentionPlan(), _days_before(now, days)
    memories, restored, is_over = _Memories(), set[str](), False
    signed, naming = set[str](), dict[str, set[str]]()
    by_segment = groupby(journal.replay(journal.start), key=lambda commit: commit.after.position.segment)
    for name, commits in by_segment:
        changes, digest, end, is_unsigned_ = list[_Change](), JournalDigest(), journal.start.chain, False
        for commit in commits:
            changes += [one for event in commit.events for one in _changes_in(event)]
            digest.add(name, commit.data)
            end, is_unsigned_ = commit.after.chain, is_unsigned(commit.data[:BEGINNING_BYTES])
            if progress:
                progress(end.seq, journal.tail.chain.seq)
        is_over = is_over or not (name < before and end.timestamp < limit)
        if is_over:
            restored |= {one.id for one in changes if one.exists}
            continue
        memories.take(changes)
        plan.segments[name] = digest.extents()[name]
        plan.through, plan.until = end.seq, end.timestamp
        naming[name] = {one.id for one in changes}
        if not is_unsigned_:
            signed.add(name)
    plan.gone = {one for one in memories.gone(open_tasks) if one not in restored}
    plan.fresh = plan.gone & memories.worded
    plan.changing = [name for name in plan.segments if name in signed or not plan.fresh.isdisjoint(naming[name])]
    plan.is_done = not plan.segments or (not plan.changing and journal.condensed.is_done(plan.done))
    return plan


def retain(journal: Journal, plan: RetentionPlan, days: int, now: str) -> list[str]:
    """Carry out a plan, and return the names of the segments that were written. Needs the writer lock.

    When the segments are written, the vectors of the memories whose words went are zeroed, and views of the past are removed, which may
    show them. A kill leaves each segment whole; the next call does all of it again.

    Raises
    ------
    JournalError
        A segment is no longer what was verified.
    StorageError
        The system refuses; the next call continues.
    """
    if plan.is_done:
        return []
    if plan.changing:
        record = ArchiveCondensed(
            through=plan.through,
            until=plan.until,
            segments=len(plan.segments),
            memories=len(plan.fresh),
            retention_days=days,
            condensed_at=now,
            condensed_by=f"memgraph {release()}",
        )
        journal.append([CommitDraft("system", [record], actor="user")], now)
    written = condense(journal, plan.segments, plan.gone.__contains__)
    journal.closed.name_again(plan.segments, journal.signing_key, journal.ring.find)
    _zero_unnamed(journal)
    if _remove_copies(journal.folder):
        journal.condensed.finish(plan.done, [journal.signing_key])
    return written


def _remove_copies(folder: Path) -> bool:
    """Remove files that may have the words, too; return whether all are gone: views of the past that are in use stay.

    Views of agents never have the words.

    Raises
    ------
    StorageError
        The system refuses.
    """
    remove_shadowed(folder)
    path = folder
    try:
        for path in [one for place in (folder, folder / ARCHIVE) for one in place.glob(".*.jsonl*.tmp")]:
            path.unlink(missing_ok=True)  # a killed compression has left it
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}; the next compaction continues", path=path) from None
    return remove_unused_views(folder.parent / "past")


def _days_before(now: str, days: int) -> str:
    try:
        return to_iso(from_iso(now) - timedelta(days=days))
    except OverflowError:
        return "0001-01-01T00:00:00.000Z"


class _Change(NamedTuple):
    """What an event says of a memory: whether it exists from then on (None: as before), and whether the event has words of it."""

    id: str
    exists: bool | None
    has_words: bool = False
    task_id: str | None = None


class _Memories:
    """The memories of the segments so far.

    Attributes
    ----------
    worded : set of str
        Those of which some event has words.
    """

    def __init__(self) -> None:
        self._exists: dict[str, bool] = {}
        self._tasks: dict[str, str] = {}
        self.worded: set[str] = set()

    def take(self, changes: Collection[_Change]) -> None:
        for one in changes:
            if one.exists is not None:
                self._exists[one.id] = one.exists
            if one.has_words:
                self.worded.add(one.id)
            if one.task_id is not None:
                self._tasks[one.id] = one.task_id

    def gone(self, open_tasks: Collection[str]) -> Iterator[str]:
        """Yield the memories that do not exist any more, but for those of some tasks."""
        for memory_id, exists in self._exists.items():
            if not exists and self._tasks.get(memory_id) not in open_tasks:
                yield memory_id


def _changes_in(event: Event) -> Iterator[_Change]:
    payload, content = event.payload, event.content
    if isinstance(payload, MemoryAdded | MemoryUndeleted):
        yield _Change(payload.memory.id, True, has_words(content), payload.memory.task_id)
    elif isinstance(payload, Revision):
        yield _Change(payload.id, None, has_words(content))
    elif isinstance(payload, MemoryReembedded):
        yield from (_Change(one.id, None, has_words=True) for one in payload.vectors)
    else:
        yield from (_Change(one, False) for one in payload.removed_ids())


def _zero_unnamed(journal: Journal) -> None:
    """Zero the vectors that no event names any more."""
    named = NamedRows.of_lines(journal.lines())
    for model, count in journal.named.rows.items():
        file = journal.vectors(model, journal.named.dimension_of(model) or 0)
        if file.dimension:
            rows = [row for row in range(min(count, file.available())) if not named.is_used(model, row)]
            zero_rows(file, [row for row in rows if any(file.stored(row))])
