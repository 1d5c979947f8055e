"""The rows and links of some memories as of any event, folded from the journal's events about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memgraph.fold.fold import OtherMemories, fold
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.memory import VECTOR_COLUMNS, Role, fields_with
from memgraph.ports import Row

LinkKey = tuple[str, tuple[str, str]]
"""The relation of a link, and its ends."""

KEPT_FIELDS = fields_with(Role.STORE | Role.USE) | VECTOR_COLUMNS | {"seq"}
"""Fields that the store maintains by itself: they change with others, or with each use, and are no difference of their own."""


class Lives:
    """The states of some memories, event by event.

    Parameters
    ----------
    memory_ids : iterable of str
        The memories to follow. All others count as existing.
    """

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
