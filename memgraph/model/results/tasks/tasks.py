"""Tasks, their state at a moment, pins, and what a session works on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Model, Timestamp
from memgraph.model.results.learning import SavedObservation
from memgraph.model.results.tasks.turns import Guidance

TaskStatus = Literal["active", "suspended", "archived", "closed"]
MAX_STACK = 3
"""Tasks that a session holds at once: the one it works on, and those it has interrupted."""
ItemKind = Literal[
    "title", "status", "goal", "decision", "constraint", "open_question", "next_action", "artifact", "link", "state",
    "confirmation",
]  # fmt: skip
PinKind = Literal["fact", "preference", "constraint", "temporary"]
PIN_KINDS: tuple[PinKind, ...] = ("fact", "preference", "constraint", "temporary")


class Task(Model):
    """A registered task.

    Attributes
    ----------
    id : str
        What memories and commits name as their `task_id`.
    status : {"active", "suspended", "archived", "closed"}
        Archived and closed tasks do not change.
    touched_at : str
        The last commit in the task's scope.
    """

    id: str
    title: str
    status: TaskStatus
    project_id: str | None = None
    created_at: Timestamp
    touched_at: Timestamp


class TaskItem(Model):
    """A part of a task's state.

    Attributes
    ----------
    kind : str
        title, status, goal, decision, constraint, open_question, next_action, artifact, link, state or confirmation.
    name : str or None
        Of a value of the state: its name.
    reason : str or None
        Of a decision or a status: why. Of an artifact: its title. Of a confirmation: what was confirmed.
    resolution : str or None
        Why it was closed, or with what result.
    seq, closed_seq : int
        The events that opened and closed it.
    """

    id: str
    task_id: str
    kind: ItemKind
    name: str | None = None
    content: str
    reason: str | None = None
    resolution: str | None = None
    actor: Literal["user", "agent", "system"]
    seq: int
    created_at: Timestamp
    closed_seq: int | None = None
    closed_at: Timestamp | None = None


class TaskSnapshot(Model):
    """A task's state at a moment.

    Attributes
    ----------
    as_of : int, str or None
        The event or the time; None: now.
    through : int
        The last event that changed something of it by then.
    state : dict of str to str
        Named values.
    links : list of str
        The tasks that it may read.
    confirmation : TaskItem or None
        What the user confirmed last.
    """

    task_id: str
    title: str
    status: TaskStatus
    project_id: str | None = None
    as_of: int | str | None = None
    through: int
    goal: str | None = None
    decisions: list[TaskItem] = Field(default_factory=list)
    constraints: list[TaskItem] = Field(default_factory=list)
    open_questions: list[TaskItem] = Field(default_factory=list)
    next_actions: list[TaskItem] = Field(default_factory=list)
    artifacts: list[TaskItem] = Field(default_factory=list)
    state: dict[str, str] = Field(default_factory=dict)
    links: list[str] = Field(default_factory=list)
    confirmation: TaskItem | None = None


class TaskSwitch(Model):
    """A switch of the current task; None: no task."""

    from_task: str | None = None
    to_task: str | None = None
    switched_at: Timestamp


class RejectedRecall(Model):
    """A recall of which memories were deliberately not followed."""

    query_id: str
    rejected_at: Timestamp


class SessionTasks(Model):
    """The tasks that a session works on, and how it decides between them.

    Attributes
    ----------
    stack : list of str
        At most three: the current one last, before it those that were interrupted.
    autoswitch : bool
        Whether a turn may switch the task by itself; off unless the session's user switched it on.
    guidance : {"minimal", "supportive"}
        Whether turns ask about conflicts and ambiguity only, or also about topics.
    switches_back : int
        How often, in close succession, it went straight back to the task that it had left.
    mismatches : int
        Turns in a row whose message seemed to belong to another task.
    rejected : RejectedRecall or None
        Its last recall of which memories were overridden.
    """

    session_id: str
    stack: list[str] = Field(default_factory=list)
    autoswitch: bool = False
    guidance: Guidance = "minimal"
    last_switch: TaskSwitch | None = None
    switches_back: int = 0
    mismatches: int = 0
    rejected: RejectedRecall | None = None

    @property
    def active(self) -> str | None:
        """The current task."""
        return self.stack[-1] if self.stack else None


class Pin(Model):
    """A pinned text. It changes only by an explicit edit, and goes only by a confirmed removal.

    Attributes
    ----------
    id : str
        The id of the memory that holds it.
    kind : {"fact", "preference", "constraint", "temporary"}
        A constraint comes before everything else in a recall; what is temporary ends by itself.
    task_id : str or None
        The task that it belongs to; None: every task.
    expires_at : str or None
        When a temporary pin ends.
    removed_at : str or None
        When it was removed.
    """

    id: str
    kind: PinKind
    content: str
    task_id: str | None = None
    created_at: Timestamp
    expires_at: Timestamp | None = None
    removed_at: Timestamp | None = None


class PinUpsert(Model):
    """The pin of a text, and whether it is new."""

    pin: Pin
    is_new: bool


class PinRemoval(Model):
    """A request to remove a pin: it is removed by confirming the token before it expires."""

    pin: Pin
    token: str
    expires_at: Timestamp


class PinsRead(Model):
    """What reading a Markdown view changed: ids of pins that were added or edited, and the number of those left as they were."""

    added: list[str] = Field(default_factory=list)
    edited: list[str] = Field(default_factory=list)
    unchanged: int = 0


class WorkingMemory(Model):
    """What a session is doing now.

    Attributes
    ----------
    task, notes : str or None
    context, pending : list of str
        What matters for the task; what is still to be done.
    """

    session_id: str
    task: str | None = None
    context: list[str] = Field(default_factory=list)
    pending: list[str] = Field(default_factory=list)
    notes: str | None = None
    updated_at: Timestamp


class ChatContext(Model):
    """What a chat is about; the last one holds."""

    session_id: str
    context: str
    updated_at: Timestamp


class TransientItem(Model):
    """A text that is kept for a while and then forgotten, unless it is promoted to a memory.

    Attributes
    ----------
    task_id : str or None
        The task that it belongs to.
    """

    id: str
    content: str
    expires_at: Timestamp
    task_id: str | None = None
    created_at: Timestamp


class LeftOut(Model):
    """What an answer says in a tag and was not stored.

    Attributes
    ----------
    content : str
        Its beginning.
    """

    tag: Literal["memory", "chat-memory", "working-memory", "chat-context"]
    content: str
    reason: str


class Absorbed(Model):
    """What was stored of a model's answer.

    Attributes
    ----------
    text : str
        The answer without tags, for its user.
    memories, chat_memories : list of SavedObservation
        Facts, stored or merged with those that were known; those for the session are recalled in it alone.
    working_memory : WorkingMemory or None
    chat_context : ChatContext or None
        None: the answer says none.
    """

    session_id: str
    text: str
    memories: list[SavedObservation] = Field(default_factory=list)
    chat_memories: list[SavedObservation] = Field(default_factory=list)
    working_memory: WorkingMemory | None = None
    chat_context: ChatContext | None = None
    left_out: list[LeftOut] = Field(default_factory=list)
