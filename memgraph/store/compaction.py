"""Compacts a journal: its state at a commit becomes a signed baseline, and the events before it are archived, compressed.

Retention is a part of it: memories that were deleted longer ago than the setting says are purged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import date, datetime, timedelta

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.errors import InvalidInputError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.baseline import archive_row
from memgraph.journal.envelope import Line
from memgraph.journal.journal import Journal
from memgraph.journal.opening import id_of
from memgraph.journal.vectors import NamedVectors
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, checked
from memgraph.model.events.memories import MemoryAdded, MemoryUndeleted
from memgraph.model.results.maintenance import CompactionResult
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.opening import open_store_journal, release, times_of
from memgraph.store.replayed import State, adopt, beginning, replayed
from memgraph.store.store import AgentMemoryStore

logger = logger_of(__name__)

When = str | date | datetime
_OPEN = ("active", "suspended")
"""States of tasks whose events stay after the baseline if that is wanted, and whose memories keep their words."""
_PART = 2_000
"""Events of one part of the archive, at least: it ends with a commit."""


def compact(
    config: AgentMemoryConfig | None = None,
    *,
    before: When | None = None,
    closed_tasks: bool = False,
    dry_run: bool = False,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> CompactionResult:
    """Make a signed baseline of a store's state before a moment, archive the events that it stands for, and purge what was deleted long ago.

    The baseline is of the last commit recorded `before` a moment: a day means its beginning, in UTC; by default this month's. With `closed_tasks` it
    ends before the first event of an open task. A purge after ``archive_retention_days`` has no undo; a `dry_run` changes nothing.
    """
    checked(Callback, progress, "progress")
    checked(bool, closed_tasks, "closed_tasks")
    began, config, now = time.perf_counter(), config or load_config(), times_of(clock)
    limit, days = _moment(now()[:7] + "-01" if before is None else before), config.archive_retention_days
    id_of(config.home, config.server)  # creates nothing
    journal = open_store_journal(config, keys, now, with_expired_keys=True)
    try:
        with nullcontext() if dry_run else journal.locked():
            open_tasks = _open_tasks(journal) if closed_tasks or days else frozenset()
            state = _state_before(journal, limit, open_tasks if closed_tasks else frozenset(), progress)
            present = journal.baseline
            is_new = state.end.seq > (present.seq if present else 0) or (
                present is not None and present.schema_version != SCHEMA_VERSION
            )
            end = state.end if is_new or present is None else present.chain
            deleted = _deleted_before(journal, _days_before(now(), days), open_tasks) if days else []
            archived = end.seq - journal.archived_until() if is_new else 0
            if is_new and not dry_run:
                with timed(logger, logging.INFO, "compacted the journal") as counts:
                    with journal.committing() as tx:
                        adopt(journal, tx, state, now(), f"memgraph {release()}")
                        for part in _parts(journal.every_line(journal.archived_until(), until=journal.base.seq)):
                            tx.run("put_archive", journal.database.tenant, *archive_row(part))
                        tx.run("remove_events_until", journal.database.tenant, journal.base.seq)
                    journal.database.shrink()
                    counts["events"] = archived
        removed = len(deleted)
        if deleted and not dry_run:
            removed = _purged(config, keys, clock, deleted)
            journal.refresh()
        baseline, sizes = journal.baseline, journal.sizes()
        is_there = baseline is not None and baseline.seq == end.seq
        return CompactionResult(
            seq=end.seq,
            until=end.timestamp or None,
            is_new=is_new,
            rows=baseline.rows if baseline and is_there else 0,
            baseline_bytes=sizes.baseline if is_there else 0,
            archived_events=archived,
            removed_texts=removed,
            events_left=journal.tail.seq - end.seq,
            journal_bytes=sizes.events,
            archive_bytes=sizes.archive,
            dry_run=dry_run,
            seconds=round(time.perf_counter() - began, 3),
        )
    finally:
        journal.close()


def _parts(lines: Iterable[Line]) -> Iterator[list[Line]]:
    part: list[Line] = []
    for line in lines:
        part.append(line)
        if len(part) >= _PART and b'"last":true' in line.head:
            yield part
            part = []
    if part:
        yield part


def _purged(config: AgentMemoryConfig, keys: KeyProvider | None, clock: Clock | None, deleted: Sequence[str]) -> int:
    """Purge deleted memories, but not what was derived from them; return how many had anything left."""
    from memgraph.embedding import NoEmbedder

    with AgentMemoryStore(config, keys=keys, clock=clock, embedder=NoEmbedder()) as store:  # a purge embeds nothing
        return store._expire(deleted)  # noqa: SLF001 - for compactions only


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
    rows = [one.new for one in replayed(journal, journal.tail.seq)[0] if one.table == "Task" and one.new is not None]
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
            gone |= dict.fromkeys(payload.removed_ids(), event.timestamp < limit)
    purged = {one for _, purge in journal.purges() for one in purge.purged_ids()}
    return [one for one, is_old in gone.items() if is_old and one not in purged and tasks.get(one) not in open_tasks]


def _days_before(now: str, days: int) -> str:
    try:
        return to_iso(from_iso(now) - timedelta(days=days))
    except OverflowError:
        return "0001-01-01T00:00:00.000Z"
