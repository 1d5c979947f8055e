"""Prompt prefix of seed 0, byte for byte. A memory's text is one line and cannot imitate structure."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.model.memory import AgentMemory, EpisodicMemory, ProceduralMemory
from memgraph.model.relevance import confidence_label
from memgraph.text.safe import one_line

_INTRODUCTION = "You have the following relevant memories from past experience:"
_CLOSING = "Use these memories to inform your work. Avoid repeating past mistakes."


def format_prefix(memories: Sequence[AgentMemory]) -> str:
    """Return the text to put before a prompt; empty without memories."""
    if not memories:
        return ""
    lines = "\n".join(f"• {_line(memory)}" for memory in memories)
    return f"{_INTRODUCTION}\n\n{lines}\n\n{_CLOSING}"


def _line(memory: AgentMemory) -> str:
    content = one_line(memory.content)
    if isinstance(memory, EpisodicMemory):
        date = (memory.event_date or memory.occurred_at or memory.created_at or "")[:10]
        place = f" in {one_line(memory.project_id)}" if memory.project_id else ""
        return f"Episodic ({confidence_label(memory.relevance_score)}): On {date}{place}, {content}"
    if isinstance(memory, ProceduralMemory):
        steps = " → ".join(one_line(step) for step in memory.steps) or content
        return f"Procedural: When {one_line(memory.trigger_pattern or memory.title or content)}: {steps}"
    return f"Semantic: {content}"
