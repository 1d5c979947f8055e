"""Events about work orders: questions about a source that rules cannot answer, for agents and people."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.base import Name, Prose, Text, Timestamp, Unit
from memgraph.model.events.payload import DURABLE, SYSTEM, Payload
from memgraph.model.ids import MemoryId
from memgraph.model.memory import TrustClass
from memgraph.model.results.learning import MAX_ORDER_MEMORIES, OrderKind, Verdict

_Ids = Annotated[list[MemoryId], Field(max_length=MAX_ORDER_MEMORIES)]
_Sources = Annotated[list[Name], Field(max_length=MAX_ORDER_MEMORIES)]


class DistilRequested(Payload):
    """A work order was made.

    Attributes
    ----------
    id : str
        Derived from what is asked about, so that the same order is not made twice.
    excerpt : str
        The source, without secrets. An answer is verified against it.
    subject_ids : list of str
        The memories that it is about, whose texts the excerpt may quote.
    source_event_ids, build_id
        As of the memories that an answer makes.
    trust_class : str
        The lowest of the sources'.
    value : float
        The expected use of an answer, in [0, 1]: orders of a higher value come first.
    source_at : str
        When the latest of what the excerpt tells happened.
    """

    TYPE = "distil.requested"
    SCOPES = SYSTEM

    id: MemoryId
    kind: OrderKind
    question: Prose
    excerpt: Prose
    project_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    subject_ids: _Ids = Field(default_factory=list)
    source_event_ids: _Sources = Field(default_factory=list)
    trust_class: TrustClass
    value: Unit
    source_at: Timestamp
    requested_at: Timestamp


class DistilAnswered(Payload):
    """A work order was answered. Events of the same commit add or merge the memories."""

    TYPE = "distil.answered"
    SCOPES = DURABLE

    id: MemoryId
    answered_at: Timestamp
    answered_by: Name
    trust_class: TrustClass
    new_memory_ids: _Ids = Field(default_factory=list)
    merged_memory_ids: _Ids = Field(default_factory=list)
    verdict: Verdict | None = None


class DistilAttempted(Payload):
    """A work order was answered in part: other statements were refused, and the order stays open for their corrections."""

    TYPE = "distil.attempted"
    SCOPES = DURABLE

    id: MemoryId
    attempted_at: Timestamp
    answered_by: Name
    trust_class: TrustClass
    refused: Annotated[int, Field(ge=1)]
    new_memory_ids: _Ids = Field(default_factory=list)
    merged_memory_ids: _Ids = Field(default_factory=list)
    verdict: Verdict | None = None


class DistilSkipped(Payload):
    """A work order was skipped: it is not answered, and not made again."""

    TYPE = "distil.skipped"
    SCOPES = DURABLE

    id: MemoryId
    skipped_at: Timestamp
    reason: Text | None = None
