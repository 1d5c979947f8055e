"""Undoing: appends the inverse of a commit as a new commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memgraph.errors import InvalidInputError, NotFoundError, UndoError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.model.base import checked
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.payload import UPKEEP, Whole, WriteScope
from memgraph.model.events.registry import types_where
from memgraph.model.events.store import CommitUndone
from memgraph.model.events.tasks import TaskPayload
from memgraph.model.results.curation import ChangedMemory, FieldChange, UndoResult
from memgraph.ports import Row
from memgraph.store.commit.writer import Writer
from memgraph.store.editing.commits import RecordedCommit, Undoings, recorded_commits
from memgraph.store.editing.history import described
from memgraph.store.editing.inverse import Inverse, inverse
from memgraph.store.editing.lives import KEPT_FIELDS, LinkKey
from memgraph.store.query import Reader

REVERSIBLE = types_where(lambda policy: policy.irreversible is None)
_ACTS = types_where(lambda policy: policy.irreversible is None or policy.is_act)
_IN_GENERAL = {UPKEEP.irreversible, TaskPayload.POLICY.irreversible}
"""Reasons that say nothing about the one event."""
_MAINTAINED = KEPT_FIELDS | {"floor"}


class Undoing:
    """Undoes commits. An undoing is a commit as well: undoing it redoes the first one."""

    def __init__(self, journal: Journal, writer: Writer, reader: Reader, now: Callable[[], str]) -> None:
        self._journal = journal
        self._writer = writer
        self._reader = reader
        self._now = now

    def undo(self, event: int | None = None) -> UndoResult:
        """Undo the commit that an event belongs to; see `Curation.undo`."""
        if event is not None:
            checked(Whole, event, "event")
        with self._writer.exclusive():
            commit, undoings, first_of = self._chosen(event)
            events = commit.events(self._journal)
            self._check(commit, events, undoings, first_of)
            found = inverse(self._journal, self._writer, self._reader, events, self._now())
            scope, task_id = self._scope_of(commit, found, events)
            marker = CommitUndone(commit_id=commit.id, seq=commit.first)
            before = {one: self._reader.record("Memory", one) for one in [*found.removed, *found.revised]}
            written = self._writer.commit(scope, [*found.writes, marker], task_id=task_id, actor="user")
            after = {one: self._reader.record("Memory", one) for one in [*found.restored, *found.revised]}
        return UndoResult(
            undone=commit.first,
            undone_through=commit.last,
            event=written[0].seq,
            is_redo=commit.id in undoings.target_of,
            what=_done(events, found),
            memories=_described(found, before, after),
            links=[*_named("removed", found.unlinked), *_named("restored", found.linked)],
        )

    def _chosen(self, event: int | None) -> tuple[RecordedCommit, Undoings, dict[str, int]]:
        """Return the commit of an event, or the last one that is neither undone nor an undoing, if it is a user's.

        Raises
        ------
        UndoError
            The last one is not a user's, or is not reversible: what lies before it is not undone instead.
        """
        undoings, first_of = Undoings(), {}
        candidates: list[RecordedCommit] = []
        for commit in recorded_commits(self._journal):
            undoings.note(commit, self._journal)
            first_of[commit.id] = commit.first
            if event is None:
                if commit.types & _ACTS and CommitUndone.TYPE not in commit.types:
                    candidates.append(commit)
            elif commit.first <= event <= commit.last:
                candidates.append(commit)
        if event is None:
            candidates = [one for one in candidates if undoings.undone_by(one.id) is None]
            of_user = [one for one in candidates if one.actor == "user" and one.types <= REVERSIBLE]
            if not of_user:
                problem = "no change by a user is left to undo; `memgraph history ID` lists the events of a memory"
                raise InvalidInputError(problem, field="event")
            last = next(one for one in reversed(candidates) if not self._is_upkeep(one))
            if last != of_user[-1]:
                raise self._passing_over(last, of_user[-1])
            candidates = of_user
        elif not candidates:
            raise NotFoundError("event", str(event), listed_by="memgraph history ID")
        return candidates[-1], undoings, first_of

    def _is_upkeep(self, commit: RecordedCommit) -> bool:
        """Return whether a commit changed only what the store maintains by itself, such as vectors."""
        if commit.actor != "system" or commit.types != {MemoryRevised.TYPE}:
            return False
        contents = [event.content for event in commit.events(self._journal)]
        return all({*one.get("changed", ()), *one.get("cleared", ())} <= _MAINTAINED for one in contents)

    def _passing_over(self, last: RecordedCommit, of_user: RecordedCommit) -> UndoError:
        """Return the error for a last change that is not undone without its number."""
        (event, *_) = last.events(self._journal)
        is_reversible = last.types <= REVERSIBLE
        why = "is not by the user" if is_reversible else "is not reversible"
        reason = event.payload.POLICY.irreversible
        why += f" ({reason})" if reason and reason not in _IN_GENERAL else ""
        back = f"`memgraph undo {last.first}` undoes it, " if is_reversible else ""
        problem = (
            f"the last change, event {last.first} ({event.type} by the {last.actor}, {event.timestamp[:16].replace('T', ' ')}), "
            f"{why}: {back}`memgraph undo {of_user.first}` undoes the last change by the user"
        )
        return UndoError(problem, seq=of_user.first, blocked_by=[last.first])

    def _check(
        self, commit: RecordedCommit, events: Sequence[Event], undoings: Undoings, first_of: dict[str, int]
    ) -> None:
        other = next((one for one in events if one.type not in REVERSIBLE | {CommitUndone.TYPE}), None)
        if other is not None:
            which = "" if len(events) == 1 else f", which belongs to the same commit as event {other.seq},"
            raise UndoError(
                f"{other.type} is not reversible{which}: {other.payload.POLICY.irreversible}", seq=commit.first
            )
        if commit.actor == "system" and "memory.undeleted" in commit.types:
            raise UndoError("it restates a memory whose history a purge removed", seq=commit.first)
        if (by := undoings.undone_by(commit.id)) is not None:
            problem = f"it is undone already; `memgraph undo {first_of[by]}` redoes it"
            raise UndoError(problem, seq=commit.first, blocked_by=[first_of[by]])

    def _scope_of(
        self, commit: RecordedCommit, found: Inverse, events: Sequence[Event]
    ) -> tuple[WriteScope, str | None]:
        """Return the write scope of an undoing: that of the commit, or of its memories if that was the store's upkeep."""
        if events[0].write_scope != "system":
            return events[0].write_scope, events[0].task_id
        rows = [self._reader.record("Memory", one) for one in [*found.removed, *found.revised]]
        tasks = {row.get("task_id") for row in rows if row is not None}
        memories = [getattr(write, "memory", None) for write in found.writes]
        tasks |= {memory.task_id for memory in memories if memory is not None}
        if len(tasks) > 1:
            raise UndoError("its memories belong to several tasks; change them one by one", seq=commit.first)
        task_id = next(iter(tasks), None)
        return ("task", task_id) if task_id else ("global", None)


def _done(events: Sequence[Event], found: Inverse) -> list[str]:
    """Return what the commit of these events had done, a line for each memory."""
    said: dict[str, str] = {}
    for event in events:
        for one in event.payload.memory_ids()[:1]:
            changes = {name: (old, new) for name, (new, old) in found.revised.get(one, {}).items()}
            if one not in said and (line := described(event, one, changes)) is not None:
                said[one] = line
    return list(said.values())


def _described(found: Inverse, before: dict[str, Row | None], after: dict[str, Row | None]) -> list[ChangedMemory]:
    def content(rows: dict[str, Row | None], memory_id: str) -> str:
        return str((rows[memory_id] or {}).get("content", ""))

    return [
        *(ChangedMemory(id=one, content=content(before, one), change="removed") for one in found.removed),
        *(ChangedMemory(id=one, content=content(after, one), change="restored") for one in found.restored),
        *(
            ChangedMemory(id=one, content=content(after, one), fields=field_changes(changes))
            for one, changes in found.revised.items()
        ),
    ]


def field_changes(changes: dict[str, tuple[object, object]]) -> list[FieldChange]:
    """Return changes of fields in the form of a result."""
    return [FieldChange(field=name, old=old, new=new) for name, (old, new) in changes.items()]


def _named(done: str, keys: Iterable[LinkKey]) -> list[str]:
    return [f"{done}: {ends[0]} {relation} {ends[1]}" for relation, ends in keys]
