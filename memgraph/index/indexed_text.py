"""The text under which a memory is indexed."""

from __future__ import annotations

from memgraph.ports import Row, is_known_to_the_source
from memgraph.text.calendar import in_words


def indexed_text(row: Row) -> str:
    """Return the content with its subjects, speaker, date and tags, and a commit's issues and release, which its content leaves out."""
    entities = row.get("entities", ()) if row.get("source") == "git" else ()
    parts = [
        row.get("title"),
        row.get("speaker"),
        in_words(row["occurred_at"]),
        row["content"],
        row.get("trigger_pattern"),
        *row.get("steps", ()),
        *row.get("tags", ()),
        *(
            one["name"]
            for one in entities
            if is_known_to_the_source(one["kind"], one["name"]) and one["name"] not in row["content"]
        ),
    ]
    return "\n".join(part for part in parts if part)
