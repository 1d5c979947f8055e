"""Events about the store itself, and about what was removed from the journal for good."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from memgraph.model.base import Count, Name, Strict, Text, Timestamp
from memgraph.model.events.payload import ANY, JOURNAL, STORE, JournalPayload, Payload, Policy, Sha256, Whole, nothing
from memgraph.model.ids import MemoryId
from memgraph.model.results.maintenance import ResetScope


class StoreCreated(JournalPayload, type="store.created"):
    """The first event of every journal."""

    POLICY = replace(JOURNAL, agents="whole")

    created_by: Name


class EmbeddingSwitched(JournalPayload, type="embedding.switched"):
    """From this event on, this model makes the vectors."""

    SCOPES = ANY
    POLICY = replace(
        JOURNAL, agents="whole", irreversible="it names the embedding model; `memgraph reembed` switches back"
    )

    model: Name
    dimension: Annotated[int, Field(ge=1, le=65_536)]


class CommitUndone(Payload, type="commit.undone"):
    """A commit was undone: the other events of this event's commit are its inverse."""

    BY_STORE_ALONE = True
    POLICY = STORE

    commit_id: MemoryId
    """If it was itself an undoing, this one is a redoing."""
    seq: Whole
    """Of that commit's first event."""


class KeyRotated(JournalPayload, type="key.rotated"):
    """The last event under a key: from the next one on, another key signs. The key that is replaced signs this event."""

    key_id: Name
    """Such as ``file:store:2-0123456789abcdef``."""
    previous_key_id: Name
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """Public digest of the new key's secret."""
    rotated_by: Name


class JournalResealed(JournalPayload, type="journal.resealed"):
    """All earlier events were verified and signed anew with one key; the earlier keys are no longer needed."""

    seq: Whole
    signature: Sha256
    """Of the last event before the resealing, `seq`: the head of the chain that was replaced."""
    sha256: Sha256
    """Of the bytes that were replaced, all segments in order."""
    key_id: Name
    freed_key_ids: Annotated[list[Name], Field(min_length=1, max_length=64)]
    """Keys of the replaced signatures."""
    resealed_by: Name


class StoreReset(JournalPayload, type="store.reset"):
    """Memories, and all rows of some tables, were removed from every view, in one or more such events of a commit; the history stays."""

    POLICY = Policy(
        carries=nothing,
        purge="stays",
        agents="in_part",
        irreversible="`memgraph undelete ID` restores one memory; a copy of the store's directory made before restores everything",
        is_act=True,
        told="removed by a reset",
        lineage="changed",
    )

    scope: ResetScope
    """``memory``: facts, pins and tasks were kept."""
    removed: list[MemoryId] = Field(default_factory=list)
    """The removed memories, the last recorded one first."""
    cleared: dict[Name, Count] = Field(default_factory=dict)
    """The tables whose rows were removed, all of them, and how many there were."""

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return self.removed

    def removed_ids(self) -> list[str]:
        """Return the memories that it removes from every view."""
        return self.removed


class AcceptedWitness(Strict):
    """A witness that contradicted the journal, and the event that it names if it could be read. Checkpoints were witnesses of earlier releases."""

    kind: Literal["head", "checkpoint"]
    state: Literal["ahead", "missing", "damaged", "other"]
    seq: Whole | None = None
    signature: Sha256 | None = None


class JournalRepaired(JournalPayload, type="journal.repaired"):
    """The journal was accepted as it was, up to `seq`, although a witness contradicted it; `events_lost` counts events known to have been written after that."""

    POLICY = STORE

    seq: Whole
    signature: Sha256
    witnesses: Annotated[list[AcceptedWitness], Field(min_length=1, max_length=2)]
    events_lost: Whole
    dropped_bytes: Whole
    repaired_at: Timestamp
    repaired_by: Name
    reason: Text | None = None


class KeptVectors(Strict):
    """How many vectors of a model the journal named at some point."""

    model: Name
    dimension: Annotated[int, Field(ge=1, le=65_536)]
    rows: Whole


class BackupMade(JournalPayload, type="backup.made"):
    """A backup of all events up to `seq` was written to `path`."""

    backup_id: MemoryId
    path: Text
    seq: Whole
    signature: Sha256
    """This and what follows up to `offset` say where the journal ends in the backup: the last event, and the position after it."""
    recorded_until: Timestamp
    segment: Name
    offset: Whole
    journal_sha256: Sha256
    """Of all bytes of the journal up to there: if they have changed since, no incremental backup can follow this one."""
    vector_files: Annotated[list[KeptVectors], Field(max_length=1_000)] = Field(default_factory=list)
    size_bytes: Whole
    base_id: MemoryId | None = None
    """The backup that an incremental one continues."""
    made_by: Name


class StoreRestored(JournalPayload, type="store.restored"):
    """The store's journal was restored from a backup, up to `seq`."""

    backup_id: MemoryId
    made_at: Timestamp
    seq: Whole
    signature: Sha256
    backup_seq: Whole
    """The last event in the backup; later than `seq` if only a part of it was asked for."""
    copy_id: MemoryId | None = None
    """Names the head file of this copy of the store, if another copy's head file was there."""
    kept_seq: Whole | None = None
    """For a repair: the last event after the backup's that was kept from the damaged journal."""
    events_lost: Whole = 0
    """For a repair: number of events known to have been written and not restored."""
    quarantine: Name | None = None
    """For a repair: folder, in the store's, with the files that were replaced."""
    restored_at: Timestamp
    restored_by: Name


class JournalCut(JournalPayload, type="journal.cut"):
    """The end of a damaged journal was moved to `quarantine`: its events are not replayed any more."""

    part: Literal["tail", "segment"]
    """``tail``: everything after the last event that verifies; ``segment``: a segment and all after it."""
    seq: Whole
    """The last event that was kept."""
    signature: Sha256
    quarantine: Name
    """Folder, in the store's, with what was cut off."""
    cut_bytes: Whole
    events_lost: Whole
    """Number of events known to have been written after `seq`."""
    cut_at: Timestamp
    cut_by: Name
    reason: Text | None = None


class StoreMigrated(JournalPayload, type="store.migrated"):
    """All events up to `seq` were verified and read by this release, and graph and index were made with its schema."""

    POLICY = STORE

    seq: Whole
    signature: Sha256
    journal_sha256: Sha256
    """Of the journal's bytes up to `seq`. They are not rewritten: events of earlier versions are converted when they are read."""
    schema_before: Name | None = None
    """None: there was no graph."""
    schema_version: Name
    converted: Whole
    """Number of events of earlier versions."""
    digest: Sha256
    """Of the state."""
    migrated_at: Timestamp
    migrated_by: Name


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
    """Vectors of one model that are gone from now on."""

    model: Name
    rows: Annotated[list[Count], Field(min_length=1, max_length=MAX_PURGED)]


class Follower(Strict):
    """A memory that followed a purged one, and its nearest predecessor that is left."""

    id: MemoryId
    previous_id: MemoryId | None = None


_Ids = Annotated[list[MemoryId], Field(max_length=MAX_PURGED)]


class MemoryPurged(JournalPayload, type="memory.purged"):
    """Payloads of earlier events, and the memories that they were about, were removed; as the intent, it is written before that."""

    POLICY = Policy(
        carries=nothing,
        purge="stays",
        irreversible="what it removed is gone for good",
        is_act=True,
        told="memories that it was linked with were purged",
        lineage="changed",
    )

    ids: _Ids = Field(default_factory=list)
    """The memories that were asked for."""
    derived_ids: _Ids = Field(default_factory=list)
    copied_ids: _Ids = Field(default_factory=list)
    """Memories that contained the same words."""
    restated_ids: _Ids = Field(default_factory=list)
    """Memories that are left, and begin again with an event before this one: their history contained the same words."""
    kept_ids: _Ids = Field(default_factory=list)
    """Memories that contain the same words, and that the user wanted to keep."""
    related_ids: _Ids = Field(default_factory=list)
    """Memories that are left, and whose links to the others are gone."""
    ranges: Annotated[list[SeqRange], Field(min_length=1, max_length=MAX_PURGED)]
    """The events whose payloads are removed, in order."""
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
