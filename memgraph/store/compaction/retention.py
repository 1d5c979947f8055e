"""Retention: decides which archived segments are condensed and which memories lose their texts, and carries it out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from memgraph.disk.views import remove_unused_views
from memgraph.errors import StorageError
from memgraph.journal.closed.condensed import Done
from memgraph.journal.closed.digest import Extent, JournalDigest
from memgraph.journal.closed.files import ARCHIVE, remove_shadowed
from memgraph.journal.envelope import BEGINNING_BYTES, CommitDraft, Event, is_unsigned
from memgraph.journal.journal import Journal
from memgraph.journal.purge.rewriting import zero_rows
from memgraph.journal.retention.condensing import condense
from memgraph.journal.retention.reduction import has_words
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.events.erasure import ArchiveCondensed
from memgraph.model.events.memories import MemoryAdded, MemoryUndeleted, Revision
from memgraph.model.events.reembedding import MemoryReembedded
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Progress
from memgraph.store.opening import release


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
