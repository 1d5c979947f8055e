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
    """One line of a listing; `content` is cut to 80 characters, and `age` is how long ago it happened; sorted by creation or access, how long ago it was recorded or last used ("never").

    Attributes
    ----------
    states : list of {"suppressed", "archived", "invalidated", "superseded"}
        The states in which it is not recalled; empty if it is in force.
    """

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
    """Result of an edit, a merge or a split: one commit.

    Attributes
    ----------
    event : int or None
        Sequence number of its first event, which `undo` takes; None: nothing had to be changed.
    unchanged : list of str
        Ids of memories that were as they should be already.
    """

    event: int | None = None
    memories: list[ChangedMemory] = Field(default_factory=list)
    unchanged: list[str] = Field(default_factory=list)


class UndoResult(Model):
    """Result of an undoing.

    Attributes
    ----------
    undone, undone_through : int
        Sequence numbers of the first and the last event of the commit that was undone.
    event : int
        Sequence number of the first event of the undoing. Undo it to redo the commit.
    is_redo : bool
        Whether the commit was itself an undoing.
    what, links : list of str
        What the commit had done, a line for each memory; links restored or removed, such as ``removed: … SUPERSEDES …``.
    """

    undone: Count
    undone_through: Count
    event: Count
    is_redo: bool = False
    what: list[str] = Field(default_factory=list)
    memories: list[ChangedMemory] = Field(default_factory=list)
    links: list[str] = Field(default_factory=list)


class HistoryEntry(Model):
    """One event that concerns a memory.

    Attributes
    ----------
    event : int
        Its sequence number, which `undo` takes.
    by : {"user", "agent", "system"}
        Who made it; ``system`` is memgraph's own upkeep.
    undoes, undone_by : int or None
        First event of the commit that its commit undoes, or is undone by.
    """

    event: Count
    at: Timestamp
    by: By
    task_id: str | None = None
    type: str
    what: str
    reason: str | None = None
    changes: list[FieldChange] = Field(default_factory=list)
    undoes: Count | None = None
    undone_by: Count | None = None


class SourcePlace(Model):
    """A place in a source that a memory was made from.

    Attributes
    ----------
    reference : str
        As stored: a build and the event in it, or the id of a memory.
    source, place : str or None, str
        The repository or file that was read; the commit, turn or test in it, as far as it is stored.
    """

    reference: str
    source: str | None = None
    place: str


class Relation(Model):
    """A link from a memory to one that explains it."""

    relation: str
    reason: str | None = None
    memory: Origin


class Origin(Model):
    """Where a memory comes from.

    Attributes
    ----------
    made : HistoryEntry or None
        The event that added it; None if the journal does not name it.
    facts : dict of str to str
        Its source, session, task, speaker and so on, as far as they are stored.
    relations : list of Relation
        Memories that it was derived from, that support or contradict it, that it supersedes, or that supersede it.
    is_repeated : bool
        Whether the memory is described elsewhere in the tree; then it has no relations here.
    more : int
        Related memories left out because of the limits of depth and number.
    """

    id: str
    type: MemoryType
    content: str
    why: str | None = None
    made: HistoryEntry | None = None
    facts: dict[str, str] = Field(default_factory=dict)
    places: list[SourcePlace] = Field(default_factory=list)
    more_places: Count = 0
    relations: list[Relation] = Field(default_factory=list)
    is_repeated: bool = False
    more: Count = 0
