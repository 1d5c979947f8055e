"""Events about what agents asked for and what their permissions said."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Name, Text, Timestamp
from memgraph.model.events.payload import SYSTEM, Payload
from memgraph.model.ids import MemoryId
from memgraph.model.memory import PrivacyTier


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

    agent: Name
    operation: Name
    domain: Name | None = None
    tier: PrivacyTier | None = None
    is_refused: bool
    reason: Text | None = None
    justification: Text | None = None
    disclosed_ids: Annotated[list[MemoryId], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    audited_at: Timestamp
