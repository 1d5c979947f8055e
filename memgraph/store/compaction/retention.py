"""Retention: which archived segments are old enough to be condensed, and which memories' words go with that."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple

import orjson

from memgraph.journal.envelope import CommitDraft, is_unsigned
from memgraph.journal.journal import Journal
from memgraph.journal.purge.lines import is_purged
from memgraph.journal.purge.rewriting import zero_rows
from memgraph.journal.retention.condensing import condense
from memgraph.journal.search import is_of
from memgraph.journal.segments import Line
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.events.erasure import REMOVED_TEXT, ArchiveCondensed
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryUndeleted
from memgraph.model.events.store import StoreReset
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Progress
from memgraph.store.opening import release

_ADDS = (MemoryAdded.TYPE, MemoryUndeleted.TYPE)
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
        Those of them that still have their words.
    is_done : bool
        Whether all of it has been done before.
    """

    segments: list[str] = field(default_factory=list)
    through: int = 0
    until: str = ""
    gone: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    is_done: bool = True


def retention_plan(journal: Journal, days: int, now: str, *, before: str, open_tasks: Collection[str]) -> RetentionPlan:
    """Return what a retention of so many days condenses now. One pass over the journal's lines, which are not verified again.

    Parameters
    ----------
    before : str
        The segment in which the baseline ends: only those before it are condensed.
    open_tasks : collection of str
        The tasks whose memories keep their words: those that are neither closed nor archived.
    """
    plan, limit = RetentionPlan(), to_iso(from_iso(now) - timedelta(days=days))
    memories, restored, is_over = _Memories(), set[str](), False
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
        plan.is_done &= is_unsigned(last)
    plan.gone = {one for one in memories.gone(open_tasks) if one not in restored}
    plan.fresh = plan.gone - memories.reduced
    plan.is_done &= not plan.fresh
    return plan


def retain(journal: Journal, plan: RetentionPlan, days: int, now: str, progress: Progress | None) -> list[str]:
    """Carry out a plan, and return the names of the segments that were condensed now. Needs the writer lock. A kill leaves each segment whole.

    Zeroes the vectors of the memories whose words go, and removes views of the past, which may show them.

    Raises
    ------
    JournalError
        An archived event is not what was signed.
    StorageError
        The system refuses; the next call continues.
    """
    if plan.is_done:
        _name_again(journal, plan)
        return []
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
    _name_again(journal, plan)
    _zero_unnamed(journal)
    shutil.rmtree(journal.folder.parent / "past", ignore_errors=True)  # whoever has one open is asked to open it again
    return written


def _name_again(journal: Journal, plan: RetentionPlan) -> None:
    """Name the condensed segments in the manifest, also those that a killed run has left without a name."""
    journal.closed.name_again(plan.segments, journal.signing_key, journal.ring.find)


class _Change(NamedTuple):
    """A memory began to exist, or ceased to."""

    id: str
    exists: bool
    task_id: str | None = None
    is_reduced: bool = False


class _Memories:
    """The memories of the segments so far.

    Attributes
    ----------
    reduced : set of str
        Those whose words are gone.
    """

    def __init__(self) -> None:
        self._exists: dict[str, bool] = {}
        self._tasks: dict[str, str] = {}
        self.reduced: set[str] = set()

    def take(self, changes: Collection[_Change]) -> None:
        for one in changes:
            self._exists[one.id] = one.exists
            if one.exists:
                (self.reduced.add if one.is_reduced else self.reduced.discard)(one.id)
                if one.task_id is not None:
                    self._tasks[one.id] = one.task_id

    def gone(self, open_tasks: Collection[str]) -> Iterator[str]:
        """Yield the memories that do not exist any more, but for those of some tasks."""
        for memory_id, exists in self._exists.items():
            if not exists and self._tasks.get(memory_id) not in open_tasks:
                yield memory_id


def _changes_in(line: Line) -> Iterator[_Change]:
    is_added, is_removed = (any(is_of(line, one) for one in types) for types in (_ADDS, _REMOVES))
    if is_purged(line.data) or not (is_added or is_removed):
        return
    event = orjson.loads(line.data)
    type_, content = event["head"]["type"], event["payload"]
    if type_ in _ADDS:
        memory: dict[str, Any] = content["memory"]
        yield _Change(memory["id"], True, memory.get("task_id"), memory["content"] == REMOVED_TEXT)
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
