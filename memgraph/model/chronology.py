"""What was so first: the order of memories in the time that they tell of."""

from __future__ import annotations

from memgraph.model.memory import AgentMemory


def since(memory: AgentMemory) -> str:
    """Return since when what a memory says is so, as far as it tells."""
    return memory.valid_at or memory.occurred_at or memory.created_at or ""


def in_order(one: AgentMemory, other: AgentMemory) -> tuple[AgentMemory, AgentMemory]:
    """Return two memories, what was so first before what was so later; then by when they were recorded, then by id."""
    return (one, other) if _moment(one) <= _moment(other) else (other, one)


def _moment(memory: AgentMemory) -> tuple[str, str, str]:
    return since(memory), memory.created_at or "", memory.id or ""
