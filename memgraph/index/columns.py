"""The index's columns, with one value per memory, and the words that they store as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from memgraph.model.memory import RECORD_SOURCES, TrustClass
from memgraph.model.results.learning import COUNTING_SOURCE
from memgraph.model.results.retrieval import Authority

TIERS = ("public", "sensitive", "private")
TRUST: tuple[TrustClass, ...] = ("user", "agent", "tool", "imported", "web")
CHAT_SOURCE = "chat memory"
"""Source of what a model marked as concerning its chat alone (`memgraph.tasks.absorbing`)."""
SESSION_SOURCES = frozenset({"turn", CHAT_SOURCE, "chat context", "working memory"})
"""Sources of what is only told in its own session. What was extracted from a session is knowledge of its project."""
PIN_SOURCE = "pin"
"""Source of pins (`memgraph.tasks`): no other memory is merged with one or replaces it."""
SAVED_SOURCES = frozenset({"remember", "observation", PIN_SOURCE})
"""Sources of facts and preferences that somebody asked to keep."""
PROMOTED_SOURCE = "transient"
"""Source of kept texts that somebody promoted: memories like others in a recall, and kept by a reset like what was saved."""
TRANSCRIPT_SOURCE = "turn"
"""Source of what was said in a session, verbatim. What was extracted from a transcript is a memory like others."""
CONSTRAINT_TAG = "constraint"
"""Tag of a pinned memory that holds for every task of its scope, whatever the task says."""
FACT_TAG = "fact"
FACT_TAGS = frozenset({FACT_TAG, "temporary"})
"""Tags of a pinned memory that is to be found when it concerns the task, and is no standing rule."""
ITEM_SOURCE = "item"
"""Source of values that are kept under a namespace and a key (`memgraph.items`). Each is about its own key."""
AUTHORITIES: tuple[Authority, ...] = get_args(Authority)
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
    "is_record": np.bool_,
    "is_counted": np.bool_,
    "type": np.int8,
    "outcome": np.int8,
    "tier": np.int8,
    "trust": np.int8,
    "authority": np.int8,
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


def columns_of_source(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a memory's row that follow from its source."""
    source = row.get("source")
    authority: Authority = "transcript" if source == TRANSCRIPT_SOURCE else "memory"
    if source == PIN_SOURCE and row.get("is_pinned", False):
        authority = "pin"
    return {
        "authority": AUTHORITIES.index(authority),
        "is_session_bound": source in SESSION_SOURCES and row.get("session_id") is not None,
        "is_saved": source in SAVED_SOURCES,
        "is_record": source in RECORD_SOURCES,
        "is_counted": source == COUNTING_SOURCE,
    }
