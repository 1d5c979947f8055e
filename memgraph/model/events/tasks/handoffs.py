"""Events of agents' ledgers, and of handoffs between agents."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.model.base import Content, Name, Prose, Strict, Text
from memgraph.model.events.payload import SYSTEM, Payload
from memgraph.model.events.tasks.tasks import TaskPayload
from memgraph.model.ids import MemoryId
from memgraph.model.results.tasks import MAX_FILES

MAX_CARRIED = 100
"""Memories that a handoff carries, and that a checkpoint names as learned."""
_Lines = Annotated[list[Content], Field(max_length=100)]
_Names = Annotated[list[Name], Field(max_length=100)]
_Ids = Annotated[list[MemoryId], Field(max_length=MAX_CARRIED)]


class WorkTree(Strict):
    """The state of a git work tree; see `memgraph.model.results.tasks.handoffs.GitState`."""

    branch: Name | None = None
    last_git_commit: Name | None = None
    uncommitted_changes: bool
    files_modified: Annotated[list[Name], Field(max_length=MAX_FILES)] = Field(default_factory=list)
    has_more_files: bool = False


class LedgerCheckpointed(Payload):
    """An agent stated where it is, instead of what it stated before.

    Attributes
    ----------
    completed, learned : list of str
        Tasks and memories, in addition to those of earlier checkpoints.
    """

    TYPE = "ledger.checkpointed"
    SCOPES = SYSTEM

    agent: Name
    current_task: Name | None = None
    goal: Prose | None = None
    tech_stack: _Names = Field(default_factory=list)
    git: WorkTree | None = None
    completed: _Names = Field(default_factory=list)
    learned: _Ids = Field(default_factory=list)


class HandoffCreated(TaskPayload):
    """An agent hands the task over. The state that it hands over is that of the task at this event.

    Attributes
    ----------
    to_agent : str or None
        None: any other agent may accept it.
    memories : list of str
        Ids of the memories that it carries, best first.
    """

    TYPE = "handoff.created"

    id: MemoryId
    from_agent: Name
    to_agent: Name | None = None
    what_was_done: Prose
    artifacts: _Lines = Field(default_factory=list)
    git: WorkTree | None = None
    needs_testing: _Lines = Field(default_factory=list)
    known_issues: _Lines = Field(default_factory=list)
    memories: _Ids = Field(default_factory=list)


class HandoffAccepted(TaskPayload):
    """An agent took the task over."""

    TYPE = "handoff.accepted"

    id: MemoryId
    agent: Name


class HandoffWithdrawn(TaskPayload):
    """A handoff can no longer be accepted."""

    TYPE = "handoff.withdrawn"

    id: MemoryId
    reason: Text | None = None


HANDOFF_EVENTS: tuple[type[Payload], ...] = (LedgerCheckpointed, HandoffCreated, HandoffAccepted, HandoffWithdrawn)
