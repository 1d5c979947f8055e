"""The inverse of a commit: the events that restore what its memories and links were before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memgraph.errors import UndoError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.journal.search import histories
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked, MemoryRevised, MemoryUnlinked, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import UNDONE
from memgraph.model.memory import MemoryRecord, Vector, parse_memory
from memgraph.ports import Row
from memgraph.store.commit.records import Write, with_vector
from memgraph.store.commit.vectors import has_vector
from memgraph.store.commit.writer import Writer
from memgraph.store.editing.lives import LinkKey, Lives, differences, in_order, link_keys
from memgraph.store.query import Reader
from memgraph.store.undeletion import undeletions

_IF_UNTOUCHED = ("relevance_anchor", "relevance_at")
_SHOWN = 5


@dataclass(slots=True)
class Inverse:
    """The events that undo a commit.

    Attributes
    ----------
    removed, restored : list of str
        Memories that are deleted or undeleted.
    revised : dict of str to dict
        The fields of changed memories, with their values now and after the undoing.
    unlinked, linked : list of LinkKey
    """

    writes: list[Write] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    revised: dict[str, dict[str, tuple[Any, Any]]] = field(default_factory=dict)
    unlinked: list[LinkKey] = field(default_factory=list)
    linked: list[LinkKey] = field(default_factory=list)


def inverse(journal: Journal, writer: Writer, reader: Reader, events: Sequence[Event], now: str) -> Inverse:
    """Return the inverse of a commit; requires the writer lock. Two passes over the journal.

    Raises
    ------
    UndoError
        Fields or links that the commit changed were changed again since, or it changed none.
    """
    return _Inversion(journal, writer, reader, events, now).result()


class _Inversion:
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
        everything = in_order(histories(journal, list(ids)))
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
        """Refuse if what the commit left is no longer so, and name the events that changed it.

        Raises
        ------
        UndoError
        """
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
