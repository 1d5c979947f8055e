"""What is recorded again because a purge removes the event that said it, without what was purged."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from memgraph.model.events.payload import Payload, WriteScope
from memgraph.model.events.records import BuildConsolidated
from memgraph.model.events.registry import STATES_MEMORY
from memgraph.model.events.tasks import (
    ChatContextSet,
    LedgerCheckpointed,
    SessionTasksSet,
    TransientRemoved,
    TransientSet,
    WorkingMemorySet,
)
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
    """Return what clears the notes of sessions and agents whose last statement is among these events: a former one must not hold again.

    Where no former one is left, nothing is recorded: it would repeat the name, which may be what is purged.
    """
    last: dict[tuple[str, str], int] = {}
    is_left: set[tuple[str, str]] = set()
    for record in records:
        if record.type in _CLEARED:
            place = record.type, record.content["session_id"]
        elif record.type == TransientSet.TYPE:
            place = record.type, record.content["item_id"]
        elif record.type == LedgerCheckpointed.TYPE:
            place = record.type, record.content["agent"]
        else:
            continue
        last[place] = record.seq
        if record.seq not in seqs:
            is_left.add(place)
    return [
        Restated("system", _without_words(*place)) for place, seq in last.items() if seq in seqs and place in is_left
    ]


def stacks(
    records: Iterable[Record], seqs: set[int], lost: Container[str], is_said: Callable[[str], bool]
) -> list[Restated]:
    """Return what sessions work on without these tasks, where they would otherwise work on one that is lost, or again on a former one."""
    last: dict[str, Record] = {}
    is_left: set[str] = set()
    for record in records:
        if record.type == SessionTasksSet.TYPE:
            session_id = record.content["session_id"]
            last[session_id] = record
            if record.seq not in seqs:
                is_left.add(session_id)
    found: list[Restated] = []
    for session_id, record in last.items():
        stack = record.content.get("stack", [])
        stays = [one for one in stack if one not in lost and not is_said(one)]
        if record.seq in seqs:
            is_needed = not is_said(session_id) and (bool(stays) or session_id in is_left)
        else:
            is_needed = any(one in lost for one in stack)
        if is_needed:
            found.append(Restated("system", SessionTasksSet(session_id=session_id, stack=stays)))
    return found


def _without_words(type_: str, name: str) -> Payload:
    if type_ in _CLEARED:
        return _CLEARED[type_](session_id=name)
    return LedgerCheckpointed(agent=name) if type_ == LedgerCheckpointed.TYPE else TransientRemoved(item_ids=[name])
