"""What the journal says about single memories: their history, where they come from, and the inverse of a commit, which undoes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
import orjson

from memgraph.errors import InvalidInputError, NotFoundError, UndoError
from memgraph.fold.fold import OtherMemories, fold
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event, Line
from memgraph.journal.journal import Journal
from memgraph.model.base import checked
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    RecordPatch,
)
from memgraph.model.events.payload import UPKEEP, Payload, Whole, WriteScope
from memgraph.model.events.records import UNDONE, BuildConsolidated, OutcomeRecorded, RetrievalRecorded, SourceRead
from memgraph.model.events.registry import types_where
from memgraph.model.events.store import CommitUndone
from memgraph.model.events.tasks import TaskPayload
from memgraph.model.memory import (
    REASONS_OF,
    VECTOR_COLUMNS,
    MemoryRecord,
    Role,
    StoredMemory,
    Vector,
    fields_with,
    parse_memory,
)
from memgraph.model.results.curation import (
    ChangedMemory,
    FieldChange,
    HistoryEntry,
    Origin,
    Relation,
    SourcePlace,
    UndoResult,
)
from memgraph.ports import Row
from memgraph.store.commit.records import Write, has_vector, with_vector
from memgraph.store.commit.writer import Writer
from memgraph.store.deletions import undeletions
from memgraph.store.query import Reader, StorePart
from memgraph.text.cutting import preview

LinkKey = tuple[str, tuple[str, str]]
"""The relation of a link, and its ends."""

KEPT_FIELDS = fields_with(Role.STORE | Role.USE) | VECTOR_COLUMNS | {"seq"}
"""Fields that the store maintains by itself: they change with others, or with each use, and are no difference of their own."""
_STATES: dict[str, tuple[str, str]] = {
    "is_pinned": ("pinned", "unpinned"),
    "is_suppressed": ("forgotten", "no longer forgotten"),
    "archived_at": ("archived", "no longer archived"),
    "invalid_at": ("marked as invalid from {}", "valid again"),
}
_OF_A_STATE = frozenset(chain.from_iterable(REASONS_OF.values()))
_MOST_NAMED = 3
MOST_PLACES = 20
_FACTS = (
    "source",
    "speaker",
    "trust_class",
    "project_id",
    "session_id",
    "task_id",
    "build_id",
    "git_commit",
    "location",
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SAID = {"user@": "user", "agent@": "agent"}
_RELATIONS = {
    ("DERIVED_FROM", True): "derived from",
    ("SUPPORTS", False): "supported by",
    ("SUPERSEDES", True): "supersedes",
    ("SUPERSEDES", False): "superseded by",
    ("CONTRADICTS", True): "contradicts",
    ("CONTRADICTS", False): "contradicts",
}
"""What a link says of the memory at one end, by whether it leads outward."""
_RANK = {relation: rank for rank, (relation, _) in enumerate(_RELATIONS)}
"""Order of the links: that with the lowest number names a memory."""
REVERSIBLE = types_where(lambda policy: policy.irreversible is None)
_ACTS = types_where(lambda policy: policy.irreversible is None or policy.is_act)
_IN_GENERAL = {UPKEEP.irreversible, TaskPayload.POLICY.irreversible}
"""Reasons that say nothing about the one event."""
_MAINTAINED = KEPT_FIELDS | {"floor"}
_IF_UNTOUCHED = ("relevance_anchor", "relevance_at")
_SHOWN = 5


class RecordedCommit(NamedTuple):
    """The lines of one commit, and what their heads say."""

    id: str
    actor: str
    first: int
    """Sequence number of its first event."""
    last: int
    types: frozenset[str]
    lines: tuple[Line, ...]

    def events(self, journal: Journal) -> list[Event]:
        """Return its events, each verified."""
        return [journal.event(line) for line in self.lines]


def recorded_commits(journal: Journal) -> Iterator[RecordedCommit]:
    """Iterate over the commits of a journal; reads only the heads of its lines, which were verified when it was opened."""
    heads = ((line, orjson.loads(line.head)) for line in journal.lines())
    for (commit_id, actor), group in groupby(heads, key=lambda one: (one[1]["commit_id"], one[1]["actor"])):
        lines = tuple(line for line, _ in group)
        types = frozenset(line.type for line in lines)
        yield RecordedCommit(commit_id, actor, lines[0].seq, lines[-1].seq, types, lines)


class Undoings:
    """Which commits are undone, and by which."""

    def __init__(self) -> None:
        self.target_of: dict[str, str] = {}
        """For each commit that undoes another one, that other commit's id."""
        self.first_of: dict[str, int] = {}
        """The first event of each commit."""
        self._undone_by: dict[str, str | None] = {}

    def note(self, commit: RecordedCommit, journal: Journal) -> None:
        """Take a commit into account. Commits must be given in order."""
        self.first_of[commit.id] = commit.first
        if CommitUndone.TYPE not in commit.types:
            return
        for event in commit.events(journal):
            if isinstance(event.payload, CommitUndone):
                self.target_of[commit.id] = event.payload.commit_id
                self._set(event.payload.commit_id, commit.id)

    def undone_by(self, commit_id: str) -> str | None:
        """Return the commit that has undone a commit, or None if it is in force."""
        return self._undone_by.get(commit_id)

    def _set(self, commit_id: str, by: str | None) -> None:
        """Record that a commit is undone or in force, and so the reverse of the commit that it had undone itself."""
        passed: set[str] = set()
        while commit_id not in passed:
            passed.add(commit_id)
            self._undone_by[commit_id] = by
            if commit_id not in self.target_of:
                return
            commit_id, by = self.target_of[commit_id], None if by is not None else commit_id


class Lives:
    """The states of some memories, event by event. All others count as existing."""

    def __init__(self, memory_ids: Iterable[str]) -> None:
        self._ids = dict.fromkeys(memory_ids)
        self._workspace = Workspace(OtherMemories(self._ids))

    def fold(self, event: Event) -> None:
        """Fold an event, if it changes one of the memories. Events must be given in order."""
        if not self._ids.keys().isdisjoint(event.payload.memory_ids()):
            fold(self._workspace, event)

    def rows(self) -> dict[str, Row | None]:
        """Return the memories' rows in the given order; None for one that does not exist."""
        return {memory_id: self._workspace.get("Memory", memory_id) for memory_id in self._ids}

    def link(self, key: LinkKey) -> Row | None:
        """Return the properties of a link, or None."""
        return self._workspace.get(*key)


def differences(old: Row | None, new: Row | None) -> dict[str, tuple[Any, Any]]:
    """Return the old and new values of the fields that differ between two rows, without those that the store maintains."""
    one, other = old or {}, new or {}
    names = [name for name in {**one, **other} if name not in KEPT_FIELDS and one.get(name) != other.get(name)]
    return {name: (one.get(name), other.get(name)) for name in names}


def link_keys(event: Event) -> list[LinkKey]:
    """Return the links that an event creates, changes or removes by name."""
    payload = event.payload
    if isinstance(payload, MemoryLinked | MemoryUnlinked):
        return [(payload.relation, (payload.source_id, payload.target_id))]
    if isinstance(payload, MemoryDerived):
        down: list[LinkKey] = [("DERIVED_FROM", (payload.id, one)) for one in payload.source_ids]
        return [*down, *(("SUPPORTS", (one, payload.id)) for one in payload.source_ids)]
    return []


def in_order(histories: Mapping[str, Iterable[Event]]) -> list[Event]:
    """Return the events of several histories once each, in the order of the journal."""
    by_seq = {event.seq: event for events in histories.values() for event in events}
    return [by_seq[seq] for seq in sorted(by_seq)]


def field_changes(changes: Mapping[str, tuple[Any, Any]]) -> list[FieldChange]:
    """Return changes of fields in the form of a result."""
    return [FieldChange(field=name, old=old, new=new) for name, (old, new) in changes.items()]


def history(journal: Journal, memory_id: str) -> list[HistoryEntry]:
    """Return the events that concern a memory that ever existed, in order, whether or not it is deleted. Two passes over the journal."""
    lives = Lives([memory_id])
    found: list[tuple[Event, HistoryEntry]] = []
    for event in journal.histories([memory_id])[memory_id]:
        before = lives.rows()[memory_id]
        lives.fold(event)
        after = lives.rows()[memory_id]
        changes = differences(before, after) if before is not None and after is not None else {}
        what = described(event, memory_id, changes)
        if what is not None:
            found.append((event, entry_of(event, what, changes)))
    if not any(isinstance(event.payload, MemoryAdded | MemoryUndeleted) for event, _ in found):
        raise NotFoundError("memory", memory_id)
    undoings = Undoings()
    for commit in recorded_commits(journal):
        undoings.note(commit, journal)
    return [
        entry.model_copy(
            update={
                "undoes": undoings.first_of.get(undoings.target_of.get(event.commit_id, "")),
                "undone_by": undoings.first_of.get(undoings.undone_by(event.commit_id) or ""),
            }
        )
        for event, entry in found
    ]


def entry_of(event: Event, what: str, changes: Mapping[str, tuple[Any, Any]] | None = None) -> HistoryEntry:
    """Return an event in the form of a result."""
    return HistoryEntry(
        event=event.seq,
        at=event.timestamp,
        by=event.actor,
        task_id=event.task_id,
        type=event.type,
        what=what,
        reason=_reason(event),
        changes=field_changes(changes or {}),
    )


def described(event: Event, memory_id: str, changes: Mapping[str, tuple[Any, Any]]) -> str | None:
    """Return what an event did to a memory; None if it only names the memory, as an event about its successor does."""
    payload = event.payload
    if isinstance(payload, RetrievalRecorded):
        rank = next((rank for rank, item in enumerate(payload.results, start=1) if item.id == memory_id), None)
        return None if rank is None else f"recalled, in place {rank} of {len(payload.results)}"
    if isinstance(payload, OutcomeRecorded):
        role = "used" if memory_id in payload.used else "overridden" if memory_id in payload.overridden else None
        return None if role is None else f"{role} in a recall with the outcome {payload.outcome}"
    policy = payload.POLICY
    if not policy.is_told_to_named and memory_id not in payload.memory_ids():
        return None
    if isinstance(payload, MemoryLinked | MemoryUnlinked):
        done = "linked" if isinstance(payload, MemoryLinked) else "unlinked"
        outward = payload.source_id == memory_id
        return f"{done}: {payload.relation} {payload.target_id if outward else f'from {payload.source_id}'}"
    if isinstance(payload, MemoryDerived):
        return f"derived from {_ids(payload.source_ids)}" if payload.id == memory_id else f"evidence of {payload.id}"
    if isinstance(payload, MemoryAdded):
        return f"added: “{preview(payload.memory.content)}”"
    if isinstance(payload, MemoryUndeleted):
        done = "restated without its history, which a purge removed" if event.actor == "system" else "restored"
        return done if payload.memory.id == memory_id else None
    if isinstance(payload, MemoryMerged):
        return f"merged with a duplicate{f', {payload.candidate_id}' if payload.candidate_id else ''}"
    if isinstance(payload, MemoryRevised):
        return _revised(event, changes)
    return policy.told or event.type


def _revised(event: Event, changes: Mapping[str, tuple[Any, Any]]) -> str:
    said = []
    for name, (holds, no_longer) in _STATES.items():
        if name in changes:
            value = changes[name][1]
            said.append(holds.format(value) if value not in (None, False) else no_longer)
    if others := [name for name in changes if name not in _STATES and name not in _OF_A_STATE]:
        said.append(f"changed {', '.join(others)}")
    if not said:
        named = {*event.content.get("changed", ()), *event.content.get("cleared", ())}
        said.append("embedded" if named & VECTOR_COLUMNS else "changed, to the same values")
    return "; ".join(said)


def _reason(event: Event) -> str | None:
    payload = event.payload
    if isinstance(payload, MemoryAdded):
        return payload.memory.reason
    if isinstance(payload, MemoryRevised):
        changed = event.content.get("changed", {})
        stated: str | None = changed.get("archive_reason") or changed.get("invalidation_reason")
        return stated
    return getattr(payload, "reason", None)


def _ids(ids: list[str]) -> str:
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(ids[:_MOST_NAMED]) + more


@dataclass(slots=True)
class _Node:
    """A memory in the tree, before the journal has been searched for the events that added it."""

    memory: StoredMemory
    parent: str | None = None
    is_repeated: bool = False
    below: list[tuple[str, str | None, _Node]] = field(default_factory=list)
    more: int = 0


def origin(journal: Journal, reader: Reader, memory_id: str, *, depth: int, most: int) -> Origin:
    """Return where a memory comes from: a tree up to `depth` links away, with at most `most` related memories of each. Two passes over the journal."""
    with reader.frozen():
        root = _Node(reader.known(memory_id))
        nodes = {root.memory.id: root}
        level = [root]
        for _ in range(depth):
            level = [node for one in level for node in _grow(reader, one, nodes, most)]
        for one in level:
            one.more = len([relation for relation in _related(reader, one.memory.id) if relation[2] not in nodes])
    made = _made(journal, list(nodes))
    builds = {build for node in nodes.values() for build in node.memory.evidence_build_ids}
    return _origin(root, made, _sources_of(journal, builds))


def _grow(reader: Reader, node: _Node, nodes: dict[str, _Node], most: int) -> list[_Node]:
    """Add the related memories of a memory to the tree, and return those that the tree continues from."""
    related = [relation for relation in _related(reader, node.memory.id) if relation[2] != node.parent]
    node.more = max(0, len(related) - most)
    shown = related[:most]
    memories = {memory.id: memory for memory in reader.read([other for _, _, other in shown])}
    growing = []
    for relation, reason, other in shown:
        if other not in memories:
            continue
        below = _Node(memories[other], parent=node.memory.id, is_repeated=other in nodes)
        node.below.append((relation, reason, below))
        if other not in nodes:
            nodes[other] = below
            if relation not in {"contradicts", "superseded by"}:
                growing.append(below)
    return growing


def _related(reader: Reader, memory_id: str) -> list[tuple[str, str | None, str]]:
    """Return (relation, reason, other memory) for each link that explains a memory; evidence is named once."""
    found: dict[str, tuple[str, str | None, str]] = {}
    for link in sorted(
        reader.links(memory_id), key=lambda one: (_RANK.get(one.relation, 9), one.source_id, one.target_id)
    ):
        is_outward = link.source_id == memory_id
        other = link.target_id if is_outward else link.source_id
        if (relation := _RELATIONS.get((link.relation, is_outward))) is not None:
            found.setdefault(other, (relation, link.reason, other))
    return list(found.values())


def _made(journal: Journal, ids: list[str]) -> dict[str, HistoryEntry]:
    found: dict[str, HistoryEntry] = {}
    for memory_id, events in journal.histories(ids).items():
        for event in events:
            if isinstance(event.payload, MemoryAdded | MemoryUndeleted) and event.payload.memory.id == memory_id:
                found.setdefault(memory_id, entry_of(event, described(event, memory_id, {}) or event.type))
    return found


def _sources_of(journal: Journal, builds: Collection[str]) -> dict[str, str]:
    """Return where builds were read from, by build: the source that the same commit records. One pass over the journal."""
    found: dict[str, str] = {}
    if not builds:
        return found
    for commit in recorded_commits(journal):
        if SourceRead.TYPE not in commit.types or BuildConsolidated.TYPE not in commit.types:
            continue
        waiting: list[str] = []
        for event in commit.events(journal):
            if isinstance(event.payload, BuildConsolidated) and event.payload.build_id in builds:
                waiting.append(event.payload.build_id)
            elif isinstance(event.payload, SourceRead):
                found.update(dict.fromkeys(waiting, f"{event.payload.kind} {event.payload.locator}"))
                waiting = []
    return found


def _origin(node: _Node, made: Mapping[str, HistoryEntry], sources: Mapping[str, str]) -> Origin:
    memory = node.memory
    places = list(_places(memory, sources))
    return Origin(
        id=memory.id,
        type=memory.type,
        content=memory.content,
        why=memory.reason,
        made=made.get(memory.id),
        facts={name: str(value) for name in _FACTS if (value := getattr(memory, name, None))},
        places=places[:MOST_PLACES],
        more_places=max(0, len(places) - MOST_PLACES),
        relations=[
            Relation(relation=relation, reason=reason, memory=_origin(below, made, sources))
            for relation, reason, below in node.below
        ],
        is_repeated=node.is_repeated,
        more=node.more,
    )


def _places(memory: StoredMemory, sources: Mapping[str, str]) -> Iterable[SourcePlace]:
    """Yield the places in sources that a memory names; other memories are shown as relations."""
    for reference in memory.source_event_ids:
        if _UUID.fullmatch(reference):
            continue
        build = next((one for one in memory.evidence_build_ids if reference.startswith(f"{one}/")), None)
        part = reference.removeprefix(f"{build}/") if build else reference
        if _COMMIT.fullmatch(part):
            place = f"commit {part}"
        elif who := next((who for lead, who in _SAID.items() if part.startswith(lead)), None):
            place = f"what the {who} said at {part.partition('@')[2]}"
        else:
            place = part
        yield SourcePlace(reference=reference, source=sources.get(build or reference), place=place)


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
        """Return the commit of an event, or the last one that is neither undone nor an undoing; `UndoError` unless it is a user's and reversible."""
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
