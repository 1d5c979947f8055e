"""Results of commands on memories: lists, counts and exports, corrections, undoing, history and origin."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Bytes, Count, Model, Timestamp
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, MemoryType, Outcome, PrivacyTier
from memgraph.model.relevance import ConfidenceLabel

EXPORT_VERSION = "1.0.0"


class MemoryStats(Model):
    """Counts over all memories that are neither archived nor deleted; `records` are not among the memories."""

    total: Count
    by_type: dict[MemoryType, int]
    avg_relevance: float
    pinned_count: Count
    suppressed_count: Count
    db_size_bytes: Bytes
    records: Count = 0


State = Literal["suppressed", "archived", "invalidated", "superseded"]


class MemoryListEntry(Model):
    """One line of a listing; `content` is cut to 80 characters, and `age` is how long ago it happened, or else was recorded."""

    id: str
    type: MemoryType
    content: str
    relevance_score: float
    confidence_label: ConfidenceLabel
    outcome: Outcome
    age: str
    access_count: Count
    is_pinned: bool
    privacy_tier: PrivacyTier = "public"
    states: list[State] = Field(default_factory=list)
    """The states in which it is not recalled; empty if it is in force."""


class MemoryCommandResult(Model):
    """Result of a command, as text and as data."""

    command: str
    success: bool
    message: str
    data: Any = None


class MemoryExport(Model):
    """Every memory that is not deleted, including suppressed ones, with their links; or, for others, only what may be disclosed.

    `embedding_model` names the model of the vectors; a store with another model embeds the texts again on import.
    """

    version: str
    exported_at: Timestamp
    total_memories: Count
    memories: list[SerializeAsAny[AgentMemory]]
    links: list[Link] = Field(default_factory=list)
    embedding_model: str | None = None


By = Literal["user", "agent", "system"]
Change = Literal["changed", "added", "removed", "restored", "superseded"]


class FieldChange(Model):
    """A field's value before and after a change; None: not set."""

    field: str
    old: Any = None
    new: Any = None


class ChangedMemory(Model):
    """A memory and how it was changed; `content` is its last text. A removed memory is deleted; its history stays."""

    id: str
    content: str
    change: Change = "changed"
    fields: list[FieldChange] = Field(default_factory=list)


class EditResult(Model):
    """Result of an edit, a merge or a split: one commit."""

    event: int | None = None
    """Sequence number of its first event, which `undo` takes; None: nothing had to be changed."""
    memories: list[ChangedMemory] = Field(default_factory=list)
    unchanged: list[str] = Field(default_factory=list)
    """Ids of memories that were as they should be already."""


class UndoResult(Model):
    """Result of an undoing."""

    undone: Count
    """Sequence number of the first event of the commit that was undone."""
    undone_through: Count
    """Sequence number of the last event of that commit."""
    event: Count
    """Sequence number of the first event of the undoing. Undo it to redo the commit."""
    is_redo: bool = False
    """Whether the commit was itself an undoing."""
    what: list[str] = Field(default_factory=list)
    """What the commit had done, a line for each memory."""
    memories: list[ChangedMemory] = Field(default_factory=list)
    links: list[str] = Field(default_factory=list)
    """Links restored or removed, such as ``removed: … SUPERSEDES …``."""


class HistoryEntry(Model):
    """One event that concerns a memory."""

    event: Count
    """Its sequence number, which `undo` takes."""
    at: Timestamp
    by: By
    """Who made it; ``system`` is memgraph's own upkeep."""
    task_id: str | None = None
    type: str
    what: str
    reason: str | None = None
    changes: list[FieldChange] = Field(default_factory=list)
    undoes: Count | None = None
    """First event of the commit that its commit undoes."""
    undone_by: Count | None = None
    """First event of the commit that undoes its commit."""


class SourcePlace(Model):
    """A place in a source that a memory was made from."""

    reference: str
    """As stored: a build and the event in it, or the id of a memory."""
    source: str | None = None
    """The repository or file that was read."""
    place: str
    """The commit, turn or test in the source, as far as it is stored."""


class Relation(Model):
    """A link from a memory to one that explains it."""

    relation: str
    reason: str | None = None
    memory: Origin


class Origin(Model):
    """Where a memory comes from."""

    id: str
    type: MemoryType
    content: str
    why: str | None = None
    made: HistoryEntry | None = None
    """The event that added it; None if the journal does not name it."""
    facts: dict[str, str] = Field(default_factory=dict)
    """Its source, session, task, speaker and so on, as far as they are stored."""
    places: list[SourcePlace] = Field(default_factory=list)
    more_places: Count = 0
    relations: list[Relation] = Field(default_factory=list)
    """Memories that it was derived from, that support or contradict it, that it supersedes, or that supersede it."""
    is_repeated: bool = False
    """Whether the memory is described elsewhere in the tree; then it has no relations here."""
    more: Count = 0
    """Related memories left out because of the limits of depth and number."""
