"""Compacts a journal: its state at a commit becomes a signed baseline, and the segments before it are archived."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import date, datetime

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.errors import InvalidInputError, StorageError
from memgraph.fold import fold
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.baseline.archive import complete
from memgraph.journal.closed.files import ARCHIVE, files_in, name_of
from memgraph.journal.journal import Journal
from memgraph.journal.purge.intent import check_no_purge
from memgraph.journal.replay import Offset
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, checked
from memgraph.model.results.maintenance import CompactionResult
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.compaction.retention import RetentionPlan, retain, retention_plan
from memgraph.store.compaction.state import State, adopt, baseline_of
from memgraph.store.opening import open_store_journal, utc_now
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
        check_no_purge(journal.folder, journal.purged, after=journal.tail.chain.seq)
        open_tasks = _open_tasks(journal) if closed_tasks or days else frozenset()
        state = _state_before(journal, limit, open_tasks if closed_tasks else frozenset(), progress)
        present, is_new = journal.baseline, _is_new(journal, state)
        end = state.end if is_new or present is None else present.offset
        plan = _retention(journal, end, days, now(), open_tasks, progress)  # verifies before anything is changed
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
    check_no_purge(journal.folder, journal.purged, after=journal.tail.chain.seq)
    open_tasks = _open_tasks(journal) if closed_tasks or days else frozenset()
    state = _state_before(journal, limit, open_tasks if closed_tasks else frozenset(), progress)
    is_new, present = _is_new(journal, state), journal.baseline
    end = state.end if is_new or present is None else present.offset
    plan = _retention(journal, end, days, now(), open_tasks, progress)
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


def _is_new(journal: Journal, state: State) -> bool:
    return state.end.chain.seq > (journal.baseline.seq if journal.baseline else 0)


def _retention(
    journal: Journal, end: Offset, days: int, now: str, open_tasks: frozenset[str], progress: Progress | None
) -> RetentionPlan:
    if not days:
        return RetentionPlan()
    return retention_plan(journal, days, now, before=end.position.segment, open_tasks=open_tasks, progress=progress)


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
