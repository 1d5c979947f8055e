"""Events of tasks and of pins.

The task is the one whose write scope the commit has: a payload does not repeat it, so an event can never change another task. The
names in capitals are seed 4's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field, model_validator

from memgraph.model.base import MAX_ITEMS, Content, Name, Prose, Text, Timestamp
from memgraph.model.events.payload import Payload, Policy, Whole, WriteScope, its_id, nothing
from memgraph.model.ids import MemoryId
from memgraph.model.results.tasks import PinKind, TaskStatus

_TASK: frozenset[WriteScope] = frozenset({"task"})
_OF_A_TASK = Policy(
    carries=nothing,
    irreversible="it belongs to the record of a task or a pin, which is only continued; record what holds instead (`memgraph docs tasks`)",
    is_act=True,
)
_OF_A_PIN = replace(_OF_A_TASK, carries=its_id)


class TaskPayload(Payload):
    """Base of the events of one task."""

    SCOPES = _TASK
    POLICY = _OF_A_TASK


class TaskCreated(TaskPayload):
    """A task was registered."""

    TYPE = "TASK_CREATED"

    title: Name
    project_id: Name | None = None


class TitleSet(TaskPayload):
    """The title was changed."""

    TYPE = "TITLE_SET"

    title: Name


class TaskStatusSet(TaskPayload):
    """The status was changed."""

    TYPE = "task.status_set"

    status: TaskStatus
    reason: Text | None = None


class TaskLinked(TaskPayload):
    """The task may read another one."""

    TYPE = "task.linked"

    target_id: Name


class TaskUnlinked(TaskPayload):
    """The task no longer reads another one."""

    TYPE = "task.unlinked"

    target_id: Name


class GoalSet(TaskPayload):
    """The goal was set; it replaces the former one."""

    TYPE = "GOAL_SET"

    goal: Content


class ItemEvent(TaskPayload):
    """Base of the events of one item of a task, which another event may close."""

    id: MemoryId


class DecisionMade(ItemEvent):
    """A decision was made."""

    TYPE = "DECISION_MADE"

    decision: Content
    reason: Text | None = None


class DecisionReverted(ItemEvent):
    """A decision no longer holds."""

    TYPE = "DECISION_REVERTED"

    reason: Text | None = None


class ConstraintAdded(ItemEvent):
    """A constraint holds from now on."""

    TYPE = "CONSTRAINT_ADDED"

    constraint: Content


class ConstraintRemoved(ItemEvent):
    """A constraint no longer holds."""

    TYPE = "CONSTRAINT_REMOVED"

    reason: Text | None = None


class OpenQuestionAdded(ItemEvent):
    """A question is open."""

    TYPE = "OPEN_QUESTION_ADDED"

    question: Content


class OpenQuestionResolved(ItemEvent):
    """A question was answered."""

    TYPE = "OPEN_QUESTION_RESOLVED"

    resolution: Text | None = None


class NextActionSet(ItemEvent):
    """Something is to be done."""

    TYPE = "NEXT_ACTION_SET"

    action: Content


class NextActionCompleted(ItemEvent):
    """It was done."""

    TYPE = "NEXT_ACTION_COMPLETED"

    result: Text | None = None


class ArtifactLinked(ItemEvent):
    """Something that the task made or needs: a file, a commit, an address."""

    TYPE = "ARTIFACT_LINKED"

    artifact: Content
    title: Name | None = None


class StatePatchApplied(TaskPayload):
    """Named values of the task's state were set or removed.

    Attributes
    ----------
    changed : dict of str to str
    removed : list of str
    """

    TYPE = "STATE_PATCH_APPLIED"

    changed: Annotated[dict[Name, Prose], Field(max_length=MAX_ITEMS)] = Field(default_factory=dict)
    removed: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _says_something(self) -> StatePatchApplied:
        if not (self.changed or self.removed):
            raise ValueError("must set or remove a value")
        if twice := sorted(self.changed.keys() & set(self.removed)):
            raise ValueError(f"sets and removes {twice[0]!r}")
        return self


class UserConfirmed(TaskPayload):
    """The user agreed: in which words, and to what."""

    TYPE = "USER_CONFIRMED"

    message: Content
    confirmed: Text | None = None


class PinPayload(Payload):
    """Base of the events of a pin, in the write scope of its memory.

    Attributes
    ----------
    id : str
        The memory.
    """

    id: MemoryId

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id]


class PinAdded(PinPayload):
    """A memory of the same commit is a pin."""

    TYPE = "PIN_ADDED"
    POLICY = replace(_OF_A_PIN, told="made a pin")

    kind: PinKind
    expires_at: Timestamp | None = None


class PinEdited(PinPayload):
    """A pin was edited; events of the same commit change its memory."""

    TYPE = "pin.edited"
    POLICY = replace(_OF_A_PIN, told="edited as a pin")

    kind: PinKind
    expires_at: Timestamp | None = None


class PinRemoveRequested(PinPayload):
    """Somebody wants to remove a pin and got a token.

    Attributes
    ----------
    request_id : str
        Derived from the token by the store's key: the journal does not hold the token.
    expires_at : str
        The end of the token's life by the clock.
    uptime_ms : int
        The machine's monotonic time at the request, by which the token's life is measured too.
    """

    TYPE = "PIN_REMOVE_REQUESTED"
    POLICY = replace(_OF_A_PIN, told="its removal was requested")

    request_id: MemoryId
    expires_at: Timestamp
    uptime_ms: Whole


class PinRemoveCancelled(PinPayload):
    """A request was withdrawn: its token removes nothing."""

    TYPE = "pin.remove_cancelled"
    POLICY = replace(_OF_A_PIN, told="the request to remove it was cancelled")

    request_id: MemoryId


class PinRemoved(PinPayload):
    """A memory is no pin any more.

    Attributes
    ----------
    request_id : str or None
        The request that was confirmed; None: the user forgot the memory, pin or not.
    """

    TYPE = "PIN_REMOVED"
    POLICY = replace(_OF_A_PIN, told="no longer a pin")

    request_id: MemoryId | None = None
