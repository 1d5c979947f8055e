"""Events about the store itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import Count, Name, Strict, Text, Timestamp
from memgraph.model.events.payload import ANY, SYSTEM, Payload, Sha256, Whole
from memgraph.model.ids import MemoryId
from memgraph.model.results.maintenance import ResetScope


class StoreCreated(Payload):
    """The first event of every journal."""

    TYPE = "store.created"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    created_by: Name


class EmbeddingSwitched(Payload):
    """From this event on, this model makes the vectors."""

    TYPE = "embedding.switched"
    BY_STORE_ALONE = True
    SCOPES = ANY

    model: Name
    dimension: Annotated[int, Field(ge=1, le=65_536)]


class CommitUndone(Payload):
    """A commit was undone: the other events of this event's commit are its inverse.

    Attributes
    ----------
    commit_id : str
        The commit that was undone. If it was itself an undoing, this one is a redoing.
    seq : int
        Sequence number of the first event of that commit.
    """

    TYPE = "commit.undone"
    BY_STORE_ALONE = True

    commit_id: MemoryId
    seq: Whole


class KeyRotated(Payload):
    """The last event under a key: from the next one on, another key signs. The key that is replaced signs this event.

    Attributes
    ----------
    key_id, previous_key_id : str
        Ids of the keys, such as ``file:store:2-0123456789abcdef``.
    fingerprint : str
        Public digest of the new key's secret.
    """

    TYPE = "key.rotated"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    key_id: Name
    previous_key_id: Name
    fingerprint: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    rotated_by: Name


class JournalResealed(Payload):
    """All earlier events were verified and signed anew with one key; the earlier keys are no longer needed.

    Attributes
    ----------
    seq, signature : int, str
        Last event before the resealing, and the signature that it had: the head of the chain that was replaced.
    sha256 : str
        Digest of the bytes that were replaced, all segments in order.
    freed_key_ids : list of str
        Keys of the replaced signatures.
    """

    TYPE = "journal.resealed"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    seq: Whole
    signature: Sha256
    sha256: Sha256
    key_id: Name
    freed_key_ids: Annotated[list[Name], Field(min_length=1, max_length=64)]
    resealed_by: Name


class StoreReset(Payload):
    """Memories, and all rows of some tables, were removed from every view. Their history stays.

    A reset that removes more memories than one event can name is one commit of several such events.

    Attributes
    ----------
    scope : {"memory", "all"}
        Whether facts, pins and tasks were kept.
    removed : list of str
        The removed memories, the last recorded one first.
    cleared : dict of str to int
        The tables whose rows were removed, all of them, and how many there were.
    """

    TYPE = "store.reset"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    scope: ResetScope
    removed: list[MemoryId] = Field(default_factory=list)
    cleared: dict[Name, Count] = Field(default_factory=dict)

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return self.removed

    def removed_ids(self) -> list[str]:
        """Return the memories that it removes from every view."""
        return self.removed


class AcceptedWitness(Strict):
    """A witness that contradicted the journal, and the event that it names if it could be read."""

    kind: Literal["head", "checkpoint", "manifest"]
    state: Literal["ahead", "missing", "damaged", "other"]
    seq: Whole | None = None
    signature: Sha256 | None = None


class JournalRepaired(Payload):
    """The journal was accepted as it was, up to `seq`, although its head file, its checkpoint or a manifest contradicted it.

    `events_lost` counts events known to have been written after that. Since version 2 the manifest of closed segments is a witness.
    """

    TYPE = "journal.repaired"
    VERSION = 2
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    seq: Whole
    signature: Sha256
    witnesses: Annotated[list[AcceptedWitness], Field(min_length=1, max_length=3)]
    events_lost: Whole
    dropped_bytes: Whole
    repaired_at: Timestamp
    repaired_by: Name
    reason: Text | None = None


class KeptVectors(Strict):
    """How many rows of a model's vector file the journal named at some point."""

    model: Name
    dimension: Annotated[int, Field(ge=1, le=65_536)]
    rows: Whole


class BackupMade(Payload):
    """A backup of all events up to `seq` was written to `path`.

    Attributes
    ----------
    backup_id : str
        Id of the backup, which its manifest contains.
    signature, recorded_until, segment, offset : str, str, str, int
        The journal's end in the backup: the last event's signature and time, and the position after it.
    journal_sha256 : str
        SHA-256 of all bytes of the journal up to there. If they have changed since, no incremental backup can follow this one.
    base_id : str or None
        The backup that an incremental one continues.
    """

    TYPE = "backup.made"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    backup_id: MemoryId
    path: Text
    seq: Whole
    signature: Sha256
    recorded_until: Timestamp
    segment: Name
    offset: Whole
    journal_sha256: Sha256
    vector_files: Annotated[list[KeptVectors], Field(max_length=1_000)] = Field(default_factory=list)
    size_bytes: Whole
    base_id: MemoryId | None = None
    made_by: Name


class StoreRestored(Payload):
    """The store's journal was restored from a backup, up to `seq`.

    Attributes
    ----------
    backup_id, made_at : str
        The backup, and when it was made.
    seq, signature : int, str
        The last event that was restored.
    backup_seq : int
        The last event in the backup; later than `seq` if only a part of it was asked for.
    copy_id : str or None
        Names the head file of this copy of the store, if another copy's head file was there.
    kept_seq : int or None
        For a repair: the last event after the backup's that was kept from the damaged journal.
    events_lost : int
        For a repair: number of events known to have been written and not restored.
    quarantine : str or None
        For a repair: folder, in the store's, with the files that were replaced.
    """

    TYPE = "store.restored"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    backup_id: MemoryId
    made_at: Timestamp
    seq: Whole
    signature: Sha256
    backup_seq: Whole
    copy_id: MemoryId | None = None
    kept_seq: Whole | None = None
    events_lost: Whole = 0
    quarantine: Name | None = None
    restored_at: Timestamp
    restored_by: Name


class JournalCut(Payload):
    """The end of a damaged journal was moved to `quarantine`: its events are not replayed any more.

    Attributes
    ----------
    part : {"tail", "segment"}
        Everything after the last event that verifies, or a segment and all after it.
    seq, signature : int, str
        The last event that was kept.
    quarantine : str
        Folder, in the store's, with what was cut off.
    events_lost : int
        Number of events known to have been written after `seq`.
    """

    TYPE = "journal.cut"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    part: Literal["tail", "segment"]
    seq: Whole
    signature: Sha256
    quarantine: Name
    cut_bytes: Whole
    events_lost: Whole
    cut_at: Timestamp
    cut_by: Name
    reason: Text | None = None


class StoreMigrated(Payload):
    """All events up to `seq` were verified and read by this release, and graph and index were made with its schema.

    Attributes
    ----------
    journal_sha256 : str
        SHA-256 of the journal's bytes up to `seq`. They are not rewritten: events of earlier versions are converted when they are read.
    schema_before, schema_version : str or None, str
        Version of the graph's schema before and after; None if there was no graph.
    converted : int
        Number of events of earlier versions.
    digest : str
        Digest of the state.
    """

    TYPE = "store.migrated"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    seq: Whole
    signature: Sha256
    journal_sha256: Sha256
    schema_before: Name | None = None
    schema_version: Name
    converted: Whole
    digest: Sha256
    migrated_at: Timestamp
    migrated_by: Name
