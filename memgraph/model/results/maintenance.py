"""Results of looking after a store: collection, vectors, keys, journal, backups, purges."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Bytes, Count, Model, Name, Seconds, Strict, Text, Timestamp, Unit
from memgraph.model.memory import MemoryType


class DecayResult(Model):
    """Number of live, unpinned memories for which the curve was evaluated, and of those now below the threshold."""

    updated: Count
    below_threshold: Count


class CollectionResult(Model):
    """Result of a collection, or of its preview."""

    archived: Count = 0
    deleted: Count = 0
    summarised: Count = 0
    """Episodes that were summarised because they were not used for 30 days."""
    floors_set: Count = 0
    """New landmarks."""
    floors_cleared: Count = 0
    """Former landmarks."""
    landmarks: Count = 0
    """Landmarks among the memories that are neither archived nor deleted."""
    negatives: Count = 0
    """Negative memories among these."""
    negative_landmarks: Count = 0
    """Negative landmarks among these."""
    landmark_share: Unit = 0.0
    """Share of landmarks among the negative memories, in [0, 1]."""
    last_traces: Count = 0
    """Faded memories that stay because the memories that they were distilled from no longer exist."""


class FadedMemory(Model):
    """A memory that a collection would archive or delete; `content` is cut to 60 characters."""

    id: str
    type: MemoryType
    content: str
    relevance: float
    access_count: Count
    last_accessed_at: Timestamp | None = None


class CollectionPreview(CollectionResult):
    """Preview of a collection."""

    memory_ids: list[str] = Field(default_factory=list)
    memories: list[FadedMemory] = Field(default_factory=list)
    """The first 100 of `memory_ids`."""


class ReembedResult(Model):
    """Result of changing a store to another embedding model."""

    model: Name
    dimension: Count
    embedded: Count
    reused: Count
    """Memories whose vector an earlier, interrupted run had computed."""
    awaiting: Count
    """Memories without a vector of this model, found by text alone."""


class VectorRepair(Model):
    """Result of a repair of the vectors."""

    checked: Count
    """Rows compared with their SHA-256."""
    damaged: Count
    """Rows that are different or missing."""
    restored: Count
    """Rows restored to their recorded bytes."""
    replaced: Count
    """Memories with a new vector, because the model no longer produces the old one."""
    lost: Count
    """Rows recorded as lost, which no memory uses."""
    failed: Count
    """Memories on whose text the model fails."""


class BackupResult(Model):
    """A backup that was made."""

    file: Text
    backup_id: Name
    base_id: Name | None = None
    """The backup that it continues, if it is incremental."""
    first_seq: Count
    """The first event in it; after `last_seq` if nothing was recorded since its base."""
    last_seq: Count
    """The last event in it."""
    size_bytes: Bytes
    digest: Name
    """Digest of the state after the last event."""
    recorded_as: Count | None = None
    """The event that records it; None if the store is read-only."""
    seconds: Seconds


class RestoreResult(Model):
    """A store that was restored, or with `dry_run` could be."""

    home: Text
    store_id: Name
    backup_ids: list[Name]
    """The backups it was made from: a full one, then incremental ones, the last of them made at `made_at`."""
    made_at: Timestamp
    last_seq: Count
    """The last event that was restored."""
    backup_seq: Count
    """The last event in the backup."""
    digest: Name
    copy_id: Name | None = None
    """Names the head file of this copy; None if no other copy's head file was there."""
    later_events: Count = 0
    """Number of events that the store is known to have recorded after the last restored one."""
    damaged_vectors: Count = 0
    """Vectors that differ from what the journal recorded, because they did when the backup was made."""
    expired_keys: list[str] = Field(default_factory=list)
    """Rotated keys that verify events of it and have expired: it opens after `memgraph keys rotate --reseal`."""
    recorded_as: Count | None = None
    dry_run: bool = False
    seconds: Seconds


class MigrationReport(Model):
    """What a migration read, verified and made."""

    store_id: Name
    release: Name
    """The release of memgraph that read the events."""
    started_at: Timestamp
    dry_run: bool
    events: Count
    first_seq: Count
    last_seq: Count
    types: dict[str, Count]
    """Number of events by type and version, such as ``memory.added 2``."""
    converted: dict[str, str] = Field(default_factory=dict)
    """Types and versions that are converted when they are read, and the version they are converted to."""
    journal_sha256: Name
    """SHA-256 of the journal's bytes."""
    signature: Name
    """Signature of the last event."""
    schema_before: Name | None = None
    """Version of the graph's schema as it was found."""
    schema_version: Name
    """Version of this release's schema."""
    rebuilds: bool
    digest: Name | None = None
    """Digest of the state; None in a dry run."""
    recorded_as: Count | None = None
    """The event that records the migration; None if nothing was to be done."""
    seconds: Seconds


class MoveResult(Model):
    """A store that was moved to another database: the place it was in, which is left as it is, the new one, and what was verified there."""

    source: Text
    """The place that it was in: a directory, or the address of a database without its password, and the tenant."""
    target: Text
    """The place that it is in now, in the same form."""
    home: Text
    """The directory of the settings and caches of the new store."""
    store_id: Name
    events: Count
    vectors: Count
    digest: Name
    """Digest of the state, the same in both."""
    damaged_vectors: Count = 0
    """Number of vectors that are not what their events say, in both."""
    seconds: Seconds


HealthStatus = Literal["ok", "warning", "error"]


class HealthLimits(Model):
    """The limits beyond which `memgraph doctor` warns."""

    stale_working_memories: Count = Field(default=10, description="Maximum number of void working memories.")
    long_term_mb: float = Field(
        default=1.0,
        ge=0.0,
        allow_inf_nan=False,
        description="Maximum size of the texts of facts and procedures in force, in MB (1,000,000 bytes). 0: no limit.",
    )
    sleep_overdue_days: Count = Field(
        default=7, description="Days that five or more new episodes may wait for a sleep. 0: no limit."
    )
    graph_lag_events: Count = Field(
        default=5_000, description="Maximum number of events that the graph may be behind the journal."
    )
    near_duplicates: Count = Field(
        default=10, description="Maximum number of memories that say what another one says, and that no sleep has seen."
    )
    open_contradictions: Count = Field(default=10, description="Maximum number of undecided contradictions.")
    backup_days: Count = Field(
        default=7, description="Maximum age of the last backup, in days, while events are recorded. 0: no limit."
    )


class HealthCheck(Strict):
    """One check."""

    name: str
    """What was checked. A check that found several things is there once for each."""
    status: HealthStatus = "ok"
    message: str = ""
    """What was found; empty if that is nothing."""
    value: float | None = None
    """What was measured, if it is a number."""
    limit: float | None = None
    """The limit that `value` was compared with, if there is one."""
    advice: str = ""
    """What to do; empty if that is nothing, or if the message says it."""


class Health(Strict):
    """The health of a store: its checks, and the messages of those that warn or failed. Warnings do not make it unhealthy."""

    healthy: bool
    checks: list[HealthCheck]
    warnings: list[str] = Field(default_factory=list)
    errors: list[str] = Field(default_factory=list)


class CompactionResult(Model):
    """What a compaction did, or would do."""

    seq: Count
    """The last event that the baseline stands for; 0 if there is no baseline."""
    until: Timestamp | None
    """When that event was recorded."""
    is_new: bool
    """Whether this compaction made the baseline; else there was nothing more to compact."""
    rows: Count
    """Rows of the baseline; of a new one, 0 in a preview."""
    baseline_bytes: Bytes
    """Size of the file of these rows; of a new one, 0 in a preview."""
    archived_events: Count
    removed_texts: Count = 0
    """Memories that were purged because they were deleted longer ago than ``archive_retention_days``."""
    events_left: Count
    """Number of events after the baseline."""
    journal_bytes: Bytes
    archive_bytes: Bytes
    dry_run: bool = False
    seconds: Seconds


ResetScope = Literal["memory", "all"]
Why = Literal["asked", "derived", "copied", "restated", "kept"]


class PurgedMemory(Model):
    """A memory that a purge would remove, or restate; `content` is cut to 60 characters."""

    id: str
    content: str
    why: Why
    """It was asked for; it was derived from such a memory; it contains the same words; only its history contains them, so that it stays and begins
    again with what it is now; it contains the same words and is to be kept."""
    is_deleted: bool = False
    """Whether it was deleted before."""
    matched_in: list[str] = Field(default_factory=list)
    """Of a purge by words that `content` does not show: the fields that contain them, such as ``tags``; ``content`` if they are in the rest of the
    text; ``history`` if only an earlier version contains them."""


class KnownExport(Model):
    """A file that memgraph wrote from the store, last `at` this time: it may hold what was purged."""

    path: str
    at: Timestamp
    kind: str
    is_there: bool


class LostTask(Model):
    """A task that a purge removes with its decisions, constraints, questions, actions and artifacts, because its registration contains the words."""

    id: str
    title: str
    items: Count


class RemainingName(Model):
    """A name that contains the words and stays in the journal, which signs it or needs it."""

    what: str
    """The id of a task or of a key, which stand in the heads of events; or the type of an event that is never removed."""
    name: str | None = None
    """None in a receipt, which would otherwise repeat it."""
    event: Count
    """The first event with it."""
    events: Count
    """The number of events with it."""


class PurgePreview(Model):
    """What a purge would remove, and in `remaining` what it cannot."""

    memories: list[PurgedMemory] = Field(default_factory=list)
    events: Count = 0
    """Number of events whose payload would be removed."""
    others: dict[str, int] = Field(default_factory=dict)
    """Number of these events that are not about memories, by type."""
    lost_tasks: list[LostTask] = Field(default_factory=list)
    remaining: list[RemainingName] = Field(default_factory=list)
    exports: list[KnownExport] = Field(default_factory=list)
    is_everything: bool = False
    """Whether no memory would be left."""


class PurgeReceipt(Model):
    """Proof that a purge was completed, as the event ``memory.purged`` with the sequence number `event` records it."""

    format: Literal[1] = 1
    store_id: str
    key_id: str
    """The key that signed the journal then, and from which the key of `code` is derived."""
    event: Count
    purged_at: Timestamp
    ids: list[str] = Field(default_factory=list)
    derived_ids: list[str] = Field(default_factory=list)
    copied_ids: list[str] = Field(default_factory=list)
    restated_ids: list[str] = Field(default_factory=list)
    kept_ids: list[str] = Field(default_factory=list)
    ranges: list[tuple[int, int]] = Field(default_factory=list)
    """First and last sequence number of the events whose payloads are gone."""
    vectors: dict[str, list[int]] = Field(default_factory=dict)
    """Rows of vectors that were removed, by model."""
    rebuilt: list[str] = Field(default_factory=list)
    """What was rebuilt from the journal."""
    removed: list[str] = Field(default_factory=list)
    """What was removed, and is rebuilt when it is needed."""
    lost_tasks: list[int] = Field(default_factory=list)
    """Events that had registered the tasks that are lost."""
    remaining: list[RemainingName] | None = None
    """Where the words are still. None if the process was killed before it was known."""
    exports: list[KnownExport] = Field(default_factory=list)
    code: str = ""
    """Signature: a code of everything else."""


class ReceiptCheck(Model):
    """Result of the check of a receipt. A receipt that does not hold raises an error instead."""

    event: Count
    events: Count
    """Number of events that have no payload."""
    vectors: Count
    """Number of vectors that were removed."""
    remaining: list[RemainingName] | None = None


class ResetResult(Model):
    """Result of a reset, or of its preview: the number of each kind that was removed and that stays."""

    scope: ResetScope
    """``memory`` keeps facts, pins and tasks; ``all`` keeps nothing."""
    removed: dict[str, Count] = Field(default_factory=dict)
    kept: dict[str, Count] = Field(default_factory=dict)
    event: int | None = None
    """The event that records it; None for a preview, and if there was nothing to remove."""
