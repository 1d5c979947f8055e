"""Retiring a derived memory that lost its evidence: it no longer holds, and repeats nothing that only withdrawn episodes said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.model.memory import StoredMemory
from memgraph.ports import Row

NO_EVIDENCE_LEFT = "too few of the builds that it was seen in are left"
"""Why a derived memory was retired."""
_WORDS: dict[str, Any] = {
    "title": None,
    "pattern": None,
    "incorrect_approach": None,
    "correct_approach": None,
    "asked": None,
    "lesson": None,
    "is_solved": None,
    "trigger_pattern": None,
    "steps": [],
    "prerequisites": [],
    "exit_criteria": [],
    "common_errors": [],
    "agents_involved": [],
    "entities": [],
}
"""Fields that may hold words of the evidence, each with its empty value."""


def retired(
    before: StoredMemory, text: str | None, state: Mapping[str, Any], *, now: str, tags: Sequence[str] = ()
) -> StoredMemory:
    """Return a derived memory as it is once it lost its evidence.

    Parameters
    ----------
    text : str or None
        What it says from now on, instead of the words of evidence that was withdrawn. None: none was, so it keeps its words.
    state : mapping
        The fields that put it out of force.
    tags : sequence of str
        Those that it keeps with such a text.
    """
    words = {name: empty for name, empty in _WORDS.items() if name in type(before).model_fields}
    wordless = {} if text is None else {**words, "content": text, "tags": list(tags)}
    return before.model_copy(update={**wordless, **state, "updated_at": now})


def no_longer_valid(at: str) -> dict[str, Any]:
    """Return the fields that say that a derived memory ceased to hold for want of evidence."""
    return {"invalid_at": at, "invalidation_reason": NO_EVIDENCE_LEFT}


def was_retired(row: Row) -> bool:
    """Whether the lifecycle itself has put a derived memory out of force, so that it may come back."""
    return row.get("invalidation_reason") == NO_EVIDENCE_LEFT and not row.get("is_suppressed")
