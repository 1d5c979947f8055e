"""A store as an agent may read it.

The view is a store over an `Excerpt` of the journal with only the events about memories that the agent may have, folded as usual. What the
agent may not have is not in its graph, index or journal, so lists, links, Cypher, pages, charts and exports of the view need no rule of their
own. Of recalls only the named agent's own are there, with the memories that it may have; one without a name has none. A memory that the agent
may have today is there from the event that made it so: earlier texts of it are not in the view.

What the view has of an event is stated by the policy of its type.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from memgraph.journal.envelope import Event
from memgraph.journal.excerpt import Sift
from memgraph.model.agent_input import UNNAMED
from memgraph.model.events.memories import MemoryAdded, MemoryDerived, MemoryMerged, MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessRecorded, BuildConsolidated, OutcomeRecorded, RetrievalRecorded
from memgraph.model.events.store import StoreReset
from memgraph.model.memory import MemoryRecord
from memgraph.ports import Row
from memgraph.privacy import Access
from memgraph.store.access.visibility import visible
from memgraph.store.query import Reader

Openings = Mapping[int, Row]
"""For memories that the agent could not have at first: the event since which it may, with the memory's state then."""


class AgentSelection:
    """The events that an agent may have, up to the present end of the journal.

    Parameters
    ----------
    access : Access
        The agent's.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._recalls: set[str] = set()

    def select(self, reader: Reader, events: Iterable[Event]) -> None:
        """Find out which events the agent may have; before any is sifted.

        Parameters
        ----------
        reader : Reader
            Of the store; it must not be inside a frozen block.
        events : iterable of Event
            All events of the store.
        """
        access = self._access
        with reader.frozen():
            index = reader.index
            mask, live = visible(reader, access, "read"), index.column("is_live")
            self._visible = {index.ids.names[slot] for slot in np.flatnonzero(live & mask).tolist()}
            hidden = [index.ids.names[slot] for slot in np.flatnonzero(live & ~mask).tolist()]
            self._builds = {(row.get("project_id"), row.get("build_id")) for row in reader.rows(hidden)}
        self._openings, self._before, every = _openings(events, self._visible, access)
        self._hidden = every - self._visible

    def sift(self) -> Sift:
        """Return the filter for one pass over the journal."""
        return lambda events: [kept for event in events if (kept := self._kept(event)) is not None]

    def _kept(self, event: Event) -> Event | None:
        """Return the event as the agent may have it; None if it may not."""
        if event.seq in self._openings:
            row = self._openings[event.seq]
            return _as_added(event, {**row, **self._without_hidden(row)})
        payload = event.payload
        part = payload.POLICY.agents
        if part == "whole":
            return event
        if part == "of_one":
            (memory_id,) = payload.memory_ids()
            is_there = memory_id in self._visible and event.seq > self._before.get(memory_id, 0)
            return self._named(event, payload) if is_there else None
        if part == "of_all":
            return event if self._visible.issuperset(payload.memory_ids()) else None
        return self._reduced(event, payload) if part == "in_part" else None

    def _named(self, event: Event, payload: Payload) -> Event:
        """Return an event about one memory without the ids of memories that the agent may not have."""
        name = "memory" if isinstance(payload, MemoryAdded) else "changed"
        fewer = self._without_hidden(event.content.get(name, {}))
        return _with(event, payload, **{name: getattr(payload, name).model_copy(update=fewer)}) if fewer else event

    def _without_hidden(self, row: Row) -> Row:
        """Return the fields of a row that name memories that the agent may not have, without these."""
        fewer: Row = {}
        if row.get("previous_id") in self._hidden:
            fewer["previous_id"] = None
        if not self._hidden.isdisjoint(row.get("source_event_ids", ())):
            fewer["source_event_ids"] = [one for one in row["source_event_ids"] if one not in self._hidden]
        return fewer

    def _reduced(self, event: Event, payload: Payload) -> Event | None:
        """Return an event about several memories with those that the agent may have."""
        visible = self._visible
        if isinstance(payload, BuildConsolidated):
            return None if (payload.project_id, payload.build_id) in self._builds else event
        if isinstance(payload, MemoryDerived):
            sources = [one for one in payload.source_ids if one in visible]
            if payload.id not in visible or not sources:
                return None
            return _with(event, payload, source_ids=sources)
        if isinstance(payload, StoreReset):  # how many there were of what it cleared is not the agent's
            removed = [one for one in payload.removed if one in visible]
            return _with(event, payload, removed=removed, cleared=dict.fromkeys(payload.cleared, 0))
        if isinstance(payload, AccessRecorded):
            uses = [one for one in payload.accesses if one.id in visible]
            return _with(event, payload, accesses=uses) if uses else None
        if isinstance(payload, RetrievalRecorded):
            if self._access.agent in (UNNAMED, None) or payload.agent_name != self._access.agent:
                return None  # what others asked, and in which project and session, is theirs
            self._recalls.add(payload.query_id)
            return _with(event, payload, results=[one for one in payload.results if one.id in visible])
        if isinstance(payload, OutcomeRecorded) and payload.query_id in self._recalls:
            used, overridden = ([one for one in ids if one in visible] for ids in (payload.used, payload.overridden))
            return _with(event, payload, used=used, overridden=overridden)
        return None


def _openings(
    events: Iterable[Event], visible: Collection[str], access: Access
) -> tuple[Openings, dict[str, int], set[str]]:
    """Return the openings of memories, by memory the event before which the agent may have nothing of it, and all memories there ever were.

    One pass over the journal. An undeleted memory opens with its undeletion.
    """
    rows: dict[str, Row] = {}
    every: set[str] = set()
    found: dict[str, tuple[int, Row]] = {}
    was_open: dict[str, bool] = defaultdict(bool)
    for event in events:
        payload: Any = event.payload
        if event.type in ("memory.added", "memory.undeleted"):
            every.add(payload.memory.id)
        if event.type in ("memory.added", "memory.undeleted") and payload.memory.id in visible:
            memory_id, row = payload.memory.id, dict(event.content["memory"])
        elif isinstance(payload, MemoryRevised | MemoryMerged) and payload.id in rows:
            memory_id, row = payload.id, payload.row_after(rows[payload.id])
        elif removed := payload.removed_ids():
            was_open.update(dict.fromkeys(rows.keys() & set(removed), False))
            continue
        else:
            continue
        rows[memory_id] = row
        is_open = access.may("read", row.get("privacy_tier", "public"), row.get("domain"))
        if is_open and not was_open[memory_id] and event.type != "memory.added":
            found[memory_id] = event.seq, row
        was_open[memory_id] = is_open
    return dict(found.values()), {one: seq for one, (seq, _) in found.items()}, every


def _as_added(event: Event, row: Row) -> Event:
    record = MemoryRecord.parse({name: value for name, value in row.items() if name in MemoryRecord.model_fields})
    payload = MemoryAdded(memory=record, vector=event.payload.vector)  # type: ignore[attr-defined]
    return event._replace(type=MemoryAdded.TYPE, payload=payload, content=payload.dump())


def _with(event: Event, payload: Payload, **fields: Any) -> Event:
    reduced = payload.model_copy(update=fields)
    return event._replace(payload=reduced, content=reduced.dump())
