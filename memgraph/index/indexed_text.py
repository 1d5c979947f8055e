"""The text under which a memory is indexed."""

from __future__ import annotations

from memgraph.ports import Row
from memgraph.text.calendar import in_words


def indexed_text(row: Row) -> str:
    """Return the content with its subjects, speaker, date, tags and issues."""
    parts = [
        row.get("title"),
        row.get("speaker"),
        in_words(row["occurred_at"]),
        row["content"],
        row.get("trigger_pattern"),
        *row.get("steps", ()),
        *row.get("tags", ()),
        *(entity["name"] for entity in row.get("entities", ()) if entity["kind"] == "issue"),
    ]
    return "\n".join(part for part in parts if part)
