"""The fold: what events change and what may not be recorded, and the state of the rows that follow from a journal.

Also what a memory was: the last state of a deleted one, and wordings that merges replaced, from the events that name it.

Pure: (old rows, event) → changed rows, or a refusal. An event about a missing memory or record changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from memgraph.fold import memories, records, tasks
from memgraph.fold.workspace import EmptyRows, RowSource, Workspace
from memgraph.journal.envelope import Chain, CommitDraft, Event
from memgraph.model.events.memories import MemoryAdded, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.events.records import OutcomeRecorded, RetrievalRecorded
from memgraph.model.events.registry import POLICIES
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import VECTOR_COLUMNS
from memgraph.ports import Change, Key, Row

SCHEMA_VERSION = "13"
"""Version of the projected rows; a graph of another version is rebuilt."""
_MODULUS = 1 << 256
_LEFT_OUT = VECTOR_COLUMNS | {"seq"}
"""Columns that may differ between equal states: an import has other sequence numbers, another model other vectors."""
_HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    **memories.HANDLERS,
    **records.HANDLERS,
    **tasks.HANDLERS,
}


def fold(workspace: Workspace, event: Event) -> None:
    """Put the rows that an event changes into the workspace."""
    if event.task_id is not None:
        tasks.touch(workspace, event)
    if POLICIES[event.type].has_rows:
        _HANDLERS[event.type](workspace, event, event.payload)


def check(rows: Workspace, drafts: Sequence[CommitDraft], now: str) -> None:
    """Refuse events that do not fit the rows and the events before them; the workspace is used up by it."""
    for draft in drafts:
        for payload in draft.payloads:
            memories.check(rows, draft, payload)
            tasks.check(rows, draft, payload, now)


@dataclass(frozen=True, slots=True)
class Projection:
    """State of a projection after a commit."""

    store_id: str
    seq: int = 0
    signature: str = ""
    timestamp: str = ""
    digest: int = 0
    schema_version: str = SCHEMA_VERSION

    def as_row(self) -> Row:
        """Return the row that the graph stores."""
        row = {name: getattr(self, name) for name in self.__slots__}
        return {**row, "digest": f"{self.digest:064x}"}

    @classmethod
    def from_row(cls, row: Row) -> Projection:
        """Return the state that a row describes."""
        known = {name: row[name] for name in cls.__slots__ if name in row}
        return cls(**{**known, "digest": int(row["digest"], 16)})

    def at(self, chain: Chain) -> Projection:
        """Return this state moved to a point of the journal."""
        return replace(self, seq=chain.seq, signature=chain.signature, timestamp=chain.timestamp)

    def with_digest(self, digest: int) -> Projection:
        """Return this state with another digest."""
        return replace(self, digest=digest)


def project(
    events: Sequence[Event], after: Chain, projection: Projection, old_rows: RowSource, memories: Iterable[Row] = ()
) -> tuple[list[Change], Projection]:
    """Fold the events of whole commits; return the changed rows and the state after them. `memories` are old rows that have been read."""
    workspace = Workspace(old_rows, memories)
    for event in events:
        fold(workspace, event)
    changes = list(workspace.changes())
    return changes, replace(projection.at(after), digest=digest_after(projection.digest, changes))


def digest_after(digest: int, changes: Iterable[Change]) -> int:
    """Return the digest after these changes."""
    for change in changes:
        if change.old is not None:
            digest -= _share(change.table, change.key, change.old)
        if change.new is not None:
            digest += _share(change.table, change.key, change.new)
    return digest % _MODULUS


def _share(table: str, key: Key, row: Row) -> int:
    if table == "Memory":
        kept = dict(row)
        for name in _LEFT_OUT:
            kept.pop(name, None)
    elif table in EXPLICIT_RELATIONS:
        kept = {**row, "source_id": key[0], "target_id": key[1]}
    else:
        return 0
    canonical = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.sha256(table.encode() + b"\x1f" + canonical).digest())


class LastState(NamedTuple):
    """A memory's last row, and every edge that was created at it and not removed, whether or not its other end still exists."""

    row: Row
    edges: list[tuple[str, Key, Row]]


class OtherMemories(EmptyRows):
    """A source in which every memory but some exists. Callers check whether it still does."""

    def __init__(self, memory_ids: Iterable[str]) -> None:
        self._memory_ids = frozenset(memory_ids)

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row with an id and a type for every other memory."""
        return {"id": key, "type": "episodic"} if table == "Memory" and key not in self._memory_ids else None


def last_known(events: Iterable[Event], memory_id: str) -> LastState | None:
    """Return a memory's last state, ignoring its deletions; None if it never existed."""
    workspace: Workspace | None = None
    for event in events:
        payload = event.payload
        begins = isinstance(payload, MemoryAdded) or (isinstance(payload, MemoryUndeleted) and workspace is None)
        if begins and payload.memory.id == memory_id:  # type: ignore[attr-defined]
            # a memory that is added again keeps nothing of its former state
            workspace = Workspace(OtherMemories([memory_id]))
        is_about = memory_id in payload.memory_ids() or isinstance(payload, RetrievalRecorded | OutcomeRecorded)
        if workspace is not None and is_about and not payload.removed_ids():
            fold(workspace, event)
    row = workspace.get("Memory", memory_id) if workspace else None
    return LastState(row, list(workspace.edges_at(memory_id))) if workspace and row else None


def other_wordings(events: Iterable[Event], memory_id: str) -> list[str]:
    """Return a memory's former texts, oldest first: of merged duplicates, and those that these replaced, since the user last replaced the text."""
    text = ""
    found: dict[str, None] = {}
    for event in events:
        payload = event.payload
        if isinstance(payload, MemoryAdded) and payload.memory.id == memory_id:
            text, found = payload.memory.content, {}
        elif isinstance(payload, MemoryMerged | MemoryRevised) and payload.id == memory_id:
            now = event.content.get("changed", {}).get("content", text)
            if isinstance(payload, MemoryMerged):
                found |= dict.fromkeys(filter(None, (text, payload.candidate_content)))
            elif now != text:
                found = {}
            text = now
    return [one for one in found if one != text]
