"""What agents say with the memory tools: an observation, an episode, feedback on one (seed 2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, MAX_TEXT_CHARS, Model, Name, Prose, Text, Timestamp, Unit
from memgraph.model.ids import MemoryId
from memgraph.model.memory import PrivacyTier, TrustClass

ToolOutcome = Literal["success", "failure", "partial", "pending"]
FeedbackWord = Literal["love", "like", "meh"]
Tags = Annotated[list[Name], Field(max_length=MAX_ITEMS)]


class Observation(Model):
    """A fact or preference that an agent has learned.

    Attributes
    ----------
    content : str
        Up to 8,000 characters; what is longer than a memory is kept in parts.
    context : str or None
        The domain it belongs to: travel, shopping, …
    outcome : str or None
        How it comes out where it says so, as `save_episode` has it: ``failure`` for what does not work. None: it says nothing
        of that.
    valid_at : str or None
        Since when it is so; None: since now.
    privacy_tier : str or None
        None: the episode's, else ``public``.
    episode_id : str or None
        The episode that it was learned from.
    project : str or None
        None: the episode's, else none.
    """

    content: Prose
    context: Name | None = None
    confidence: Unit = 0.7
    outcome: ToolOutcome | None = None
    valid_at: Timestamp | None = None
    privacy_tier: PrivacyTier | None = None
    trust_class: TrustClass = "agent"
    episode_id: MemoryId | None = None
    project: Name | None = None
    session_id: Name | None = None
    tags: Tags | None = None


class Episode(Model):
    """A complete interaction: what was wanted, how it was approached, what was done, what came of it.

    Attributes
    ----------
    user_feedback : str or None
        What the user said of it, or seemed to think.
    agent_name, mission_id : str or None
        Who did it, and as part of what.
    task_id : str or None
        The task whose own the episode is: without it recall does not see it.
    occurred_at : str or None
        When it happened; None: now.
    """

    situation: Prose
    reasoning: Prose
    action: Prose
    outcome: ToolOutcome
    user_feedback: Text | None = None
    agent_name: Name | None = None
    mission_id: Name | None = None
    context: Name | None = None
    project: Name | None = None
    task_id: Name | None = None
    session_id: Name | None = None
    build_id: Name | None = None
    occurred_at: Timestamp | None = None
    privacy_tier: PrivacyTier = "public"
    trust_class: TrustClass = "agent"
    tags: Tags | None = None


class Feedback(Model):
    """What a user thought of an episode, and in which words."""

    feedback: FeedbackWord
    comment: Annotated[Prose, Field(max_length=MAX_TEXT_CHARS - len("love: "))] | None = None  # as `told` it fits

    @property
    def told(self) -> str:
        """The word, and the comment behind it, in one line."""
        return self.feedback if self.comment is None else f"{self.feedback}: {' '.join(self.comment.split())}"

    def is_last_of(self, recorded: str) -> bool:
        """Return whether what was recorded ends with this feedback; without a comment, with its word and any comment."""
        last = recorded.rpartition("\n")[2]
        return last == self.told or (self.comment is None and last.startswith(f"{self.feedback}: "))

    def after(self, recorded: str) -> str:
        """Return what was recorded with this behind it, a line each; where that is too long, the oldest text is cut."""
        if not recorded:
            return self.told
        room = MAX_TEXT_CHARS - len(self.told) - 1
        older = recorded if len(recorded) <= room else f"…{recorded[len(recorded) - room + 1 :]}"[: max(room, 0)]
        return f"{older}\n{self.told}" if older else self.told
