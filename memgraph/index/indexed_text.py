"""The text under which a memory is indexed."""

from __future__ import annotations

from memgraph.model.timestamps import from_iso
from memgraph.ports import Row

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def indexed_text(row: Row) -> str:
    """Return the content with its subjects, speaker, date and tags."""
    occurred = from_iso(row["occurred_at"])
    parts = [
        row.get("title"),
        row.get("speaker"),
        f"{occurred.day} {_MONTHS[occurred.month - 1]} {occurred.year}",
        row["content"],
        row.get("trigger_pattern"),
        *row.get("steps", ()),
        *row.get("tags", ()),
    ]
    return "\n".join(part for part in parts if part)
