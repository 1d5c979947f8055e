"""Compacts a journal: its state at a commit becomes a signed baseline, and the events before it are archived, compressed.

Retention is a part of it: memories that were deleted longer ago than the setting says are purged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.errors import InvalidInputError
from memgraph.fold import fold
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.baseline import archive_row
from memgraph.journal.envelope import Chain, Event, Line
from memgraph.journal.journal import Journal
from memgraph.journal.opening import id_of
from memgraph.journal.sql import Transaction
from memgraph.journal.vectors import NamedVectors
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, checked
from memgraph.model.events.memories import MemoryAdded, MemoryUndeleted
from memgraph.model.results.maintenance import CompactionResult
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.baselines import State, adopt
from memgraph.store.opening import open_store_journal, utc_now
from memgraph.store.projection.replayed_rows import beginning
from memgraph.store.store import AgentMemoryStore

logger = logger_of(__name__)

When = str | date | datetime
_OPEN = ("active", "suspended")
"""States of tasks whose events stay after the baseline if that is wanted, and whose memories keep their words."""
_PART = 2_000
"""Events of one part of the archive, at least: it ends with a commit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compaction does: the state that becomes the baseline, unless the present one is as new, and the memories that are purged."""

    state: State
    is_new: bool
    end: Chain
    deleted: tuple[str, ...]


def compact(
    config: AgentMemoryConfig | None = None,
    *,
    before: When | None = None,
    closed_tasks: bool = False,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> CompactionResult:
    """Make a signed baseline of a store's state before a moment, and archive the events that it stands for.

    From then on a rebuild of what is made of the journal costs what the events after the baseline cost. The archive keeps the history:
    everything that reads it reads archive and journal as before. Others may use the store meanwhile, but not write to it. With the setting
    ``archive_retention_days``, memories that were deleted longer ago are purged. There is no undo of that.

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
    try:
        archived = 0
        with timed(logger, logging.INFO, "compacted the journal") as counts, journal.locked():
            plan = plan_of(journal, limit, days, now(), closed_tasks, progress)
            if plan.is_new:
                with journal.committing() as tx:
                    adopt(journal, tx, plan.state, now())
                    archived = _archive(journal, tx)
                journal.database.shrink()
            counts["events"] = archived
        removed = _purged(config, keys, clock, plan.deleted) if plan.deleted else 0
        if removed:
            journal.refresh()
        done = _result(journal, plan.end, is_new=plan.is_new, began=began)
        return done.model_copy(update={"archived_events": archived, "removed_texts": removed})
    finally:
        journal.close()


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
    try:
        plan = plan_of(journal, limit, days, now(), closed_tasks, progress)
        archived = plan.end.seq - journal.archived_until() if plan.is_new else 0
        updates = {"archived_events": archived, "removed_texts": len(plan.deleted), "dry_run": True}
        return _result(journal, plan.end, is_new=plan.is_new, began=began).model_copy(update=updates)
    finally:
        journal.close()


def plan_of(
    journal: Journal, limit: str, days: int, now: str, closed_tasks: bool, progress: Progress | None = None
) -> Plan:
    """Return what a compaction before a moment does. Reads the journal from its baseline and, for a retention, from its first event."""
    open_tasks = _open_tasks(journal) if closed_tasks or days else frozenset()
    state = _state_before(journal, limit, open_tasks if closed_tasks else frozenset(), progress)
    present = journal.baseline
    is_new = state.end.seq > (present.seq if present else 0) or (
        present is not None and present.schema_version != SCHEMA_VERSION
    )
    end = state.end if is_new or present is None else present.chain
    deleted = tuple(_deleted_before(journal, _days_before(now, days), open_tasks)) if days else ()
    return Plan(state, is_new, end, deleted)


def _archive(journal: Journal, tx: Transaction) -> int:
    """Move the events before the baseline into the archive; return their number."""
    archived, moved = journal.archived_until(), 0
    for part in _parts(journal.every_line(archived, until=journal.base.seq)):
        tx.run("put_archive", journal.database.tenant, *archive_row(part))
        moved += len(part)
    tx.run("remove_events_until", journal.database.tenant, journal.base.seq)
    return moved


def _parts(lines: Iterable[Line]) -> Iterator[list[Line]]:
    part: list[Line] = []
    for line in lines:
        part.append(line)
        if len(part) >= _PART and b'"last":true' in line.head:
            yield part
            part = []
    if part:
        yield part


def _purged(
    config: AgentMemoryConfig | None, keys: KeyProvider | None, clock: Clock | None, deleted: tuple[str, ...]
) -> int:
    """Purge deleted memories, but not what was derived from them; return how many had anything left."""
    from memgraph.embedding import NoEmbedder

    with AgentMemoryStore(config, keys=keys, clock=clock, embedder=NoEmbedder()) as store:  # a purge embeds nothing
        return store._expire(deleted)  # noqa: SLF001 - for compactions only


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
    id_of(config.home, config.server)  # creates nothing
    return open_store_journal(config, keys, now, with_expired_keys=True), limit, config.archive_retention_days


def _moment(before: When) -> str:
    try:
        return to_iso(before)
    except ValueError:
        problem = "is not a date: give a date such as 2024-06-01, or an ISO 8601 time"
        raise InvalidInputError(problem, field="before", value=before) from None


def _state_before(journal: Journal, limit: str, open_tasks: frozenset[str], progress: Progress | None) -> State:
    """Return the state after the last commit before a moment, and before any event of these tasks; at least the baseline's."""
    workspace, start = beginning(journal)
    named = journal.baseline.named if journal.baseline and start.seq else NamedVectors()
    state = State(workspace, start, named)
    least = journal.baseline.seq if journal.baseline else 0
    for commit in journal.replay(start):
        is_free = commit.after.timestamp < limit and not any(one.task_id in open_tasks for one in commit.events)
        if not is_free and commit.after.seq > least:
            break
        state.take(commit)
        if progress:
            progress(commit.after.seq, journal.tail.seq)
    return state


def _open_tasks(journal: Journal) -> frozenset[str]:
    """Return the names of the tasks that are neither closed nor archived."""
    workspace, start = beginning(journal)
    for commit in journal.replay(start):
        for event in commit.events:
            fold(workspace, event)
    rows = [change.new for change in workspace.changes() if change.table == "Task" and change.new is not None]
    return frozenset(str(row["name"]) for row in rows if row.get("status") in _OPEN)


def _deleted_before(journal: Journal, limit: str, open_tasks: frozenset[str]) -> list[str]:
    """Return the memories that were deleted before a moment, do not exist now, and of which the journal still has words."""
    gone: dict[str, bool] = {}
    tasks: dict[str, str] = {}
    for event in journal.events_after(0):
        payload = event.payload
        if isinstance(payload, MemoryAdded | MemoryUndeleted):
            gone.pop(payload.memory.id, None)
            if payload.memory.task_id is not None:
                tasks[payload.memory.id] = payload.memory.task_id
        else:
            gone |= dict.fromkeys(_removed(event), event.timestamp < limit)
    purged = {one for _, purge in journal.purges() for one in purge.purged_ids()}
    return [one for one, is_old in gone.items() if is_old and one not in purged and tasks.get(one) not in open_tasks]


def _removed(event: Event) -> Iterable[str]:
    return event.payload.removed_ids()


def _days_before(now: str, days: int) -> str:
    try:
        return to_iso(from_iso(now) - timedelta(days=days))
    except OverflowError:
        return "0001-01-01T00:00:00.000Z"


def _result(journal: Journal, end: Chain, *, is_new: bool, began: float) -> CompactionResult:
    """Return the result for a baseline that ends, or would end, at a point."""
    baseline = journal.baseline
    is_there = baseline is not None and baseline.seq == end.seq
    sizes = journal.sizes()
    return CompactionResult(
        seq=end.seq,
        until=end.timestamp or None,
        is_new=is_new,
        rows=baseline.rows if baseline and is_there else 0,
        baseline_bytes=sizes.baseline if is_there else 0,
        archived_events=0,
        events_left=journal.tail.seq - end.seq,
        journal_bytes=sizes.events,
        archive_bytes=sizes.archive,
        seconds=round(time.perf_counter() - began, 3),
    )
