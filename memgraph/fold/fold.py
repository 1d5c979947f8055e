"""The fold: what events change and what may not be recorded, and the state of the rows that follow from a journal.

Pure: (old rows, event) → changed rows, or a refusal. An event about a missing memory or record changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from memgraph.fold import memories, records, tasks
from memgraph.fold.workspace import RowSource, Workspace
from memgraph.journal.envelope import Chain, CommitDraft, Event
from memgraph.model.events.registry import POLICIES
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import VECTOR_COLUMNS
from memgraph.ports import Change, Key, Row

SCHEMA_VERSION = "10"
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
    events: Sequence[Event], after: Chain, projection: Projection, old_rows: RowSource
) -> tuple[list[Change], Projection]:
    """Fold the events of whole commits; return the changed rows and the state after them."""
    workspace = Workspace(old_rows)
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
        kept: Row = {name: value for name, value in row.items() if name not in _LEFT_OUT}
    elif table in EXPLICIT_RELATIONS:
        kept = {**row, "source_id": key[0], "target_id": key[1]}
    else:
        return 0
    canonical = orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.sha256(table.encode() + b"\x1f" + canonical).digest())
