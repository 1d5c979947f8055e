"""The history of a memory: what each event that concerns it did, who made it, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from memgraph.errors import NotFoundError
from memgraph.journal.envelope import Event
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
from memgraph.model.events.records import OutcomeRecorded, RetrievalRecorded
from memgraph.model.memory import REASONS_OF, VECTOR_COLUMNS
from memgraph.model.results.curation import FieldChange, HistoryEntry
from memgraph.store.editing.commits import Undoings, recorded_commits
from memgraph.store.editing.lives import Lives, differences
from memgraph.text.cutting import preview

_STATES: dict[str, tuple[str, str]] = {
    "is_pinned": ("pinned", "unpinned"),
    "is_suppressed": ("forgotten", "no longer forgotten"),
    "archived_at": ("archived", "no longer archived"),
    "invalid_at": ("marked as invalid from {}", "valid again"),
}
_OF_A_STATE = frozenset(chain.from_iterable(REASONS_OF.values()))
_MOST_NAMED = 3


def history(journal: Journal, memory_id: str) -> list[HistoryEntry]:
    """Return the events that concern a memory, in order, whether or not it is deleted. Two passes over the journal.

    Raises
    ------
    NotFoundError
        The memory never existed.
    """
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
    return _with_undoings(journal, found)


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
        changes=[FieldChange(field=name, old=old, new=new) for name, (old, new) in (changes or {}).items()],
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


def _with_undoings(journal: Journal, found: list[tuple[Event, HistoryEntry]]) -> list[HistoryEntry]:
    """Add which entries undo others, and which are undone."""
    undoings = Undoings()
    first_of: dict[str, int] = {}
    for commit in recorded_commits(journal):
        first_of[commit.id] = commit.first
        undoings.note(commit, journal)
    return [
        entry.model_copy(
            update={
                "undoes": first_of.get(undoings.target_of.get(event.commit_id, "")),
                "undone_by": first_of.get(undoings.undone_by(event.commit_id) or ""),
            }
        )
        for event, entry in found
    ]
