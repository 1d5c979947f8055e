"""The text that a memory is found by."""

from __future__ import annotations

from memgraph.ports import Row
from memgraph.text.calendar import in_words


def indexed_text(row: Row) -> str:
    """Content, with what it is about, who said it, when, and its tags."""
    parts = [
        row.get("title"),
        row.get("speaker"),
        in_words(row["occurred_at"]),
        row["content"],
        row.get("trigger_pattern"),
        *row.get("steps", ()),
        *row.get("tags", ()),
    ]
    return "\n".join(part for part in parts if part)
