"""Ledgers of agents, handoffs between them, and the page from which an agent continues."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Name, Timestamp
from memgraph.model.memory import MemoryType, TrustClass
from memgraph.model.results.context import Warned
from memgraph.model.results.tasks.tasks import Pin, TaskSnapshot

HandoffState = Literal["open", "accepted", "withdrawn"]
MAX_FILES = 100
"""Changed files that the state of a work tree names."""


class GitState(Model):
    """The state of a git work tree.

    Attributes
    ----------
    branch, last_git_commit : str or None
        None: no branch is checked out; nothing was committed yet.
    uncommitted_changes : bool
        Whether files were changed, or added, since the last commit.
    files_modified : list of str
        These files, at most 100, relative to the top of the work tree.
    has_more_files : bool
        Whether there are more of them.
    """

    branch: Name | None = None
    last_git_commit: Name | None = None
    uncommitted_changes: bool = False
    files_modified: Annotated[list[Name], Field(max_length=MAX_FILES)] = Field(default_factory=list)
    has_more_files: bool = False


class LedgerContext(Model):
    """What an agent knows at a checkpoint.

    Attributes
    ----------
    patterns_learned : list of str
        Ids of memories that still exist, of all checkpoints so far.
    """

    tech_stack: list[str] = Field(default_factory=list)
    patterns_learned: list[str] = Field(default_factory=list)
    current_goal: str | None = None


class Ledger(Model):
    """An agent's last checkpoint.

    Attributes
    ----------
    tasks_completed : int
        The number of tasks that the agent's checkpoints named as completed.
    current_task : str or None
        The id of a task.
    state : GitState or None
        None: the checkpoint was given no work tree, or the folder is not a git work tree.
    """

    agent_id: str
    last_checkpoint: Timestamp
    tasks_completed: Count = 0
    current_task: str | None = None
    state: GitState | None = None
    context: LedgerContext = Field(default_factory=LedgerContext)


class Handoff(Model):
    """A task as one agent hands it over to another.

    Attributes
    ----------
    to_agent : str or None
        None: any other agent may accept it.
    state : {"open", "accepted", "withdrawn"}
    seq : int
        The event that created it. ``memory.tasks.snapshot(task_id, as_of=seq)`` is the state of the task that it hands over.
    git_state : GitState or None
    memory_ids : list of str
        The memories that it carries, best first: those that still exist.
    accepted_by, accepted_at : str or None
    withdrawn_at, reason : str or None
        When it was withdrawn, and why.
    """

    id: str
    task_id: str
    from_agent: str
    to_agent: str | None = None
    state: HandoffState = "open"
    seq: int
    created_at: Timestamp
    what_was_done: str
    artifacts: list[str] = Field(default_factory=list)
    git_state: GitState | None = None
    needs_testing: list[str] = Field(default_factory=list)
    known_issues: list[str] = Field(default_factory=list)
    memory_ids: list[str] = Field(default_factory=list)
    accepted_by: str | None = None
    accepted_at: Timestamp | None = None
    withdrawn_at: Timestamp | None = None
    reason: str | None = None


class CarriedMemory(Model):
    """A memory of a continuity page."""

    id: str
    type: MemoryType
    text: str
    trust_class: TrustClass = "agent"


class ContinuityPage(Model):
    """What an agent needs to continue a task.

    Attributes
    ----------
    agent : str or None
        The agent for which the page was made: it holds only what this agent may have. None: the owner.
    constraints : list of Pin
        Pinned constraints of the task and of every task.
    task : TaskSnapshot
        The task's state: at the handoff, or now.
    handoff : Handoff or None
    since : list of str
        What was added to the task, or closed in it, after the handoff.
    ledger : Ledger or None
        The last checkpoint of the agent that handed over, or else of `agent`.
    memories : list of CarriedMemory
        Relevant memories: those of the handoff, or those that the task's title, goal and next actions recall. Failures are mistakes instead.
    mistakes : list of Warned
        Known failures and what prevents them.
    is_cut : bool
        Whether entries were left out to keep within the budget.
    total_tokens : int
        Estimated tokens of `text`.
    text : str
        The page as Markdown.
    """

    agent: str | None = None
    generated_at: Timestamp
    constraints: list[Pin] = Field(default_factory=list)
    task: TaskSnapshot
    handoff: Handoff | None = None
    since: list[str] = Field(default_factory=list)
    ledger: Ledger | None = None
    memories: list[CarriedMemory] = Field(default_factory=list)
    mistakes: list[Warned] = Field(default_factory=list)
    is_cut: bool = False
    total_tokens: Count = 0
    text: str = ""


class AcceptedHandoff(Model):
    """A handoff that was accepted, the page from which to continue, and the command that switches a session to its task.

    Attributes
    ----------
    command : str
        Nothing switches a session by itself.
    """

    handoff: Handoff
    page: ContinuityPage
    command: str
