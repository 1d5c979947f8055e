"""The index's columns, with one value per memory, and the words that they store as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from memgraph.model.memory import TrustClass

TIERS = ("public", "sensitive", "private")
TRUST: tuple[TrustClass, ...] = ("user", "agent", "tool", "imported", "web")
SESSION_SOURCES = frozenset({"turn", "chat memory", "chat context", "working memory"})
"""Sources of what is only told in its own session. What was extracted from a session is knowledge of its project."""
PIN_SOURCE = "pin"
"""Source of pins (`memgraph.tasks`): no other memory is merged with one or replaces it."""
SAVED_SOURCES = frozenset({"remember", "observation", PIN_SOURCE})
"""Sources of facts and preferences that somebody asked to keep."""
ITEM_SOURCE = "item"
"""Source of values that are kept under a namespace and a key (`memgraph.items`). Each is about its own key."""
OUTCOMES = ("positive", "negative", "neutral", "unknown")
NEVER = np.inf

COLUMN_TYPES: dict[str, Any] = {
    "is_live": np.bool_,
    "is_suppressed": np.bool_,
    "is_archived": np.bool_,
    "is_pinned": np.bool_,
    "lacks_summary": np.bool_,
    "asks": np.bool_,
    "is_session_bound": np.bool_,
    "is_saved": np.bool_,
    "type": np.int8,
    "outcome": np.int8,
    "tier": np.int8,
    "trust": np.int8,
    "project": np.int32,
    "session": np.int32,
    "task": np.int32,
    "domain": np.int32,
    "speaker": np.int32,
    "previous": np.int32,
    "following": np.int32,
    "vector_row": np.int32,
    "vector_model": np.int32,
    "vector_place": np.int32,
    "terms": np.int32,
    "words": np.int32,
    "access_count": np.int32,
    "anchor": np.float64,
    "anchored_days": np.float64,
    "floor": np.float64,
    "confidence": np.float64,
    "occurred_days": np.float64,
    "created_days": np.float64,
    "accessed_days": np.float64,
    "invalid_days": np.float64,
    "seq": np.int64,
}
COLUMNS = tuple(COLUMN_TYPES)
EMPTY = {"previous": -1, "following": -1}
QUESTION_MARKS = ("?", "？", "؟")


def flags_of_source(row: Mapping[str, Any]) -> dict[str, bool]:
    """Return the columns of a memory's row that follow from its source."""
    source = row.get("source")
    return {
        "is_session_bound": source in SESSION_SOURCES and "session_id" in row,
        "is_saved": source in SAVED_SOURCES,
    }
