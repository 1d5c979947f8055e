"""Links to memories that a memory quotes besides its evidence, so that the origin of its words is known."""

from __future__ import annotations

from collections.abc import Collection

from memgraph.lifecycle.evidence.evidence import sources_of
from memgraph.model.events.memories import MemoryLinked, MemoryUnlinked
from memgraph.model.events.payload import Payload
from memgraph.store.query import Reader

QUOTED = "it is quoted"
"""Reason of a link to a memory that is no evidence."""


def quoting(
    reader: Reader, memory_id: str, quoted: Collection[str], *, evidence: Collection[str], now: str
) -> list[Payload]:
    """Return the events that link a memory with what it quotes: DERIVED_FROM without SUPPORTS.

    Parameters
    ----------
    evidence : collection of str
        The memories with which it is linked anyway.
    """
    index = reader.index
    known = sources_of(index, memory_id) - set(index.supporting_ids(memory_id))
    new = sorted(set(quoted) - set(evidence) - known)
    old = [one for one in sorted(known - set(quoted) - set(evidence)) if _is_quote(reader, memory_id, one)]
    return [
        *(_event(MemoryLinked, memory_id, one, reason=QUOTED, created_at=now) for one in new),
        *(_event(MemoryUnlinked, memory_id, one) for one in old),
    ]


def _event(kind: type[MemoryLinked | MemoryUnlinked], memory_id: str, other: str, **more: str) -> Payload:
    return kind.parse({"source_id": memory_id, "relation": "DERIVED_FROM", "target_id": other, **more})


def _is_quote(reader: Reader, memory_id: str, other: str) -> bool:
    """Return whether the link was made here and not by a user."""
    return (reader.record("DERIVED_FROM", (memory_id, other)) or {}).get("reason") == QUOTED
