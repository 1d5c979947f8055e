"""Events of tasks, of pins, of the sessions that work on tasks, and of the agents that hand them over.

The task is the one whose write scope the commit has: a payload does not repeat it, so an event can never change another task. The
names in capitals are seed 4's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field, model_validator

from memgraph.model.base import MAX_ITEMS, Content, Name, Prose, Strict, Text, Timestamp, Unit
from memgraph.model.events.payload import (
    OfOneMemory,
    Payload,
    Policy,
    UpkeepPayload,
    Whole,
    WriteScope,
    its_id,
    nothing,
)
from memgraph.model.ids import MemoryId
from memgraph.model.results.tasks import MAX_FILES, MAX_STACK, Decision, Guidance, NudgeKind, PinKind, TaskStatus

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


class TaskCreated(TaskPayload, type="TASK_CREATED"):
    """A task was registered."""

    title: Name
    project_id: Name | None = None


class TitleSet(TaskPayload, type="TITLE_SET"):
    """The title was changed."""

    title: Name


class TaskStatusSet(TaskPayload, type="task.status_set"):
    """The status was changed."""

    status: TaskStatus
    reason: Text | None = None


class TaskLinked(TaskPayload, type="task.linked"):
    """The task may read another one."""

    target_id: Name


class TaskUnlinked(TaskPayload, type="task.unlinked"):
    """The task no longer reads another one."""

    target_id: Name


class GoalSet(TaskPayload, type="GOAL_SET"):
    """The goal was set; it replaces the former one."""

    goal: Content


class ItemEvent(TaskPayload):
    """Base of the events of one item of a task, which another event may close."""

    id: MemoryId


class DecisionMade(ItemEvent, type="DECISION_MADE"):
    """A decision was made."""

    decision: Content
    reason: Text | None = None


class DecisionReverted(ItemEvent, type="DECISION_REVERTED"):
    """A decision no longer holds."""

    reason: Text | None = None


class ConstraintAdded(ItemEvent, type="CONSTRAINT_ADDED"):
    """A constraint holds from now on."""

    constraint: Content


class ConstraintRemoved(ItemEvent, type="CONSTRAINT_REMOVED"):
    """A constraint no longer holds."""

    reason: Text | None = None


class OpenQuestionAdded(ItemEvent, type="OPEN_QUESTION_ADDED"):
    """A question is open."""

    question: Content


class OpenQuestionResolved(ItemEvent, type="OPEN_QUESTION_RESOLVED"):
    """A question was answered."""

    resolution: Text | None = None


class NextActionSet(ItemEvent, type="NEXT_ACTION_SET"):
    """Something is to be done."""

    action: Content


class NextActionCompleted(ItemEvent, type="NEXT_ACTION_COMPLETED"):
    """It was done."""

    result: Text | None = None


class ArtifactLinked(ItemEvent, type="ARTIFACT_LINKED"):
    """Something that the task made or needs: a file, a commit, an address."""

    artifact: Content
    title: Name | None = None


class StatePatchApplied(TaskPayload, type="STATE_PATCH_APPLIED"):
    """Named values of the task's state were set or removed."""

    changed: Annotated[dict[Name, Prose], Field(max_length=MAX_ITEMS)] = Field(default_factory=dict)
    removed: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _says_something(self) -> StatePatchApplied:
        if not (self.changed or self.removed):
            raise ValueError("must set or remove a value")
        if twice := sorted(self.changed.keys() & set(self.removed)):
            raise ValueError(f"sets and removes {twice[0]!r}")
        return self


class UserConfirmed(TaskPayload, type="USER_CONFIRMED"):
    """The user agreed: in which words, and to what."""

    message: Content
    confirmed: Text | None = None


class PinPayload(OfOneMemory):
    """Base of the events of a pin, in the write scope of its memory."""


class PinAdded(PinPayload, type="PIN_ADDED"):
    """A memory of the same commit is a pin."""

    POLICY = replace(_OF_A_PIN, told="made a pin")

    kind: PinKind
    expires_at: Timestamp | None = None


class PinEdited(PinPayload, type="pin.edited"):
    """A pin was edited; events of the same commit change its memory."""

    POLICY = replace(_OF_A_PIN, told="edited as a pin")

    kind: PinKind
    expires_at: Timestamp | None = None


class PinRemoveRequested(PinPayload, type="PIN_REMOVE_REQUESTED"):
    """Somebody wants to remove a pin and got a token."""

    POLICY = replace(_OF_A_PIN, told="its removal was requested")

    request_id: MemoryId
    """Derived from the token by the store's key: the journal does not hold the token."""
    expires_at: Timestamp
    """The end of the token's life by the clock."""
    uptime_ms: Whole
    """The machine's monotonic time at the request, by which the token's life is measured too."""


class PinRemoveCancelled(PinPayload, type="pin.remove_cancelled"):
    """A request was withdrawn: its token removes nothing."""

    POLICY = replace(_OF_A_PIN, told="the request to remove it was cancelled")

    request_id: MemoryId


class PinRemoved(PinPayload, type="PIN_REMOVED"):
    """A memory is no pin any more."""

    POLICY = replace(_OF_A_PIN, told="no longer a pin")

    request_id: MemoryId | None = None
    """The request that was confirmed; None: the user forgot the memory, pin or not."""


_Lines = Annotated[list[Content], Field(max_length=100)]


class SessionTasksSet(UpkeepPayload, type="session.tasks_set"):
    """A session works on other tasks than before."""

    session_id: Name
    stack: Annotated[list[Name], Field(max_length=MAX_STACK)] = Field(default_factory=list)
    """The task that it works on is the last; the others are interrupted."""


class SessionControlSet(UpkeepPayload, type="session.control_set"):
    """How a session decides between tasks was set by its user. Switching on autoswitch clears the counters that hold it back."""

    session_id: Name
    autoswitch: bool
    """Whether a turn may switch the task by itself."""
    guidance: Guidance
    """How much a turn asks."""


class TurnControlled(UpkeepPayload, type="memory.turn-control"):
    """A turn changed the state of its session: what it took the message for, what it decided, and what it asked."""

    session_id: Name
    turn_id: MemoryId
    inferred_task: Name | None = None
    """The task that the message seems to belong to; another one than the current is a mismatch."""
    confidence: Unit
    ambiguous: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    resolved_task: Name | None = None
    autoswitch: bool
    guidance: Guidance
    decision: Decision
    asked_kind: NudgeKind | None = None
    """The question that the next turn may answer."""
    asked_about: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    """The ids of what it is about; no text, because texts can be purged."""


class WorkingMemorySet(UpkeepPayload, type="session.working_memory_set"):
    """The working memory of a session was replaced as a whole; without any field it was cleared."""

    session_id: Name
    task: Prose | None = None
    context: _Lines = Field(default_factory=list)
    pending: _Lines = Field(default_factory=list)
    notes: Prose | None = None


class ChatContextSet(UpkeepPayload, type="session.context_set"):
    """What a chat is about was stated again; None: it is not known any more."""

    session_id: Name
    context: Prose | None = None


class TransientSet(UpkeepPayload, type="transient.set"):
    """A text is kept until a time; it replaces the former one of this name."""

    item_id: Name
    content: Content
    expires_at: Timestamp
    task_id: Name | None = None


class TransientRemoved(UpkeepPayload, type="transient.removed"):
    """Texts that were kept for a while are no longer."""

    item_ids: Annotated[list[Name], Field(min_length=1, max_length=MAX_ITEMS)]


MAX_CARRIED = 100
"""Memories that a handoff carries, and that a checkpoint names as learned."""
_Names = Annotated[list[Name], Field(max_length=100)]
_Ids = Annotated[list[MemoryId], Field(max_length=MAX_CARRIED)]


class WorkTree(Strict):
    """The state of a git work tree; see `memgraph.model.results.tasks.GitState`."""

    branch: Name | None = None
    last_git_commit: Name | None = None
    uncommitted_changes: bool
    files_modified: Annotated[list[Name], Field(max_length=MAX_FILES)] = Field(default_factory=list)
    has_more_files: bool = False


class LedgerCheckpointed(UpkeepPayload, type="ledger.checkpointed"):
    """An agent stated where it is, instead of what it stated before."""

    agent: Name
    current_task: Name | None = None
    goal: Prose | None = None
    tech_stack: _Names = Field(default_factory=list)
    git: WorkTree | None = None
    completed: _Names = Field(default_factory=list)
    """Tasks, in addition to those of earlier checkpoints."""
    learned: _Ids = Field(default_factory=list)
    """Memories, likewise."""


class HandoffCreated(TaskPayload, type="handoff.created"):
    """An agent hands the task over. The state that it hands over is that of the task at this event."""

    id: MemoryId
    from_agent: Name
    to_agent: Name | None = None
    """None: any other agent may accept it."""
    what_was_done: Prose
    artifacts: _Lines = Field(default_factory=list)
    git: WorkTree | None = None
    needs_testing: _Lines = Field(default_factory=list)
    known_issues: _Lines = Field(default_factory=list)
    memories: _Ids = Field(default_factory=list)
    """Best first."""


class HandoffAccepted(TaskPayload, type="handoff.accepted"):
    """An agent took the task over."""

    id: MemoryId
    agent: Name


class HandoffWithdrawn(TaskPayload, type="handoff.withdrawn"):
    """A handoff can no longer be accepted."""

    id: MemoryId
    reason: Text | None = None
