"""Events about recalls: retrieved memories, outcomes and uses, and what agents were refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Count, Finite, Name, Strict, Text, Timestamp
from memgraph.model.events.payload import STORE, SYSTEM, Payload, Policy, Sha256, nothing
from memgraph.model.ids import MemoryId
from memgraph.model.memory import MemoryType, PrivacyTier


class AccessEffect(Strict):
    """A memory's use and relevance after an access."""

    id: MemoryId
    access_count: Count
    last_accessed_at: Timestamp
    relevance_anchor: Finite
    relevance_at: Timestamp


class AccessRecorded(Payload):
    """Memories were used."""

    TYPE = "access.recorded"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records that memories were used",
        told="used",
        is_of_reading=True,
    )

    accesses: Annotated[list[AccessEffect], Field(min_length=1)]

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [effect.id for effect in self.accesses]


class RecalledItem(Strict):
    """One memory of a retrieval."""

    id: MemoryId
    type: MemoryType
    score: Finite
    tokens: Count


class RetrievalRecorded(Payload):
    """An agent received these memories. `query_hmac` is an HMAC: the query itself is not stored."""

    TYPE = "retrieval.recorded"
    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records which memories a recall returned",
        is_of_reading=True,
    )

    query_id: MemoryId
    query_hmac: Sha256
    retrieved_at: Timestamp
    settings_version: Name
    agent_name: Name | None = None
    project_id: Name | None = None
    session_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    total_tokens: Count
    results: list[RecalledItem] = Field(default_factory=list)


class OutcomeRecorded(Payload):
    """The outcome of a retrieval."""

    TYPE = "outcome.recorded"
    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records the outcome of a recall; record the right outcome instead",
        is_act=True,
    )

    query_id: MemoryId
    outcome: Name
    used: list[MemoryId] = Field(default_factory=list)
    overridden: list[MemoryId] = Field(default_factory=list)
    recorded_at: Timestamp


class AccessAudited(Payload):
    """An agent was refused what it asked for, or got sensitive memories with a justification.

    Attributes
    ----------
    operation : str
        What it asked to do: ``read``, ``search`` or ``write``.
    domain, tier : str or None
        What it asked for; None: not stated.
    is_refused : bool
        Whether it was refused.
    justification : str or None
        As the agent stated it, without secrets.
    disclosed_ids : list of str
        The sensitive memories that it got.
    """

    TYPE = "access.audited"
    SCOPES = SYSTEM
    POLICY = replace(STORE, is_of_reading=True)

    agent: Name
    operation: Name
    domain: Name | None = None
    tier: PrivacyTier | None = None
    is_refused: bool
    reason: Text | None = None
    justification: Text | None = None
    disclosed_ids: Annotated[list[MemoryId], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    audited_at: Timestamp
