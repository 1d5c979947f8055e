"""Events about what was removed from the journal's files for good: by a purge, or after the retention days."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from memgraph.model.base import Count, Name, Strict, Timestamp
from memgraph.model.events.payload import JOURNAL, SYSTEM, Payload, Policy, Whole, nothing
from memgraph.model.ids import MemoryId

REMOVED_TEXT = "[text removed after the retention days]"
"""In place of the words of a memory that was deleted, in events that are older than the retention days."""


class ArchiveCondensed(Payload):
    """From this event on, archived events up to `through` have no signatures, and no words of memories that were deleted by then.

    It is recorded before the segments are replaced.

    Attributes
    ----------
    until : str
        When the event `through` was recorded.
    segments, memories : int
        Number of archived segments up to there, and of the memories whose words are removed now.
    retention_days : int
        The setting ``archive_retention_days``.
    """

    TYPE = "archive.condensed"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = JOURNAL

    through: Whole
    until: Timestamp
    segments: Count
    memories: Count
    retention_days: Annotated[int, Field(ge=1, le=100_000)]
    condensed_at: Timestamp
    condensed_by: Name


MAX_PURGED = 100_000
"""Maximum number of entries of each list: with the longest ones a line stays below its maximum size."""


class SeqRange(Strict):
    """Sequence numbers from `first` to `last`, both included."""

    first: Whole
    last: Whole

    @model_validator(mode="after")
    def _in_order(self) -> SeqRange:
        if self.first > self.last:
            raise ValueError("ends before it begins")
        return self


class PurgedRows(Strict):
    """Rows of one model's vector file that are all zeros from now on."""

    model: Name
    rows: Annotated[list[Count], Field(min_length=1, max_length=MAX_PURGED)]


class Follower(Strict):
    """A memory that followed a purged one, and its nearest predecessor that is left."""

    id: MemoryId
    previous_id: MemoryId | None = None


_Ids = Annotated[list[MemoryId], Field(max_length=MAX_PURGED)]


class MemoryPurged(Payload):
    """The payloads of earlier events were removed from the journal, and with them the memories that they were about.

    It is written before they are removed, so it is also the intent: whoever opens the store next completes what it names.

    Attributes
    ----------
    ids : list of str
        The memories that were asked for.
    derived_ids : list of str
        Memories that were derived from them.
    copied_ids : list of str
        Memories that contained the same words.
    restated_ids : list of str
        Memories that are left, and begin again with an event before this one: their history contained the same words.
    kept_ids : list of str
        Memories that contain the same words, and that the user wanted to keep.
    related_ids : list of str
        Memories that are left, and whose links to the others are gone.
    ranges : list of SeqRange
        The events whose payloads are removed, in order.
    vectors : list of PurgedRows
    followers : list of Follower
    """

    TYPE = "memory.purged"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM
    POLICY = Policy(
        carries=nothing,
        purge="stays",
        irreversible="what it removed is gone for good",
        is_act=True,
        told="memories that it was linked with were purged",
        lineage="changed",
    )

    ids: _Ids = Field(default_factory=list)
    derived_ids: _Ids = Field(default_factory=list)
    copied_ids: _Ids = Field(default_factory=list)
    restated_ids: _Ids = Field(default_factory=list)
    kept_ids: _Ids = Field(default_factory=list)
    related_ids: _Ids = Field(default_factory=list)
    ranges: Annotated[list[SeqRange], Field(min_length=1, max_length=MAX_PURGED)]
    vectors: list[PurgedRows] = Field(default_factory=list)
    followers: Annotated[list[Follower], Field(max_length=MAX_PURGED)] = Field(default_factory=list)
    purged_at: Timestamp

    def purged_ids(self) -> list[str]:
        """Return the memories that are gone."""
        return [*self.ids, *self.derived_ids, *self.copied_ids]

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return list(
            dict.fromkeys(
                [*self.purged_ids(), *self.restated_ids, *self.related_ids, *(one.id for one in self.followers)]
            )
        )

    def seqs(self) -> set[int]:
        """Return the sequence numbers of the events whose payloads are removed."""
        return {seq for one in self.ranges for seq in range(one.first, one.last + 1)}


def ranges_of(seqs: set[int]) -> list[SeqRange]:
    """Return sequence numbers as ranges, in order."""
    found: list[list[int]] = []
    for seq in sorted(seqs):
        if found and seq == found[-1][1] + 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    return [SeqRange(first=first, last=last) for first, last in found]
