"""Events about the store itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import Name, Strict, Text, Timestamp
from memgraph.model.events.payload import ANY, SYSTEM, Payload, Sha256, Whole
from memgraph.model.ids import MemoryId


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


class AcceptedWitness(Strict):
    """A witness that contradicted the journal, and the event that it names if it could be read."""

    kind: Literal["head", "checkpoint"]
    state: Literal["ahead", "missing", "damaged", "other"]
    seq: Whole | None = None
    signature: Sha256 | None = None


class JournalRepaired(Payload):
    """The journal was accepted as it was, up to `seq`, although its head file or checkpoint contradicted it.

    `events_lost` counts events known to have been written after that.
    """

    TYPE = "journal.repaired"
    BY_STORE_ALONE = True
    SCOPES = SYSTEM

    seq: Whole
    signature: Sha256
    witnesses: Annotated[list[AcceptedWitness], Field(min_length=1, max_length=2)]
    events_lost: Whole
    dropped_bytes: Whole
    repaired_at: Timestamp
    repaired_by: Name
    reason: Text | None = None
