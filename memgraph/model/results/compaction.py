"""Result of a compaction."""

from __future__ import annotations

from memgraph.model.base import Bytes, Count, Model, Seconds, Timestamp


class CompactionResult(Model):
    """What a compaction did.

    Attributes
    ----------
    seq, until : int, str or None
        The last event that the baseline stands for, and when it was recorded; 0 and None if there is no baseline.
    is_new : bool
        Whether this compaction made the baseline; else there was nothing more to compact.
    rows, baseline_bytes : int
        Rows of the baseline, and the size of their file.
    archived_segments : int
        Number of segments that were moved to the archive.
    events_left : int
        Number of events after the baseline, which opening verifies.
    journal_bytes, archive_bytes : int
        Size of all segments that are not archived, and of the archive.
    seconds : float
    """

    seq: Count
    until: Timestamp | None
    is_new: bool
    rows: Count
    baseline_bytes: Bytes
    archived_segments: Count
    events_left: Count
    journal_bytes: Bytes
    archive_bytes: Bytes
    seconds: Seconds
