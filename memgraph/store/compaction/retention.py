"""Retention: which archived segments are old enough to be condensed, and which memories' words go with that."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memgraph.disk.files import clear
from memgraph.errors import StorageError
from memgraph.journal.closed.condensed import Done
from memgraph.journal.closed.files import ARCHIVE, remove_shadowed
from memgraph.journal.envelope import CommitDraft, is_unsigned
from memgraph.journal.journal import Journal
from memgraph.journal.purge.lines import is_purged
from memgraph.journal.purge.rewriting import zero_rows
from memgraph.journal.retention.condensing import condense
from memgraph.journal.retention.reduction import has_words
from memgraph.journal.search import is_of
from memgraph.journal.segments import Line
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.events.erasure import ArchiveCondensed
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.events.reembedding import MemoryReembedded
from memgraph.model.events.store import StoreReset
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Progress
from memgraph.store.opening import release

_STATES = (MemoryAdded.TYPE, MemoryUndeleted.TYPE, MemoryRevised.TYPE, MemoryMerged.TYPE)
_REMOVES = (MemoryDeleted.TYPE, StoreReset.TYPE)


@dataclass(slots=True)
class RetentionPlan:
    """What a retention condenses.

    Attributes
    ----------
    segments : list of str
        The names of all segments that are old enough.
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

    segments: list[str] = field(default_factory=list)
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


def retention_plan(journal: Journal, days: int, now: str, *, before: str, open_tasks: Collection[str]) -> RetentionPlan:
    """Return what a retention of so many days condenses now.

    One pass over the lines of the whole journal, which are not verified again: 20 seconds for a million events.

    Parameters
    ----------
    before : str
        The segment in which the baseline ends: only those before it are condensed.
    open_tasks : collection of str
        The tasks whose memories keep their words: those that are neither closed nor archived.
    """
    plan, limit = RetentionPlan(), to_iso(from_iso(now) - timedelta(days=days))
    memories, restored, is_over = _Memories(), set[str](), False
    signed, naming = set[str](), dict[str, set[str]]()
    for name, lines in groupby(journal.every_line(journal.start.position), key=lambda line: line.start.segment):
        changes, last = list[_Change](), b""
        for line in lines:
            changes += _changes_in(line)
            last = line.data
        head = orjson.loads(last)["head"]
        is_over = is_over or not (name < before and head["timestamp"] < limit)
        if is_over:
            restored |= {one.id for one in changes if one.exists}
            continue
        memories.take(changes)
        plan.segments.append(name)
        plan.through, plan.until = head["seq"], head["timestamp"]
        naming[name] = {one.id for one in changes}
        if not is_unsigned(last):
            signed.add(name)
    plan.gone = {one for one in memories.gone(open_tasks) if one not in restored}
    plan.fresh = plan.gone & memories.worded
    plan.changing = [name for name in plan.segments if name in signed or not plan.fresh.isdisjoint(naming[name])]
    plan.is_done = not plan.segments or (not plan.changing and journal.condensed.is_done(plan.done))
    return plan


def retain(journal: Journal, plan: RetentionPlan, days: int, now: str, progress: Progress | None) -> list[str]:
    """Carry out a plan, and return the names of the segments that were written. Needs the writer lock.

    Each archived event is verified before its segment is replaced: two minutes for a million events. Then the vectors of the memories whose
    words went are zeroed, and views of the past are removed, which may show them. A kill leaves each segment whole; the next call does all
    of it again.

    Raises
    ------
    JournalError
        An archived event is not what was signed.
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
    written = condense(journal, plan.segments, plan.gone.__contains__, progress)
    journal.closed.name_again(plan.segments, journal.signing_key, journal.ring.find)
    _zero_unnamed(journal)
    _remove_copies(journal.folder)
    journal.condensed.finish(plan.done, [journal.signing_key])
    return written


def _remove_copies(folder: Path) -> None:
    """Remove files that may have the words, too: views of the past, and what killed processes left. Agents' views never have them.

    Raises
    ------
    StorageError
        The system refuses.
    """
    remove_shadowed(folder)
    past, path = folder.parent / "past", folder
    views = past.iterdir() if past.is_dir() else ()
    try:
        for path in [*(folder / ARCHIVE).glob(".*.tmp"), *(one for one in views if one.name != "agents")]:
            clear(path)
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}; the next compaction continues", path=path) from None


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


def _changes_in(line: Line) -> Iterator[_Change]:
    if is_purged(line.data) or not any(is_of(line, one) for one in (*_STATES, *_REMOVES, MemoryReembedded.TYPE)):
        return
    event = orjson.loads(line.data)
    type_, content = event["head"]["type"], event["payload"]
    if type_ in (MemoryAdded.TYPE, MemoryUndeleted.TYPE):
        memory: dict[str, Any] = content["memory"]
        yield _Change(memory["id"], True, has_words(content), memory.get("task_id"))
    elif type_ in _STATES:
        yield _Change(content["id"], None, has_words(content))
    elif type_ == MemoryReembedded.TYPE:
        yield from (_Change(one["id"], None, has_words=True) for one in content.get("vectors", ()))
    elif type_ == MemoryDeleted.TYPE:
        yield _Change(content["id"], False)
    elif type_ == StoreReset.TYPE:
        yield from (_Change(one, False) for one in content.get("removed", ()))


def _zero_unnamed(journal: Journal) -> None:
    """Zero the vectors that no event names any more."""
    named = NamedRows.of_lines(journal.lines())
    for model, count in journal.named.rows.items():
        file = journal.vectors(model, journal.named.dimension_of(model) or 0)
        if file.dimension:
            rows = [row for row in range(min(count, file.available())) if not named.is_used(model, row)]
            zero_rows(file, [row for row in rows if any(file.stored(row))])
