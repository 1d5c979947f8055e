"""Memories that leave something undecided, and statements about them."""

from __future__ import annotations

from typing import Any

ERROR = "lock of the import queue timed out"


def failure(day: int, **fields: Any) -> dict[str, Any]:
    return episode(day, f"The import failed: {ERROR} after 30 s", "negative") | fields


def fix(day: int, **fields: Any) -> dict[str, Any]:
    return episode(day, "The import works: one worker per queue, not two", "positive") | fields


def episode(day: int, content: str, outcome: str, **fields: Any) -> dict[str, Any]:
    met = [{"type": "TimeoutError", "message": ERROR}]
    known = {"type": "episodic", "content": content, "outcome": outcome, "project_id": "shop", "build_id": f"b{day}"}
    return {**known, "occurred_at": f"2026-01-{day:02}", "errors_encountered": met, **fields}


def statement(**changes: Any) -> dict[str, Any]:
    """Return a statement that the excerpt of the returned failure supports."""
    known = {
        "type": "semantic",
        "content": "The import needs one worker per queue.",
        "outcome": "neutral",
        "confidence": 0.8,
    }
    evidence = ["The import works: one worker per queue, not two"]
    return {
        **known,
        "content": "The import works: one worker per queue, not two",
        "tags": ["import"],
        "evidence": evidence,
        **changes,
    }
