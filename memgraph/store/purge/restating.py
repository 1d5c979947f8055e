"""What is recorded again because a purge removes the event that said it, without what was purged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memgraph.journal.purge.carrying import STATES_MEMORY
from memgraph.model.events.intake import BuildConsolidated
from memgraph.model.events.payload import Payload, WriteScope
from memgraph.model.events.tasks import ChatContextSet, LedgerCheckpointed, TransientRemoved, WorkingMemorySet
from memgraph.store.purge.records import Record

_CLEARED = {WorkingMemorySet.TYPE: WorkingMemorySet, ChatContextSet.TYPE: ChatContextSet}


class Restated(NamedTuple):
    """An event to record, and its write scope."""

    scope: WriteScope
    payload: Payload


def agents_only_of(records: Iterable[Record], gone: set[str]) -> set[str]:
    """Return the agents that only removed memories name."""
    of_gone: set[str] = set()
    of_others: set[str] = set()
    for record in records:
        if record.type not in STATES_MEMORY:
            continue
        row = record.content.get("memory") or record.content.get("changed") or {}
        if agents := row.get("agents_involved"):
            memory_id = row.get("id") or record.content["id"]
            (of_gone if memory_id in gone else of_others).update(agents)
    return of_gone - of_others


def named_builds(records: Iterable[Record], agents: set[str]) -> dict[int, Restated]:
    """Return the records of builds that name one of these agents, by the event that is to be removed, and what says the rest."""
    found = {}
    for record in records:
        if record.type == BuildConsolidated.TYPE and not agents.isdisjoint(record.content.get("agents", ())):
            left = [one for one in record.content["agents"] if one not in agents]
            found[record.seq] = Restated("global", BuildConsolidated.parse({**record.content, "agents": left}))
    return found


def cleared(records: Iterable[Record], seqs: set[int]) -> list[Restated]:
    """Return what clears the notes of sessions and agents whose last statement is among these events: their former one must not hold again."""
    last: dict[tuple[str, str], int] = {}
    for record in records:
        if record.type in _CLEARED:
            last[record.type, record.content["session_id"]] = record.seq
        elif record.type == "transient.set":
            last[record.type, record.content["item_id"]] = record.seq
        elif record.type == LedgerCheckpointed.TYPE:
            last[record.type, record.content["agent"]] = record.seq
    found: list[Restated] = []
    for (type_, name), seq in last.items():
        if seq in seqs:
            found.append(Restated("system", _without_words(type_, name)))
    return found


def _without_words(type_: str, name: str) -> Payload:
    if type_ in _CLEARED:
        return _CLEARED[type_](session_id=name)
    return LedgerCheckpointed(agent=name) if type_ == LedgerCheckpointed.TYPE else TransientRemoved(item_ids=[name])
