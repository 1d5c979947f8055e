"""The projection's state: its journal position and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import orjson

from memgraph.fold.fold import fold
from memgraph.fold.workspace import RowSource, Workspace
from memgraph.journal.envelope import Chain, Event
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import VECTOR_COLUMNS
from memgraph.ports import Change, Key, Row

SCHEMA_VERSION = "10"
"""Version of the projected rows; a graph of another version is rebuilt."""
_MODULUS = 1 << 256
_LEFT_OUT = VECTOR_COLUMNS | {"seq"}
"""Columns that may differ between equal states: an import has other sequence numbers, another model other vectors."""


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
