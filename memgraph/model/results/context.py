"""What an agent is given before a task, as data: the memories by type (seed 2), and what to build on and to avoid (seed 3)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Timestamp, Unit
from memgraph.model.memory import (
    MemoryType,
    PrivacyTier,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)
from memgraph.model.retrieval import Certainty, Opposed

OutcomeWord = Literal["success", "failure", "partial", "unknown"]
ContextFormat = Literal["prefix", "sections", "delimited", "context"]


class AgentContext(Model):
    """The memories of one recall by type, whole and best first (seed 2, §5.3).

    Attributes
    ----------
    query_id : str
        Names the recall to `record_outcome`.
    semantic_memories : list of StoredSemanticMemory
        What is known.
    similar_episodes : list of StoredEpisodicMemory
        What happened before, well or badly.
    procedural_rules : list of StoredProceduralMemory
        How things are done.
    total_tokens_used : int
        Of the memories' contents.
    certainty : {"high", "medium", "low", "none"}
        Whether the store knows of what was asked at all.
    contradictions : list of Opposed
        Which of the memories contradict each other.
    notice : str or None
        What the recall had to tell.
    """

    query_id: str
    retrieved_at: Timestamp
    semantic_memories: list[StoredSemanticMemory] = Field(default_factory=list)
    similar_episodes: list[StoredEpisodicMemory] = Field(default_factory=list)
    procedural_rules: list[StoredProceduralMemory] = Field(default_factory=list)
    total_tokens_used: Count = 0
    certainty: Certainty = "none"
    contradictions: list[Opposed] = Field(default_factory=list)
    notice: str | None = None

    @property
    def memories(self) -> list[StoredMemory]:
        """All of them, in the order of `RetrievalResult.memories`."""
        return [*self.similar_episodes, *self.semantic_memories, *self.procedural_rules]


class FromMemory(Model):
    """What every entry says of the memory that it was made of: which one, and how far to trust and to share it.

    Attributes
    ----------
    contradicts_older, contradicted_by_newer : list of str
        Ids of other memories of the recall that cannot be so if this one is.
    """

    memory_id: str
    confidence: Unit = 1.0
    trust_class: TrustClass = "agent"
    privacy_tier: PrivacyTier = "public"
    contradicts_older: list[str] = Field(default_factory=list)
    contradicted_by_newer: list[str] = Field(default_factory=list)


class Pattern(FromMemory):
    """What is so in general, when it holds, and what is right then."""

    text: str
    category: str | None = None
    conditions: list[str] = Field(default_factory=list)
    correct_approach: str | None = None


class Warned(FromMemory):
    """What went wrong, or is known to: what fails, why, and what prevents it (seed 3's anti-pattern).

    Attributes
    ----------
    memory_type : {"episodic", "semantic", "procedural"}
        Of the memory that warns: what happened, what is so, or what a procedure is known to meet.
    """

    memory_type: MemoryType
    what_fails: str
    why: str | None = None
    prevention: str | None = None


class Skill(FromMemory):
    """How to do something: when, what must be there first, the steps, and when it is done.

    Attributes
    ----------
    text : str or None
        The memory's content where it has no steps.
    """

    name: str | None = None
    trigger: str | None = None
    prerequisites: list[str] = Field(default_factory=list)
    steps: list[str] = Field(default_factory=list)
    exit_criteria: list[str] = Field(default_factory=list)
    success_rate: Unit | None = None
    text: str | None = None


class Experience(FromMemory):
    """An episode. One that was recorded in parts is told in its parts, any other by its content alone."""

    text: str
    outcome: OutcomeWord
    occurred_at: Timestamp | None = None
    project_id: str | None = None
    approach: str | None = None
    action: str | None = None
    feedback: str | None = None


class TaskContext(Model):
    """What to build on, what to avoid and how to go about a task (seed 3). All texts are single lines.

    Attributes
    ----------
    relevant_patterns : list of Pattern
        Semantic memories, but for those of negative outcome.
    avoid_these : list of Warned
        Memories of negative outcome, whatever their type; and, of the others, each wrong approach beside its right one,
        each error met with what resolved it, each common error of a procedure with its fix.
    applicable_skills : list of Skill
        Procedures of confidence 0.5 or more, but for those of negative outcome.
    similar_episodes : list of Experience
        Episodes, but for those of negative outcome.
    certainty : {"high", "medium", "low", "none"}
        Whether the store knows of the task at all; ``none``: it was not tried before.
    """

    query_id: str
    retrieved_at: Timestamp
    certainty: Certainty = "none"
    relevant_patterns: list[Pattern] = Field(default_factory=list)
    avoid_these: list[Warned] = Field(default_factory=list)
    applicable_skills: list[Skill] = Field(default_factory=list)
    similar_episodes: list[Experience] = Field(default_factory=list)
    notice: str | None = None
