"""What was so first: the order of memories in the time that they tell of."""

from __future__ import annotations

from memgraph.model.memory import StoredMemory


def since(memory: StoredMemory) -> str:
    """Return since when what a memory says is so, as far as it tells."""
    return memory.valid_at or memory.occurred_at


def in_order(one: StoredMemory, other: StoredMemory) -> tuple[StoredMemory, StoredMemory]:
    """Return two memories, what was so first before what was so later; then by when they were recorded, then by id."""
    return (one, other) if _moment(one) <= _moment(other) else (other, one)


def _moment(memory: StoredMemory) -> tuple[str, str, str]:
    return since(memory), memory.created_at, memory.id
