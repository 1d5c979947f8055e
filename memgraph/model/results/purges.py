"""Results of what removes memories: a purge, its preview, its receipt and the check of a receipt; and a reset."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Timestamp

ResetScope = Literal["memory", "all"]
Why = Literal["asked", "derived", "copied", "restated", "kept"]


class PurgedMemory(Model):
    """A memory that a purge would remove, or restate; `content` is cut to 60 characters.

    Attributes
    ----------
    why : {"asked", "derived", "copied", "restated", "kept"}
        It was asked for; it was derived from such a memory; it contains the same words; only its history contains them, so that it
        stays and begins again with what it is now; it contains the same words and is to be kept.
    is_deleted : bool
        Whether it was deleted before.
    matched_in : list of str
        Of a purge by words that `content` does not show: the fields that contain them, such as ``tags``; ``content`` if they are in the
        rest of the text; ``history`` if only an earlier version contains them.
    """

    id: str
    content: str
    why: Why
    is_deleted: bool = False
    matched_in: list[str] = Field(default_factory=list)


class KnownExport(Model):
    """A file that memgraph wrote from the store: it may hold what was purged.

    Attributes
    ----------
    path : str
    at : str
        When it was last written.
    kind : str
        What wrote it.
    is_there : bool
        Whether there still is a file.
    """

    path: str
    at: Timestamp
    kind: str
    is_there: bool


class LostTask(Model):
    """A task that a purge removes with its items, because its registration contains the words.

    Attributes
    ----------
    id, title : str
    items : int
        Number of its decisions, constraints, questions, actions and artifacts.
    """

    id: str
    title: str
    items: Count


class RemainingName(Model):
    """A name that contains the words and stays in the journal, which signs it or needs it.

    Attributes
    ----------
    what : str
        What it is: the id of a task or of a key, which stand in the heads of events; or the type of an event that is never removed.
    name : str or None
        None in a receipt, which would otherwise repeat it.
    event, events : int
        The first event with it, and the number of events.
    """

    what: str
    name: str | None = None
    event: Count
    events: Count


class PurgePreview(Model):
    """What a purge would remove.

    Attributes
    ----------
    memories : list of PurgedMemory
    events : int
        Number of events whose payload would be removed.
    others : dict of str to int
        Number of those that are not about memories, by type.
    lost_tasks : list of LostTask
    remaining : list of RemainingName
        What cannot be removed.
    exports : list of KnownExport
    is_everything : bool
        Whether no memory would be left.
    """

    memories: list[PurgedMemory] = Field(default_factory=list)
    events: Count = 0
    others: dict[str, int] = Field(default_factory=dict)
    lost_tasks: list[LostTask] = Field(default_factory=list)
    remaining: list[RemainingName] = Field(default_factory=list)
    exports: list[KnownExport] = Field(default_factory=list)
    is_everything: bool = False


class RewrittenFile(Model):
    """A file of the journal from which payloads were removed.

    Attributes
    ----------
    path : str
        Relative to the store's directory.
    size : int
        Number of its first bytes that the hashes cover: the file may have grown since.
    before, after : str or None
        SHA-256 of these bytes. `before` is None if the process was killed before it was known.
    """

    path: str
    size: Count
    before: str | None = None
    after: str


class PurgeReceipt(Model):
    """Proof that a purge was completed.

    Attributes
    ----------
    key_id : str
        The key that signed the journal then, and from which the key of `code` is derived.
    event : int
        Sequence number of the ``memory.purged`` event.
    ids, derived_ids, copied_ids, restated_ids, kept_ids : list of str
        As in the event.
    ranges : list of tuple of int
        First and last sequence number of the events whose payloads are gone.
    vectors : dict of str to list of int
        Rows of the vector files that are all zeros, by model.
    files : list of RewrittenFile
    rebuilt, removed : list of str
        What was rebuilt from the journal; what was removed, and is rebuilt when it is needed.
    lost_tasks : list of int
        Events that had registered the tasks that are lost.
    remaining : list of RemainingName or None
        Where the words are still, because they cannot be removed there. None if the process was killed before it was known.
    exports : list of KnownExport
    code : str
        Signature: a code of everything else.
    """

    format: Literal[1] = 1
    store_id: str
    key_id: str
    event: Count
    purged_at: Timestamp
    ids: list[str] = Field(default_factory=list)
    derived_ids: list[str] = Field(default_factory=list)
    copied_ids: list[str] = Field(default_factory=list)
    restated_ids: list[str] = Field(default_factory=list)
    kept_ids: list[str] = Field(default_factory=list)
    ranges: list[tuple[int, int]] = Field(default_factory=list)
    vectors: dict[str, list[int]] = Field(default_factory=dict)
    files: list[RewrittenFile] = Field(default_factory=list)
    rebuilt: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)
    lost_tasks: list[int] = Field(default_factory=list)
    remaining: list[RemainingName] | None = None
    exports: list[KnownExport] = Field(default_factory=list)
    code: str = ""


class ReceiptCheck(Model):
    """Result of the check of a receipt. A receipt that does not hold raises an error instead.

    Attributes
    ----------
    events : int
        Number of events that have no payload, as the receipt says.
    vectors : int
        Number of rows of vectors that were zeroed.
    changed_since : list of str
        Files whose bytes a later purge, or another rewriting, has changed since.
    remaining : list of RemainingName or None
        As in the receipt.
    """

    event: Count
    events: Count
    vectors: Count
    changed_since: list[str] = Field(default_factory=list)
    remaining: list[RemainingName] | None = None


class ResetResult(Model):
    """Result of a reset, or of its preview.

    Attributes
    ----------
    scope : {"memory", "all"}
        ``memory`` keeps facts, pins and tasks; ``all`` keeps nothing.
    removed : dict of str to int
        What was removed, or would be: the number of each kind, without those of which there is none.
    kept : dict of str to int
        The same for what stays.
    event : int or None
        The event that records it; None for a preview, and if there was nothing to remove.
    """

    scope: ResetScope
    removed: dict[str, Count] = Field(default_factory=dict)
    kept: dict[str, Count] = Field(default_factory=dict)
    event: int | None = None
