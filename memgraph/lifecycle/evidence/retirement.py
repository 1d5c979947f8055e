"""Retirement of a derived memory that lost its evidence: invalidate it, and drop words that only withdrawn episodes said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.model.memory import StoredMemory
from memgraph.ports import Row

NO_EVIDENCE_LEFT = "too few of the builds that it was seen in are left"
NO_LESSON = "what it was made of states no common lesson"
"""Reasons of the retirement of a derived memory."""
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
"""Fields that may hold words of the evidence, with their empty values."""


def retired(
    before: StoredMemory, text: str | None, state: Mapping[str, Any], *, now: str, tags: Sequence[str] = ()
) -> StoredMemory:
    """Return a derived memory in its retired state.

    Parameters
    ----------
    text : str or None
        Its new text, instead of the words of withdrawn evidence. None: no evidence was withdrawn, and it keeps its
        words.
    state : mapping
        The fields that take it out of force.
    tags : sequence of str
        The tags that it keeps with the new text.
    """
    words = {name: empty for name, empty in _WORDS.items() if name in type(before).model_fields}
    wordless = {} if text is None else {**words, "content": text, "tags": list(tags)}
    return before.model_copy(update={**wordless, **state, "updated_at": now})


def no_longer_valid(at: str, reason: str = NO_EVIDENCE_LEFT) -> dict[str, Any]:
    """Return the fields that invalidate a derived memory, by default for lack of evidence."""
    return {"invalid_at": at, "invalidation_reason": reason}


def was_retired(row: Row) -> bool:
    """Return whether the lifecycle itself retired a derived memory, so that it may be restored."""
    return row.get("invalidation_reason") in (NO_EVIDENCE_LEFT, NO_LESSON) and not row.get("is_suppressed")
