"""Events of sessions: the tasks that they work on, their working memory, and what is kept for a while."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Content, Name, Prose, Timestamp, Unit
from memgraph.model.events.payload import SYSTEM, Payload
from memgraph.model.ids import MemoryId
from memgraph.model.results.tasks import MAX_STACK, Decision, Guidance, NudgeKind

_Notes = Annotated[list[Content], Field(max_length=100)]


class SessionTasksSet(Payload):
    """A session works on other tasks than before.

    Attributes
    ----------
    stack : list of str
        The tasks, the one it works on last; the others are interrupted.
    """

    TYPE = "session.tasks_set"
    SCOPES = SYSTEM

    session_id: Name
    stack: Annotated[list[Name], Field(max_length=MAX_STACK)] = Field(default_factory=list)


class SessionControlSet(Payload):
    """How a session decides between tasks was set by its user. Switching on autoswitch clears the counters that hold it back.

    Attributes
    ----------
    autoswitch : bool
        Whether a turn may switch the task by itself.
    guidance : {"minimal", "supportive"}
        How much a turn asks.
    """

    TYPE = "session.control_set"
    SCOPES = SYSTEM

    session_id: Name
    autoswitch: bool
    guidance: Guidance


class TurnControlled(Payload):
    """A turn changed the state of its session: what it took the message for, what it decided, and what it asked.

    Attributes
    ----------
    inferred_task : str or None
        The task that the message seems to belong to; another one than the current is a mismatch.
    asked_kind, asked_about : str and list of str
        The question that the next turn may answer, and the ids of what it is about; no text, because texts can be purged.
    """

    TYPE = "memory.turn-control"
    SCOPES = SYSTEM

    session_id: Name
    turn_id: MemoryId
    inferred_task: Name | None = None
    confidence: Unit
    ambiguous: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    resolved_task: Name | None = None
    autoswitch: bool
    guidance: Guidance
    decision: Decision
    asked_kind: NudgeKind | None = None
    asked_about: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)


class WorkingMemorySet(Payload):
    """The working memory of a session was replaced as a whole; without any field it was cleared."""

    TYPE = "session.working_memory_set"
    SCOPES = SYSTEM

    session_id: Name
    task: Prose | None = None
    context: _Notes = Field(default_factory=list)
    pending: _Notes = Field(default_factory=list)
    notes: Prose | None = None


class ChatContextSet(Payload):
    """What a chat is about was stated again; None: it is not known any more."""

    TYPE = "session.context_set"
    SCOPES = SYSTEM

    session_id: Name
    context: Prose | None = None


class TransientSet(Payload):
    """A text is kept until a time; it replaces the former one of this name."""

    TYPE = "transient.set"
    SCOPES = SYSTEM

    item_id: Name
    content: Content
    expires_at: Timestamp
    task_id: Name | None = None


class TransientRemoved(Payload):
    """Texts that were kept for a while are no longer."""

    TYPE = "transient.removed"
    SCOPES = SYSTEM

    item_ids: Annotated[list[Name], Field(min_length=1, max_length=MAX_ITEMS)]


SESSION_EVENTS: tuple[type[Payload], ...] = (
    SessionTasksSet,
    SessionControlSet,
    TurnControlled,
    WorkingMemorySet,
    ChatContextSet,
    TransientSet,
    TransientRemoved,
)
