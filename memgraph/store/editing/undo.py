"""Undoing: appends the inverse of a commit as a new commit: the events that restore what its memories and links were before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memgraph.errors import InvalidInputError, NotFoundError, UndoError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.model.base import checked
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked, MemoryRevised, MemoryUnlinked, RecordPatch
from memgraph.model.events.payload import UPKEEP, Payload, Whole, WriteScope
from memgraph.model.events.records import UNDONE
from memgraph.model.events.registry import types_where
from memgraph.model.events.store import CommitUndone
from memgraph.model.events.tasks import TaskPayload
from memgraph.model.memory import MemoryRecord, Vector, parse_memory
from memgraph.model.results.curation import ChangedMemory, UndoResult
from memgraph.ports import Row
from memgraph.store.commit.records import Write, has_vector, with_vector
from memgraph.store.commit.writer import Writer
from memgraph.store.deletions import undeletions
from memgraph.store.editing.history import (
    KEPT_FIELDS,
    LinkKey,
    Lives,
    RecordedCommit,
    Undoings,
    described,
    differences,
    field_changes,
    in_order,
    link_keys,
    recorded_commits,
)
from memgraph.store.query import Reader, StorePart

REVERSIBLE = types_where(lambda policy: policy.irreversible is None)
_ACTS = types_where(lambda policy: policy.irreversible is None or policy.is_act)
_IN_GENERAL = {UPKEEP.irreversible, TaskPayload.POLICY.irreversible}
"""Reasons that say nothing about the one event."""
_MAINTAINED = KEPT_FIELDS | {"floor"}
_IF_UNTOUCHED = ("relevance_anchor", "relevance_at")
_SHOWN = 5


class Undoing(StorePart):
    """Undoes commits. An undoing is a commit as well: undoing it redoes the first one."""

    def undo(self, event: int | None = None) -> UndoResult:
        """Undo the commit that an event belongs to; see `Curation.undo`."""
        if event is not None:
            checked(Whole, event, "event")
        with self._writer.exclusive():
            commit, undoings = self._chosen(event)
            events = commit.events(self._journal)
            self._check(commit, events, undoings)
            found = _Inversion(self._journal, self._writer, self._reader, events, self._now()).result()
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

    def _chosen(self, event: int | None) -> tuple[RecordedCommit, Undoings]:
        """Return the commit of an event, or the last one that is neither undone nor an undoing, if it is a user's and reversible.

        Otherwise it raises `UndoError`: what lies before that one is not undone instead.
        """
        undoings = Undoings()
        candidates: list[RecordedCommit] = []
        for commit in recorded_commits(self._journal):
            undoings.note(commit, self._journal)
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
        return candidates[-1], undoings

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
        return UndoError(problem, seq=of_user.first, blocked_by=[last.first], what="nothing was undone")

    def _check(self, commit: RecordedCommit, events: Sequence[Event], undoings: Undoings) -> None:
        other = next((one for one in events if one.type not in REVERSIBLE | {CommitUndone.TYPE}), None)
        if other is not None:
            which = "" if len(events) == 1 else f", which belongs to the same commit as event {other.seq},"
            raise UndoError(
                f"{other.type} is not reversible{which}: {other.payload.POLICY.irreversible}", seq=commit.first
            )
        if commit.actor == "system" and "memory.undeleted" in commit.types:
            raise UndoError("it restates a memory whose history a purge removed", seq=commit.first)
        if (by := undoings.undone_by(commit.id)) is not None:
            event = undoings.first_of[by]
            problem = f"it is undone already; `memgraph undo {event}` redoes it"
            raise UndoError(problem, seq=commit.first, blocked_by=[event])

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


def _named(done: str, keys: Iterable[LinkKey]) -> list[str]:
    return [f"{done}: {ends[0]} {relation} {ends[1]}" for relation, ends in keys]


@dataclass(slots=True)
class Inverse:
    """The events that undo a commit, and the memories and links that they delete, restore or change."""

    writes: list[Write] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    revised: dict[str, dict[str, tuple[Any, Any]]] = field(default_factory=dict)
    """The fields of changed memories, with their values now and after the undoing."""
    unlinked: list[LinkKey] = field(default_factory=list)
    linked: list[LinkKey] = field(default_factory=list)


class _Inversion:
    """Finds the inverse of a commit; requires the writer lock. Two passes over the journal."""

    def __init__(self, journal: Journal, writer: Writer, reader: Reader, events: Sequence[Event], now: str) -> None:
        self._journal = journal
        self._writer = writer
        self._reader = reader
        self._events = events
        self._now = now
        self._found = Inverse()
        ids = dict.fromkeys(one for event in events for one in event.payload.memory_ids())
        self._keys = dict.fromkeys(key for event in events for key in link_keys(event))
        lives, first, last = Lives(ids), events[0].seq, events[-1].seq
        everything = in_order(journal.histories(list(ids)))
        for event in everything:
            if event.seq < first:
                lives.fold(event)
        self._before = lives.rows()
        self._links_before = {key: lives.link(key) for key in self._keys}
        for event in everything:
            if first <= event.seq <= last:
                lives.fold(event)
        self._after = lives.rows()
        self._links_after = {key: lives.link(key) for key in self._keys}
        self._lives = lives
        self._later = [event for event in everything if event.seq > last]
        self._current = {one: reader.record("Memory", one) for one in ids}

    def result(self) -> Inverse:
        """Return the inverse, or raise `UndoError`: what the commit changed was changed again since, or it changed nothing."""
        self._refuse_if_blocked()
        found = self._found
        found.removed = [one for one, old in self._before.items() if old is None and self._after[one] is not None]
        found.restored = [one for one, old in self._before.items() if old is not None and self._after[one] is None]
        unlinking: list[Write] = list(self._unlinking())
        revising: list[Write] = list(self._revising())
        removing: list[Write] = [MemoryDeleted(id=one, reason=UNDONE) for one in reversed(found.removed)]
        restoring = list(self._restoring())
        linking = [one for one in self._linking() if one not in restoring]
        found.writes = [*unlinking, *revising, *removing, *restoring, *linking]
        if not found.writes:
            raise UndoError(
                "it changed nothing that can be restored; it set what was set already, or stored a vector",
                seq=self._events[0].seq,
            )
        return found

    def _unlinking(self) -> Iterator[MemoryUnlinked]:
        for (relation, ends), old in self._links_before.items():
            if old is None and self._links_after[relation, ends] is not None and not self._goes(ends):
                self._found.unlinked.append((relation, ends))
                yield MemoryUnlinked.parse({"source_id": ends[0], "relation": relation, "target_id": ends[1]})

    def _linking(self) -> Iterator[MemoryLinked]:
        for (relation, ends), old in self._links_before.items():
            if old is not None and old != self._links_after[relation, ends] and not self._goes(ends):
                self._found.linked.append((relation, ends))
                yield MemoryLinked.parse({"source_id": ends[0], "relation": relation, "target_id": ends[1], **old})

    def _goes(self, ends: tuple[str, str]) -> bool:
        return any(end in self._found.removed for end in ends)

    def _restoring(self) -> Iterator[Payload]:
        def is_live(memory_id: str) -> bool:
            return self._reader.record("Memory", memory_id) is not None

        for undeleted, links in undeletions(self._journal, self._found.restored, is_live, model=self._writer.model):
            yield undeleted
            yield from links

    def _revising(self) -> Iterator[Write]:
        for memory_id, old in self._before.items():
            new, current = self._after[memory_id], self._current[memory_id]
            if old is None or new is None or current is None or not (changes := differences(new, old)):
                continue
            self._found.revised[memory_id] = changes
            target = {name: value for name, (_, value) in changes.items()}
            target |= {name: old.get(name) for name in _IF_UNTOUCHED if current.get(name) == new.get(name)}
            target["updated_at"] = (
                old["updated_at"] if current.get("updated_at") == new.get("updated_at") else self._now
            )
            vector = None
            if "content" in changes and (vector := self._vector(old)) is not None:
                target["embedding_model"] = self._writer.model.name
                target["embedded_at"] = old.get("embedded_at", self._now)
            changed = {
                name: value for name, value in target.items() if value is not None and current.get(name) != value
            }
            cleared = [
                name
                for name in MemoryRecord.model_fields
                if name in target and target[name] is None and name in current
            ]
            payload = MemoryRevised(id=memory_id, changed=RecordPatch.parse(changed), cleared=cleared)
            yield with_vector(payload, vector)

    def _vector(self, row: Row) -> Vector | None:
        """Return the vector of a memory's former text: the stored one, if it is of the store's model and sound, else a new one."""
        model = self._writer.model
        if has_vector(row, model.name):
            file = self._journal.vectors(*model)
            if file.holds(row["vector_row"], row["vector_sha256"]):
                return np.frombuffer(file.stored(row["vector_row"]), dtype="<f4").astype(np.float32)
        return self._writer.vectors_for([parse_memory({"type": row["type"], "content": row["content"]})])[0]

    def _refuse_if_blocked(self) -> None:
        """Refuse if what the commit left is no longer so, and name the events that changed it."""
        fields = {one: self._fields_in_the_way(one) for one in self._before}
        links = {key for key, row in self._links_after.items() if self._is_other(key, row)}
        links |= self._links_since()
        watched = {one for one, names in fields.items() if names} | {end for _, ends in links for end in ends}
        if not watched:
            return
        blocking: dict[int, str] = {}
        for event in self._later:
            before = self._lives.rows()
            self._lives.fold(event)
            after = self._lives.rows()
            here = watched & before.keys()
            comes_or_goes = any((before[one] is None) != (after[one] is None) for one in here)
            changed = {name for one in here for name in fields[one] & differences(before[one], after[one]).keys()}
            if comes_or_goes or changed or links & set(link_keys(event)):
                names = [] if comes_or_goes else sorted(changed)
                blocking[event.seq] = f"event {event.seq} ({', '.join([event.type, *names])})"
        shown = list(blocking.values())[-_SHOWN:]
        more = f"{len(blocking) - _SHOWN} earlier events, " if len(blocking) > _SHOWN else ""
        said = f"changed since by {more}{', '.join(shown)}; undo that first" if shown else "no longer as it left it"
        raise UndoError(f"what it changed was {said}", seq=self._events[0].seq, blocked_by=list(blocking))

    def _links_since(self) -> set[LinkKey]:
        """Return the existing links that later events made at memories that the commit added: they would be lost."""
        added = {one for one, old in self._before.items() if old is None and self._after[one] is not None}
        since = {key for event in self._later for key in link_keys(event) if added & set(key[1])}
        return {key for key in since if key not in self._links_after and self._reader.record(*key) is not None}

    def _fields_in_the_way(self, memory_id: str) -> set[str]:
        """Return the fields that the commit changed and that no longer have its values."""
        old, new, current = self._before[memory_id], self._after[memory_id], self._current[memory_id]
        since = set(differences(new, current))
        return since if old is None or new is None or current is None else since & set(differences(old, new))

    def _is_other(self, key: LinkKey, row: Row | None) -> bool:
        """Return whether a link, or a memory at one of its ends, is no longer as the commit left it."""
        if any((self._current[end] is None) != (self._after[end] is None) for end in key[1]):
            return True
        return self._reader.record(*key) != row
