"""What the journal says about single memories: commits and undoings, their states event by event, their history, and where they come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, NamedTuple

import orjson

from memgraph.errors import NotFoundError
from memgraph.fold.fold import OtherMemories, fold
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event, Line
from memgraph.journal.journal import Journal
from memgraph.journal.search import histories
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
)
from memgraph.model.events.records import BuildConsolidated, OutcomeRecorded, RetrievalRecorded, SourceRead
from memgraph.model.events.store import CommitUndone
from memgraph.model.memory import REASONS_OF, VECTOR_COLUMNS, Role, StoredMemory, fields_with
from memgraph.model.results.curation import FieldChange, HistoryEntry, Origin, Relation, SourcePlace
from memgraph.ports import Row
from memgraph.store.query import Reader
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
    for event in histories(journal, [memory_id])[memory_id]:
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

    def with_undoings(event: Event, entry: HistoryEntry) -> HistoryEntry:
        undoes = undoings.first_of.get(undoings.target_of.get(event.commit_id, ""))
        undone_by = undoings.first_of.get(undoings.undone_by(event.commit_id) or "")
        return entry.model_copy(update={"undoes": undoes, "undone_by": undone_by})

    return [with_undoings(event, entry) for event, entry in found]


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
    """Return why an event was made, as far as it says so."""
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
    """Return the events that added memories, by memory."""
    found: dict[str, HistoryEntry] = {}
    for memory_id, events in histories(journal, ids).items():
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
