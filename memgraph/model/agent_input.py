"""Input of the memory tools: an observation, an episode, feedback on an episode (seed 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal, get_args

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, MAX_TEXT_CHARS, Model, Name, Prose, Text, Timestamp, Unit
from memgraph.model.ids import MemoryId
from memgraph.model.memory import PrivacyTier, TrustClass

ToolOutcome = Literal["success", "failure", "partial", "pending"]
FeedbackWord = Literal["love", "like", "meh"]
UNNAMED = "agent"
"""The name of an agent that gives none."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d (?=\S)")
Tags = Annotated[list[Name], Field(max_length=MAX_ITEMS)]


class Observation(Model):
    """A fact or preference that an agent has learned."""

    content: Prose
    """Up to 8,000 characters. Text that is too long for one memory is stored in parts."""
    context: Name | None = None
    """The domain it belongs to: travel, shopping, …"""
    confidence: Unit = 0.7
    outcome: ToolOutcome | None = None
    """The outcome, as in `save_episode`: ``failure`` for something that does not work. None if there is none."""
    valid_at: Timestamp | None = None
    """The time from which it is valid; None: now."""
    privacy_tier: PrivacyTier | None = None
    """None: the tier of its domain, and of what its text plainly concerns (`memgraph.privacy`); at least the episode's."""
    trust_class: TrustClass = "agent"
    episode_id: MemoryId | None = None
    project: Name | None = None
    """None: the episode's project, if there is one."""
    session_id: Name | None = None
    tags: Tags | None = None


class Episode(Model):
    """A complete interaction: the goal, the approach, the actions and the result."""

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
    """The task that owns the episode; recall returns it only within that task."""
    session_id: Name | None = None
    build_id: Name | None = None
    occurred_at: Timestamp | None = None
    """When it happened; None: now."""
    privacy_tier: PrivacyTier | None = None
    """None: the tier of its domain, and of what its text plainly concerns."""
    trust_class: TrustClass = "agent"
    tags: Tags | None = None


class Feedback(Model):
    """A user's feedback on an episode, with an optional comment."""

    feedback: FeedbackWord
    comment: Annotated[Prose, Field(max_length=MAX_TEXT_CHARS - len("2026-01-01 love: "))] | None = (
        None  # so that `line` fits
    )

    @property
    def line(self) -> str:
        """The feedback and the comment in one line."""
        return self.feedback if self.comment is None else f"{self.feedback}: {' '.join(self.comment.split())}"

    def is_last_of(self, recorded: str) -> bool:
        """Return whether the recorded text ends with this feedback; without a comment, whether it ends with any comment on it."""
        last = undated(recorded.rpartition("\n")[2])
        return last == self.line or (self.comment is None and last.startswith(f"{self.feedback}: "))

    def after(self, recorded: str, *, day: str, recorded_on: str) -> str:
        """Append this feedback to the recorded text as a line with its day; cut the oldest text, and date what has no day `recorded_on`."""
        line = f"{day} {self.line}"
        if not recorded:
            return line
        if _DAY.match(recorded) is None and not recorded.startswith("…"):
            recorded = f"{recorded_on} {recorded}"
        length = MAX_TEXT_CHARS - len(line) - 1
        older = recorded if len(recorded) <= length else f"…{recorded[len(recorded) - length + 1 :]}"[: max(length, 0)]
        return f"{older}\n{line}" if older else line


def undated(line: str) -> str:
    """Return a line of recorded feedback without its day."""
    return _DAY.sub("", line, count=1)


def feedback_lines(recorded: str) -> Iterator[tuple[str | None, str]]:
    """Yield the word and the comment of each line of recorded feedback; None for what was recorded in other words."""
    for line in map(undated, filter(None, recorded.split("\n"))):
        word, _, comment = line.partition(":")
        if word in get_args(FeedbackWord):
            yield word, comment.strip()
        else:
            yield None, line.strip()
