"""Results about tasks: their state, pins, sessions, turns, handoffs and what an agent continues from."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from memgraph.model.base import MAX_COUNT, MAX_ITEMS, Count, Model, Name, Strict, Text, Timestamp, Unit
from memgraph.model.ids import MemoryId
from memgraph.model.memory import MemoryType, TrustClass
from memgraph.model.results.learning import SavedObservation
from memgraph.model.results.retrieval import Warned

Guidance = Literal["minimal", "supportive"]
NudgeKind = Literal["conflict", "ambiguity", "topic_switch"]
Decision = Literal[
    "nothing_inferred", "same_task", "switched", "autoswitch_off", "low_confidence", "ambiguous", "guarded"
]
Language = Literal["de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "sv", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
_Number = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class TurnSettings(Model):
    """What a turn may decide by itself. Whether a session may switch tasks is no setting: its user decides that for each session."""

    switch_confidence: Unit = Field(
        default=0.75, description="Confidence from which a turn may switch the task of a session with autoswitch."
    )
    max_switches_back: Count = Field(
        default=3,
        description="Number of switches straight back to the task that was left, each within ten minutes, that hold autoswitch back.",
    )
    max_mismatches: Count = Field(
        default=3,
        description="Number of turns in a row whose message seems to belong to another task that hold autoswitch back.",
    )
    confirmation_languages: list[Language] = Field(
        default_factory=lambda: list(LANGUAGES), description="Languages in which short messages such as “yes” confirm."
    )
    confirmations: list[Name] = Field(default_factory=list, description="Further messages that confirm.")


class TaskMatch(Strict):
    """A task that a message may belong to, and how sure that is, from 0 to 1."""

    task_id: Name
    title: Name
    confidence: Unit


class NudgeOption(Strict):
    """An answer to a question: the key to type (``1``, ``2``, …), and the command that does it; None: nothing is to be run."""

    key: Name
    label: Text
    command: Text | None = None


class Nudge(Strict):
    """A question to the user. Nothing happens unless one of its commands is run."""

    kind: NudgeKind
    """The message asks for what a constraint forbids; it matches several tasks; it matches another task than the current one."""
    question: Text
    options: Annotated[list[NudgeOption], Field(min_length=2, max_length=MAX_ITEMS)]
    about: list[Name]
    """Ids of the constraint or memory, or of the tasks."""


class TurnCounters(Strict):
    """The counters that hold autoswitch back when they reach their limits (settings ``turns``)."""

    switches_back: _Number
    max_switches_back: _Number
    mismatches: _Number
    max_mismatches: _Number


class TurnConfirmation(Strict):
    """A confirmation that was committed as the event ``USER_CONFIRMED`` with the number `seq`, and what was confirmed, if that is known."""

    task_id: Name
    message: Text
    confirmed: Text | None = None
    seq: Annotated[int, Field(ge=1)]


class TurnControl(Strict):
    """What a turn decided: the turn-control record of seed 4. Other versions and unknown fields are refused."""

    version: Literal[1]
    session_id: Name
    turn_id: MemoryId
    seq: Annotated[int, Field(ge=0)]
    """The journal's last event when the turn was over: the state that the record is about."""
    at: Timestamp
    inferred_task: Name | None = None
    """The task that the message seems to belong to."""
    confidence: Unit
    """How certain that is, from 0 to 1."""
    ambiguous: list[TaskMatch] = Field(default_factory=list)
    """The tasks that match about equally well, the best first; empty if one stands out."""
    active_task: Name | None = None
    """The current task before the turn."""
    resolved_task: Name | None = None
    """The current task after the turn; another one only if the decision is ``switched``."""
    autoswitch: bool
    """Whether the session's user allowed it to switch."""
    guidance: Guidance
    decision: Decision
    nudge: Nudge | None = None
    counters: TurnCounters
    confirmations: list[TurnConfirmation] = Field(default_factory=list)


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
    """A registered task, which memories and commits name as their `task_id`. Archived and closed tasks do not change."""

    id: str
    title: str
    status: TaskStatus
    project_id: str | None = None
    created_at: Timestamp
    touched_at: Timestamp
    """The last commit in the task's scope."""


class TaskItem(Model):
    """A part of a task's state."""

    id: str
    task_id: str
    kind: ItemKind
    name: str | None = None
    """Of a value of the state: its name."""
    content: str
    reason: str | None = None
    """Of a decision or a status: why. Of an artifact: its title. Of a confirmation: what was confirmed."""
    resolution: str | None = None
    """Why it was closed, or with what result."""
    actor: Literal["user", "agent", "system"]
    seq: int
    """The event that opened it."""
    created_at: Timestamp
    closed_seq: int | None = None
    """The event that closed it."""
    closed_at: Timestamp | None = None


class TaskSnapshot(Model):
    """A task's state at a moment."""

    task_id: str
    title: str
    status: TaskStatus
    project_id: str | None = None
    as_of: int | str | None = None
    """The event or the time; None: now."""
    through: int
    """The last event that changed something of the task by then."""
    goal: str | None = None
    decisions: list[TaskItem] = Field(default_factory=list)
    constraints: list[TaskItem] = Field(default_factory=list)
    open_questions: list[TaskItem] = Field(default_factory=list)
    next_actions: list[TaskItem] = Field(default_factory=list)
    artifacts: list[TaskItem] = Field(default_factory=list)
    state: dict[str, str] = Field(default_factory=dict)
    """Named values."""
    links: list[str] = Field(default_factory=list)
    """The tasks that it may read."""
    confirmation: TaskItem | None = None
    """What the user confirmed last."""


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
    """The tasks that a session works on, and how it decides between them."""

    session_id: str
    stack: list[str] = Field(default_factory=list)
    """At most three: the current one last, before it those that were interrupted."""
    autoswitch: bool = False
    """Whether a turn may switch the task by itself; off unless the session's user switched it on."""
    guidance: Guidance = "minimal"
    """Whether turns ask about conflicts and ambiguity only, or also about topics."""
    last_switch: TaskSwitch | None = None
    switches_back: int = 0
    """How often, in close succession, it went straight back to the task that it had left."""
    mismatches: int = 0
    """Turns in a row whose message seemed to belong to another task."""
    rejected: RejectedRecall | None = None
    """Its last recall of which memories were overridden."""

    @property
    def active(self) -> str | None:
        """The current task."""
        return self.stack[-1] if self.stack else None


class Pin(Model):
    """A pinned text. It changes only by an explicit edit, and goes only by a confirmed removal."""

    id: str
    """The id of the memory that holds it."""
    kind: PinKind
    """A constraint comes before everything else in a recall; what is temporary ends by itself, at `expires_at`."""
    content: str
    task_id: str | None = None
    """The task that it belongs to; None: every task."""
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
    """What a session is doing now, what matters for it, and what is still to be done."""

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
    """A text that is kept for a while and then forgotten, unless it is promoted to a memory."""

    id: str
    content: str
    expires_at: Timestamp
    task_id: str | None = None
    created_at: Timestamp


class LeftOut(Model):
    """The beginning of what an answer says in a tag and was not stored."""

    tag: Literal["memory", "chat-memory", "working-memory", "chat-context"]
    content: str
    reason: str


class Absorbed(Model):
    """What was stored of a model's answer: facts, stored or merged with those that were known; those for the session are recalled in it alone."""

    session_id: str
    text: str
    """The answer without tags, for its user."""
    memories: list[SavedObservation] = Field(default_factory=list)
    chat_memories: list[SavedObservation] = Field(default_factory=list)
    working_memory: WorkingMemory | None = None
    chat_context: ChatContext | None = None
    left_out: list[LeftOut] = Field(default_factory=list)


HandoffState = Literal["open", "accepted", "withdrawn"]
MAX_FILES = 100
"""Changed files that the state of a work tree names."""


class GitState(Model):
    """The state of a git work tree."""

    branch: Name | None = None
    """None: no branch is checked out."""
    last_git_commit: Name | None = None
    """None: nothing was committed yet."""
    uncommitted_changes: bool = False
    """Whether files were changed, or added, since the last commit."""
    files_modified: Annotated[list[Name], Field(max_length=MAX_FILES)] = Field(default_factory=list)
    """The files changed or added since the last commit, at most 100, relative to the top of the work tree."""
    has_more_files: bool = False


class LedgerContext(Model):
    """What an agent knows at a checkpoint; `patterns_learned` are ids of memories that still exist, of all checkpoints so far."""

    tech_stack: list[str] = Field(default_factory=list)
    patterns_learned: list[str] = Field(default_factory=list)
    current_goal: str | None = None


class Ledger(Model):
    """An agent's last checkpoint."""

    agent_id: str
    last_checkpoint: Timestamp
    tasks_completed: Count = 0
    """The number of tasks that the agent's checkpoints named as completed."""
    current_task: str | None = None
    state: GitState | None = None
    """None: the checkpoint was given no work tree, or the folder is not a git work tree."""
    context: LedgerContext = Field(default_factory=LedgerContext)


class Handoff(Model):
    """A task as one agent hands it over to another."""

    id: str
    task_id: str
    from_agent: str
    to_agent: str | None = None
    """None: any other agent may accept it."""
    state: HandoffState = "open"
    seq: int
    """The event that created it. ``memory.tasks.snapshot(task_id, as_of=seq)`` is the state of the task that it hands over."""
    created_at: Timestamp
    what_was_done: str
    artifacts: list[str] = Field(default_factory=list)
    git_state: GitState | None = None
    needs_testing: list[str] = Field(default_factory=list)
    known_issues: list[str] = Field(default_factory=list)
    memory_ids: list[str] = Field(default_factory=list)
    """The memories that it carries, best first: those that still exist."""
    accepted_by: str | None = None
    accepted_at: Timestamp | None = None
    withdrawn_at: Timestamp | None = None
    reason: str | None = None
    """Why it was withdrawn."""


class CarriedMemory(Model):
    """A memory of a continuity page."""

    id: str
    type: MemoryType
    text: str
    trust_class: TrustClass = "agent"


class ContinuityPage(Model):
    """What an agent needs to continue a task."""

    agent: str | None = None
    """The agent for which the page was made: it holds only what this agent may have. None: the owner."""
    generated_at: Timestamp
    constraints: list[Pin] = Field(default_factory=list)
    """Pinned constraints of the task and of every task."""
    task: TaskSnapshot
    """The task's state: at the handoff, or now."""
    handoff: Handoff | None = None
    since: list[str] = Field(default_factory=list)
    """What was added to the task, or closed in it, after the handoff."""
    ledger: Ledger | None = None
    """The last checkpoint of the agent that handed over, or else of `agent`."""
    memories: list[CarriedMemory] = Field(default_factory=list)
    """Those of the handoff, or those that the task's title, goal and next actions recall. Failures are mistakes instead."""
    mistakes: list[Warned] = Field(default_factory=list)
    is_cut: bool = False
    """Whether entries were left out to keep within the budget."""
    total_tokens: Count = 0
    """Estimated tokens of `text`, the page as Markdown."""
    text: str = ""


class AcceptedHandoff(Model):
    """A handoff that was accepted, the page from which to continue, and the command that switches a session to its task: nothing does by itself."""

    handoff: Handoff
    page: ContinuityPage
    command: str
