"""The chronological order of memories by the time to which their content refers."""

from __future__ import annotations

from memgraph.model.memory import StoredMemory


def since(memory: StoredMemory) -> str:
    """Return the time from which a memory's content holds, as far as it states one."""
    return memory.valid_at or memory.occurred_at


def in_order(one: StoredMemory, other: StoredMemory) -> tuple[StoredMemory, StoredMemory]:
    """Return two memories in order: by the time from which their content holds, then by when they were recorded, then by id."""
    return (one, other) if _moment(one) <= _moment(other) else (other, one)


def _moment(memory: StoredMemory) -> tuple[str, str, str]:
    return since(memory), memory.created_at, memory.id
