"""Undeletion: restore a memory's content and links from the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memgraph.errors import NotFoundError
from memgraph.fold.fold import LastState, last_known
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.journal.search import histories, lines_of, named_in
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryLinked,
    MemoryUndeleted,
    RecallAgain,
    VectorRef,
)
from memgraph.model.events.store import StoreReset
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import MemoryRecord
from memgraph.ports import Row
from memgraph.store.commit.vectors import VectorModel, has_vector

IsLive = Callable[[str], bool]
Undeletion = tuple[MemoryUndeleted, list[MemoryLinked]]


def undeletions(
    journal: Journal, memory_ids: Sequence[str], is_live: IsLive, *, model: VectorModel
) -> Iterator[Undeletion]:
    """Yield the events that restore deleted memories, except for a damaged vector: then the memory awaits a new one.

    The place of a memory in the order of memories, and its links, depend only on which memories exist now: memories that
    were deleted together may be restored in any order. Costs one pass over the journal; only events that refer to the
    memories are verified and folded.

    Parameters
    ----------
    is_live : callable
        Returns whether a memory exists. Those that were restored before count as existing.
    model : VectorModel
        The store's embedding model: a vector of another model is not restored.

    Raises
    ------
    NotFoundError
        A memory never existed, or was purged.
    """
    order = _Order()
    events: dict[str, list[Event]] = {memory_id: [] for memory_id in memory_ids}
    needles = {memory_id.encode(): memory_id for memory_id in memory_ids}
    for line in journal.lines() if needles else ():
        if line.type == MemoryAdded.TYPE or line.type == MemoryUndeleted.TYPE:
            memory = journal.content(line)["memory"]
            order.previous.setdefault(memory["id"], memory.get("previous_id"))  # a restated one was not added
        for named in named_in(line, needles):
            events[named].append(journal.event(line))
    restored: set[str] = set()
    for memory_id in memory_ids:
        known = last_known(events[memory_id], memory_id)
        if known is None:
            raise NotFoundError("memory", memory_id)

        def is_there(other: str) -> bool:
            return other in restored or is_live(other)

        undeleted = _undeleted(known, order, is_there, _sound_vector(journal, known.row, model))
        yield undeleted, _links(known, is_there)
        restored.add(memory_id)


def deleted_ids(journal: Journal, beginning: str) -> list[str]:
    """Return the ids with this prefix that were ever deleted or removed by a reset; two passes over the journal."""
    found = [journal.content(line)["id"] for line in lines_of(journal, MemoryDeleted.TYPE, id=beginning)]
    for line in lines_of(journal, StoreReset.TYPE):
        found += [one for one in journal.content(line).get("removed", ()) if one.startswith(beginning)]
    return list(dict.fromkeys(found))


class Deleted(NamedTuple):
    """The last state of a deleted memory, and the stated reason."""

    row: Row
    reason: str | None


def deleted_of(journal: Journal, source: str, is_live: IsLive) -> list[Deleted]:
    """Return a source's deleted memories in id order; two passes over the journal, the second only if there are any."""
    memories = (journal.content(line)["memory"] for line in lines_of(journal, MemoryAdded.TYPE, source=source))
    added = {memory["id"] for memory in memories if memory.get("source") == source}
    return deleted(journal, sorted(one for one in added if not is_live(one)))


def deleted(journal: Journal, memory_ids: Sequence[str]) -> list[Deleted]:
    """Return the last state of some deleted memories, in this order; one pass over the journal, if any are given."""
    found = []
    for memory_id, events in histories(journal, memory_ids).items():
        reasons = [event.payload.reason for event in events if isinstance(event.payload, MemoryDeleted)]
        known = last_known(events, memory_id)
        if known is not None and reasons:
            found.append(Deleted(known.row, reasons[-1]))
    return found


def reasons_of_deletion(journal: Journal) -> dict[str, str | None]:
    """Return the stated reasons of the memories' latest deletions, by id; one pass over the journal."""
    deletions = (journal.content(line) for line in lines_of(journal, MemoryDeleted.TYPE))
    return {one["id"]: one.get("reason") for one in deletions}


@dataclass(slots=True)
class _Order:
    """The recorded order of all memories ever added."""

    previous: dict[str, str | None] = field(default_factory=dict)

    def before(self, memory_id: str, is_live: IsLive) -> str | None:
        """Return the nearest existing predecessor; one that was never recorded is returned as named."""
        found, passed = self.previous[memory_id], {memory_id}
        while found in self.previous and found not in passed and not is_live(found):
            passed.add(found)
            found = self.previous[found]
        return found if found not in passed else None

    def after(self, memory_id: str, is_live: IsLive) -> list[str]:
        """Return the memories that follow this one, with no existing memory in between."""
        following: dict[str, list[str]] = defaultdict(list)
        for later, earlier in self.previous.items():
            if earlier is not None:
                following[earlier].append(later)
        found: dict[str, None] = {}
        passed, waiting = {memory_id}, following[memory_id]
        while waiting:
            later = waiting.pop()
            if is_live(later):
                found[later] = None
            elif later not in passed:
                passed.add(later)
                waiting += following[later]
        return sorted(found)


def _sound_vector(journal: Journal, row: Row, model: VectorModel) -> VectorRef | None:
    """Return the place of a memory's vector, if it is of this model and undamaged."""
    if not has_vector(row, model.name) or not journal.vectors(*model).holds(row["vector_row"], row["vector_sha256"]):
        return None
    return VectorRef(model=model.name, row=row["vector_row"], sha256=row["vector_sha256"])


def _undeleted(known: LastState, order: _Order, is_live: IsLive, vector: VectorRef | None) -> MemoryUndeleted:
    row = known.row
    fields = {name: value for name, value in row.items() if name in MemoryRecord.model_fields}
    fields["previous_id"] = order.before(row["id"], is_live)
    if vector is None:
        fields |= {"embedding_model": None, "embedded_at": None}
    recalls = [
        RecallAgain.parse({"query_id": key[0], **edge}) for table, key, edge in known.edges if table == "RECALLED"
    ]
    return MemoryUndeleted(
        memory=MemoryRecord.parse(fields),
        vector=vector,
        added_seq=row["seq"],
        follower_ids=order.after(row["id"], is_live),
        recalls=recalls,
    )


def _links(known: LastState, is_live: IsLive) -> list[MemoryLinked]:
    me = known.row["id"]
    return [
        MemoryLinked.parse({"source_id": key[0], "relation": table, "target_id": key[1], **edge})
        for table, key, edge in known.edges
        if table in EXPLICIT_RELATIONS and all(end == me or is_live(end) for end in key)
    ]
