"""The event of a run that made generalisations of episodes; they themselves are events of memories and links before it."""

from __future__ import annotations

from memgraph.model.base import Count, Timestamp
from memgraph.model.ids import natural_id
from memgraph.model.payload import SYSTEM, Payload

COMPRESSION = natural_id("lifecycle run", "compression")
"""Key of the row that says when compression last ran, and how many builds came since."""


class CompressionApplied(Payload):
    """Every change before this event is in the generalisations that there are."""

    TYPE = "compression.applied"
    SCOPES = SYSTEM

    applied_at: Timestamp
    episodes: Count
    """That were looked at."""
    communities: Count
    """That they form, of two episodes or more."""
    created: Count
    updated: Count
    superseded: Count
    retired: Count
