"""Context for a task as data: the memories by type (seed 2), and what to build on and to avoid (seed 3)."""

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
from memgraph.model.results.retrieval import Certainty, Opposed

OutcomeWord = Literal["success", "failure", "partial", "unknown"]
ContextFormat = Literal["notes", "prefix", "sections", "delimited", "context"]
WhenNothing = Literal["say", "empty"]


class AgentContext(Model):
    """The memories of one recall by type, whole and best first (seed 2, §5.3).

    Attributes
    ----------
    query_id : str
        The recall's id, for `record_outcome`.
    semantic_memories : list of StoredSemanticMemory
        General knowledge.
    similar_episodes : list of StoredEpisodicMemory
        Episodes, successful or not.
    procedural_rules : list of StoredProceduralMemory
        Procedures.
    total_tokens_used : int
        Tokens of the memories' contents.
    certainty : {"high", "medium", "low", "none"}
        How sure it is that the store has knowledge about the query.
    contradictions : list of Opposed
        Pairs of the memories that contradict each other.
    is_over_budget : bool
        Whether it is empty although memories were found, because none of them fits the budget.
    notice : str or None
        A message about the recall.
    scores : dict of str to float
        The score of each memory by its id; empty if the recall explains none.
    """

    query_id: str
    retrieved_at: Timestamp
    semantic_memories: list[StoredSemanticMemory] = Field(default_factory=list)
    similar_episodes: list[StoredEpisodicMemory] = Field(default_factory=list)
    procedural_rules: list[StoredProceduralMemory] = Field(default_factory=list)
    total_tokens_used: Count = 0
    certainty: Certainty = "none"
    contradictions: list[Opposed] = Field(default_factory=list)
    is_over_budget: bool = False
    notice: str | None = None
    scores: dict[str, float] = Field(default_factory=dict)

    @property
    def memories(self) -> list[StoredMemory]:
        """All memories, in the order of `RetrievalResult.memories`."""
        return [*self.similar_episodes, *self.semantic_memories, *self.procedural_rules]


class FromMemory(Model):
    """Fields about the memory that an entry was made from: its id, trust and privacy.

    Attributes
    ----------
    contradicts_older, contradicted_by_newer : list of str
        Ids of other memories of the recall that cannot hold if this one does.
    """

    memory_id: str
    confidence: Unit = 1.0
    trust_class: TrustClass = "agent"
    privacy_tier: PrivacyTier = "public"
    contradicts_older: list[str] = Field(default_factory=list)
    contradicted_by_newer: list[str] = Field(default_factory=list)


class Pattern(FromMemory):
    """General knowledge: when it holds, and the right approach then."""

    text: str
    category: str | None = None
    conditions: list[str] = Field(default_factory=list)
    correct_approach: str | None = None


class Warned(FromMemory):
    """A known failure: what fails, why, and what prevents it (seed 3's anti-pattern).

    Attributes
    ----------
    memory_type : {"episodic", "semantic", "procedural"}
        Type of the memory that warns: an episode, general knowledge, or a procedure with known errors.
    """

    memory_type: MemoryType
    what_fails: str
    why: str | None = None
    prevention: str | None = None


class Skill(FromMemory):
    """How to do something: trigger, prerequisites, steps and completion criterion.

    Attributes
    ----------
    text : str or None
        The memory's content if it has no steps.
    """

    name: str | None = None
    trigger: str | None = None
    prerequisites: list[str] = Field(default_factory=list)
    steps: list[str] = Field(default_factory=list)
    exit_criteria: list[str] = Field(default_factory=list)
    success_rate: Unit | None = None
    text: str | None = None


class Experience(FromMemory):
    """An episode. One that was recorded in parts has these parts, any other only its content."""

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
        Semantic memories, except those with a negative outcome.
    avoid_these : list of Warned
        Memories with a negative outcome, of any type; and, from the others, each wrong approach with its right one,
        each error with its resolution, each common error of a procedure with its fix.
    applicable_skills : list of Skill
        Procedures with a confidence of 0.5 or more, except those with a negative outcome.
    similar_episodes : list of Experience
        Episodes, except those with a negative outcome.
    certainty : {"high", "medium", "low", "none"}
        How sure it is that the store has knowledge about the task; ``none``: it was not tried before.
    """

    query_id: str
    retrieved_at: Timestamp
    certainty: Certainty = "none"
    relevant_patterns: list[Pattern] = Field(default_factory=list)
    avoid_these: list[Warned] = Field(default_factory=list)
    applicable_skills: list[Skill] = Field(default_factory=list)
    similar_episodes: list[Experience] = Field(default_factory=list)
    notice: str | None = None
