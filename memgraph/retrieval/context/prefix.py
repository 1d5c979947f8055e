"""Prompt prefix of seed 0, byte for byte. A memory's text is one line of visible characters and cannot imitate structure.

Seed 0 knows no sources: only what comes from a tool, an import or a web page has a label before it, and a text that imitates a label
a backslash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memgraph.model.memory import AgentMemory, EpisodicMemory, ProceduralMemory
from memgraph.model.relevance import confidence_label
from memgraph.model.results.retrieval import Authority
from memgraph.retrieval.context.task_labels import lead, source_label, without_labels
from memgraph.text.safe import visible_line

_INTRODUCTION = "You have the following relevant memories from past experience:"
_CLOSING = "Use these memories to inform your work. Avoid repeating past mistakes."


def format_prefix(
    memories: Sequence[AgentMemory],
    labels: Mapping[str, str] | None = None,
    task_items: Mapping[str, Authority] | None = None,
) -> str:
    """Return the text to put before a prompt; empty without memories.

    Parameters
    ----------
    labels, task_items : mapping, optional
        As in `RetrievalResult`: what is put before the texts of other tasks, and of items that hold in a task.
    """
    if not memories:
        return ""
    leads = [
        source_label(memory.trust_class) + lead(memory.id or "", labels or {}, task_items or {}) for memory in memories
    ]
    lines = "\n".join(f"• {_line(memory, before)}" for memory, before in zip(memories, leads, strict=True))
    return f"{_INTRODUCTION}\n\n{lines}\n\n{_CLOSING}"


def _line(memory: AgentMemory, before: str) -> str:
    content = before + _said(memory.content)
    if isinstance(memory, EpisodicMemory):
        date = (memory.event_date or memory.occurred_at or memory.created_at or "")[:10]
        place = f" in {_said(memory.project_id)}" if memory.project_id else ""
        return f"Episodic ({confidence_label(memory.relevance_score)}): On {date}{place}, {content}"
    if isinstance(memory, ProceduralMemory):
        steps = " → ".join(map(_said, memory.steps)) or _said(memory.content)
        when = _said(memory.trigger_pattern or memory.title or memory.content)
        return f"Procedural: {before}When {when}: {steps}"
    return f"Semantic: {content}"


def _said(text: str) -> str:
    return without_labels(visible_line(text))
