"""What a journal says about deleted memories: their last state, what was derived from them, and how they are restored.

A deleted memory has no row and no links left, but what was derived from it still repeats its words. So its last privacy tier and domain,
and the derivations that no event has undone, are read from the journal.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from memgraph.errors import NotFoundError
from memgraph.fold.fold import LastState, last_known
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    RecallAgain,
    VectorRef,
)
from memgraph.model.events.records import FADED, UNDONE
from memgraph.model.events.registry import types_where
from memgraph.model.events.store import MemoryPurged, StoreReset
from memgraph.model.ids import canonical_name
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import MemoryRecord, PrivacyTier
from memgraph.ports import Row
from memgraph.store.commit.records import VectorModel, has_vector

IsLive = Callable[[str], bool]
Undeletion = tuple[MemoryUndeleted, list[MemoryLinked]]
_DERIVED_FROM = "DERIVED_FROM"
_REMOVING = (MemoryDeleted, StoreReset)
_ABOUT_DERIVATION = types_where(lambda policy: policy.lineage not in ("unchanged", "by_relation"))
_BY_RELATION = types_where(lambda policy: policy.lineage == "by_relation")
_NOT_REJECTED = (FADED, UNDONE)
"""Reasons of deletions that reject no content: it had faded, or a whole operation was undone, which may be repeated."""


class Disclosure(NamedTuple):
    """A memory's privacy tier, whether it is suppressed, its tags, its domain, and whether it is deleted."""

    tier: PrivacyTier = "public"
    is_suppressed: bool = False
    tags: frozenset[str] = frozenset()
    domain: str | None = None
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Lineage:
    """What was derived from what, as far as it concerns deleted memories."""

    deleted: Mapping[str, Disclosure] = field(default_factory=dict)
    """The last states of the deleted memories from which others were derived, by id. If it is empty, the links say everything."""
    products: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The memories derived from each, whether or not either still exists."""

    def derived_from(self, memory_ids: Iterable[str]) -> set[str]:
        """Return the memories that were derived from some, directly or through others, existing or not."""
        return set(reached(memory_ids, lambda one: self.products.get(one, ())))


def reached(memory_ids: Iterable[str], following: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Return what follows some memories, directly or through others."""
    found: dict[str, None] = {}
    waiting = list(memory_ids)
    while waiting:
        new = [one for one in following(waiting.pop()) if one not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return found


class Disclosures:
    """The disclosure of each memory after some events, by id."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._found: dict[str, Disclosure] = {}
        self.at_deletion: dict[str, Disclosure] = {}
        """The states in which memories were deleted, by id: of the latest deletion."""
        self._derivations = _Derivations()
        for event in events:
            self._derivations.note(event)
            self._note(event)

    def get(self, memory_id: str) -> Disclosure | None:
        """Return a memory's state, its last one if it is deleted; None if it never existed."""
        return self._found.get(memory_id)

    @cached_property
    def lineage(self) -> Lineage:
        """What was derived from deleted memories."""
        return self._derivations.lineage(self.at_deletion)

    def _note(self, event: Event) -> None:
        payload, content = event.payload, event.content
        if isinstance(payload, MemoryAdded | MemoryUndeleted):
            self._found[payload.memory.id] = _changed(Disclosure(), content["memory"], ())
        elif removed := payload.removed_ids():
            for memory_id in self._found.keys() & set(removed):
                state = self._found[memory_id]._replace(is_deleted=True)
                self._found[memory_id] = self.at_deletion[memory_id] = state
        elif isinstance(payload, MemoryRevised | MemoryMerged) and payload.id in self._found:
            before = self._found[payload.id]
            self._found[payload.id] = _changed(before, content.get("changed", {}), content.get("cleared", ()))


class DeletedSources:
    """What was derived from deleted memories, as of the end of a growing journal. Thread-safe. A pass over events if a source was deleted."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._derivations = _Derivations()
        self._seq = 0
        self._is_read = False
        self._last: dict[str, Disclosure] = {}
        self._lineage = Lineage()

    def lineage(self) -> Lineage:
        """Return what was derived from deleted memories."""
        with self._lock:
            self._take_in()
            return self._lineage

    def rejected(self) -> frozenset[str]:
        """Return the memories that somebody deleted one by one: a source that is read again does not bring them back."""
        with self._lock:
            self._take_in()
            return frozenset(self._derivations.rejected)

    def _take_in(self) -> None:
        end = self._journal.tail.seq
        if end != self._seq and self._read_on():
            self._lineage = self._derivations.lineage(self._states())
        self._seq = end

    def _read_on(self) -> bool:
        """Take the events since the last question into account; return whether any of them matters."""
        journal = self._journal
        events: Iterable[Event] = journal.events_after(self._seq) if self._is_read else ()
        if not self._is_read:
            self._is_read = any(True for _ in journal.lines_of(*(kind.TYPE for kind in _REMOVING)))
            if self._is_read:
                about = journal.events_of(*_ABOUT_DERIVATION)
                linking = journal.events_of(*_BY_RELATION, holding=_DERIVED_FROM.encode())
                events = sorted([*about, *linking], key=lambda event: event.seq)
        return sum(self._derivations.note(event) for event in events) > 0

    def _states(self) -> dict[str, Disclosure]:
        """Return the last states of the deleted memories from which others are derived."""
        wanted = self._derivations.deleted_sources()
        self._last = {memory_id: state for memory_id, state in self._last.items() if memory_id in wanted}
        if missing := sorted(wanted - self._last.keys()):
            for memory_id, events in self._journal.histories(missing).items():
                self._last |= {memory_id: Disclosures(events).at_deletion[memory_id]}
        return self._last


class _Derivations:
    """Which memories are derived from which, whether or not they still exist, and which are deleted."""

    def __init__(self) -> None:
        self._made_from: dict[str, set[str]] = defaultdict(set)
        self._deleted: set[str] = set()
        self.rejected: set[str] = set()

    def note(self, event: Event) -> bool:
        """Take an event into account; return whether it concerns derivation or deletion."""
        payload = event.payload
        if isinstance(payload, MemoryDerived):
            for source in payload.source_ids:
                self._made_from[source].add(payload.id)
        elif isinstance(payload, MemoryLinked) and payload.relation == _DERIVED_FROM:
            self._made_from[payload.target_id].add(payload.source_id)
        elif isinstance(payload, MemoryUnlinked) and payload.relation == _DERIVED_FROM:
            self._made_from[payload.target_id].discard(payload.source_id)
        elif removed := payload.removed_ids():
            self._deleted.update(removed)
            if isinstance(payload, StoreReset) and payload.scope == "all":
                self.rejected.clear()
            if isinstance(payload, MemoryDeleted) and payload.reason not in _NOT_REJECTED:
                self.rejected.update(removed)
        elif isinstance(payload, MemoryUndeleted):
            self._deleted.discard(payload.memory.id)
            self.rejected.discard(payload.memory.id)
        elif isinstance(payload, MemoryPurged):  # with all that was derived from them
            self._deleted.difference_update(payload.purged_ids())
        else:
            return False
        return True

    def deleted_sources(self) -> set[str]:
        """Return the deleted memories from which others are derived."""
        return {one for one in self._deleted if self._made_from.get(one)}

    def lineage(self, states: Mapping[str, Disclosure]) -> Lineage:
        """Return what was derived from deleted memories, given their last states."""
        deleted = self.deleted_sources()
        if not deleted:
            return Lineage()
        return Lineage({one: states[one] for one in deleted}, {one: set(made) for one, made in self._made_from.items()})


def _changed(before: Disclosure, changed: Mapping[str, Any], cleared: Iterable[str]) -> Disclosure:
    """Return a memory's disclosure after a change of some fields."""
    cleared = frozenset(cleared)
    tags = frozenset() if "tags" in cleared else before.tags
    return Disclosure(
        changed.get("privacy_tier", "public" if "privacy_tier" in cleared else before.tier),
        bool(changed.get("is_suppressed", before.is_suppressed and "is_suppressed" not in cleared)),
        frozenset(map(canonical_name, changed["tags"])) if "tags" in changed else tags,
        changed.get("domain", None if "domain" in cleared else before.domain),
    )


def undeletions(
    journal: Journal, memory_ids: Sequence[str], is_live: IsLive, *, model: VectorModel
) -> Iterator[Undeletion]:
    """Yield the events that restore deleted memories, in any order, with a vector of this model unless that is damaged. Two passes over the journal.

    `is_live` says whether a memory exists; those that were restored before count as existing.
    """
    if not memory_ids:
        return
    previous: dict[str, str | None] = {}
    for line in journal.lines():
        if line.payload is None or line.type not in {MemoryAdded.TYPE, MemoryUndeleted.TYPE}:
            continue
        memory = journal.content(line)["memory"]
        previous.setdefault(memory["id"], memory.get("previous_id"))  # a restated one was not added
    events = journal.histories(memory_ids)
    restored: set[str] = set()
    for memory_id in memory_ids:
        known = last_known(events[memory_id], memory_id)
        if known is None:
            raise NotFoundError("memory", memory_id)

        def is_there(other: str) -> bool:
            return other in restored or is_live(other)

        row, vector = known.row, None
        if has_vector(row, model.name) and journal.vectors(*model).holds(row["vector_row"], row["vector_sha256"]):
            vector = VectorRef(model=model.name, row=row["vector_row"], sha256=row["vector_sha256"])
        undeleted = _undeleted(known, previous, is_there, vector)
        yield undeleted, _links(known, is_there)
        restored.add(memory_id)


def deleted_ids(journal: Journal, beginning: str) -> list[str]:
    """Return the ids with this prefix that were ever deleted or removed by a reset; two passes over the journal."""
    mark = _beginning(id=beginning)
    found = [journal.content(line)["id"] for line in journal.lines_of(MemoryDeleted.TYPE, holding=mark)]
    for line in journal.lines_of(StoreReset.TYPE):
        found += [one for one in journal.content(line).get("removed", ()) if one.startswith(beginning)]
    return list(dict.fromkeys(found))


class Deleted(NamedTuple):
    """The last state of a deleted memory, and the stated reason."""

    row: Row
    reason: str | None


def deleted_of(journal: Journal, source: str, is_live: IsLive) -> list[Deleted]:
    """Return a source's deleted memories in id order; two passes over the journal, the second only if there are any."""
    lines = journal.lines_of(MemoryAdded.TYPE, holding=_beginning(source=source))
    memories = (journal.content(line)["memory"] for line in lines)
    added = {memory["id"] for memory in memories if memory.get("source") == source}
    return deleted(journal, sorted(one for one in added if not is_live(one)))


def deleted(journal: Journal, memory_ids: Sequence[str]) -> list[Deleted]:
    """Return the last state of some deleted memories, in this order; one pass over the journal, if any are given."""
    found = []
    for memory_id, events in journal.histories(memory_ids).items():
        reasons = [event.payload.reason for event in events if isinstance(event.payload, MemoryDeleted)]
        known = last_known(events, memory_id)
        if known is not None and reasons:
            found.append(Deleted(known.row, reasons[-1]))
    return found


def _beginning(**field: str) -> bytes:
    """Return a field as it stands in a payload, without the end of its value."""
    return orjson.dumps(field)[1:-2]


def _before(previous: Mapping[str, str | None], memory_id: str, is_live: IsLive) -> str | None:
    """Return the nearest existing predecessor, given that of each memory ever added; one that was never recorded is returned as named."""
    found, passed = previous[memory_id], {memory_id}
    while found is not None and found in previous and found not in passed and not is_live(found):
        passed.add(found)
        found = previous[found]
    return found if found not in passed else None


def _after(previous: Mapping[str, str | None], memory_id: str, is_live: IsLive) -> list[str]:
    """Return the memories that follow this one, with no existing memory in between."""
    following: dict[str | None, list[str]] = defaultdict(list)
    for later, earlier in previous.items():
        following[earlier].append(later)
    found = reached([memory_id], lambda one: () if one != memory_id and is_live(one) else following[one])
    return sorted(one for one in found if is_live(one))


def _undeleted(
    known: LastState, previous: Mapping[str, str | None], is_live: IsLive, vector: VectorRef | None
) -> MemoryUndeleted:
    row = known.row
    fields = {name: value for name, value in row.items() if name in MemoryRecord.model_fields}
    fields["previous_id"] = _before(previous, row["id"], is_live)
    if vector is None:
        fields |= {"embedding_model": None, "embedded_at": None}
    recalls = [
        RecallAgain.parse({"query_id": key[0], **edge}) for table, key, edge in known.edges if table == "RECALLED"
    ]
    return MemoryUndeleted(
        memory=MemoryRecord.parse(fields),
        vector=vector,
        added_seq=row["seq"],
        follower_ids=_after(previous, row["id"], is_live),
        recalls=recalls,
    )


def _links(known: LastState, is_live: IsLive) -> list[MemoryLinked]:
    me = known.row["id"]
    return [
        MemoryLinked.parse({"source_id": key[0], "relation": table, "target_id": key[1], **edge})
        for table, key, edge in known.edges
        if table in EXPLICIT_RELATIONS and all(end == me or is_live(end) for end in key)
    ]
