"""Counts, listings, exports and the result of a command."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Bytes, Count, Model, Timestamp
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, MemoryType, Outcome, PrivacyTier
from memgraph.model.relevance import ConfidenceLabel

EXPORT_VERSION = "1.0.0"


class MemoryStats(Model):
    """Counts over all memories that are neither archived nor deleted."""

    total: Count
    by_type: dict[MemoryType, int]
    avg_relevance: float
    pinned_count: Count
    suppressed_count: Count
    db_size_bytes: Bytes


State = Literal["suppressed", "archived", "invalidated", "superseded"]


class MemoryListEntry(Model):
    """One line of a listing; `content` is cut to 80 characters.

    Attributes
    ----------
    states : list of {"suppressed", "archived", "invalidated", "superseded"}
        The states in which it is not recalled; empty if it is in force.
    """

    id: str
    type: MemoryType
    content: str
    relevance_score: float
    confidence_label: ConfidenceLabel
    outcome: Outcome
    age: str
    access_count: Count
    is_pinned: bool
    privacy_tier: PrivacyTier = "public"
    states: list[State] = Field(default_factory=list)


class MemoryCommandResult(Model):
    """Result of a command, as text and as data."""

    command: str
    success: bool
    message: str
    data: Any = None


class MemoryExport(Model):
    """Every memory that is not deleted, including suppressed ones, with their links; or, for others, only what may be disclosed.

    `embedding_model` names the model of the vectors; a store with another model embeds the texts again on import.
    """

    version: str
    exported_at: Timestamp
    total_memories: Count
    memories: list[SerializeAsAny[AgentMemory]]
    links: list[Link] = Field(default_factory=list)
    embedding_model: str | None = None
