"""Settings of the journal's files: when a segment is closed, whether it is compressed then, and what stays in the archive."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.base import Model

JOURNAL_VARIABLES = {
    "MEMGRAPH_JOURNAL_SEGMENT_DAYS": "journal_segment_days",
    "MEMGRAPH_JOURNAL_COMPRESSION": "journal_compression",
    "MEMGRAPH_ARCHIVE_RETENTION_DAYS": "archive_retention_days",
}
"""Settings by environment variable."""


class JournalSettings(Model):
    """Settings of the journal's files."""

    journal_segment_days: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=30,
        description="Age of a segment's first event, in days, after which the journal continues in a new file. It also does after 64 MiB.",
    )
    journal_compression: bool = Field(
        default=True,
        description="Whether `memgraph sleep` compresses the journal's closed segments, if the extra `zstd` is installed. Every process "
        "that uses the store needs it then.",
    )
    archive_retention_days: Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=0,
        description="Age in days from which `memgraph compact` deletes from archived segments the texts of memories that were deleted, and all "
        "signatures. There is no undo. 0: never.",
    )
