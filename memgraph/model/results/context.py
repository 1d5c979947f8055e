"""Context for a task as data: the memories by type (seed 2), what to build on and to avoid (seed 3), and a prompt in sections (seed 1)."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from memgraph.model.base import Count, Model, Timestamp, Unit
from memgraph.model.memory import (
    MemoryType,
    PrivacyTier,
    StandingRule,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)
from memgraph.model.results.retrieval import Authority, Certainty, Opposed

OutcomeWord = Literal["success", "failure", "partial", "unknown"]
ContextFormat = Literal["notes", "prefix", "sections", "delimited", "context"]
WhenNothing = Literal["say", "empty"]
SectionName = Literal["constraints", "long_term", "recent_notes", "chat_context", "chat_memory", "working_memory"]
SECTIONS: tuple[SectionName, ...] = get_args(SectionName)
"""All sections, in the order of the prompt."""
SESSION_SECTIONS: tuple[SectionName, ...] = ("chat_context", "chat_memory", "working_memory")
"""Those that belong to one session."""


class AgentContext(Model):
    """The memories of one recall by type, whole and best first (seed 2, §5.3). The fields that are not described are those of `RetrievalResult`.

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
    scores : dict of str to float
        The score of each memory by its id; empty if the recall explains none.
    ranks : dict of str to int
        The rank of each memory by its id, from 1; empty if it is by the score alone.
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
    constraints_left_out: Count = 0
    rules: list[StandingRule] | None = None
    rules_left_out: Count = 0
    notice: str | None = None
    has_phrases: bool = False
    scores: dict[str, float] = Field(default_factory=dict)
    ranks: dict[str, int] = Field(default_factory=dict)
    labels: dict[str, str] = Field(default_factory=dict)
    related_ids: list[str] = Field(default_factory=list)
    task_items: dict[str, Authority] = Field(default_factory=dict)

    @property
    def memories(self) -> list[StoredMemory]:
        """All memories but the standing rules, in the order of `RetrievalResult.memories`."""
        return [*self.similar_episodes, *self.semantic_memories, *self.procedural_rules]


class FromMemory(Model):
    """Fields about the memory that an entry was made from: its id, trust and privacy.

    Attributes
    ----------
    contradicts_older, contradicted_by_newer : list of str
        Ids of other memories of the recall that cannot hold if this one does.
    label : str or None
        The label of what comes from another task, as in `RetrievalResult.labels`.
    task_item : str or None
        The class of what is no memory but holds in a task.
    """

    memory_id: str
    confidence: Unit = 1.0
    trust_class: TrustClass = "agent"
    privacy_tier: PrivacyTier = "public"
    contradicts_older: list[str] = Field(default_factory=list)
    contradicted_by_newer: list[str] = Field(default_factory=list)
    label: str | None = None
    task_item: Authority | None = None


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
    standing_rules : list of Pattern
        Rules that hold whatever the task is. They are in no other list.
    relevant_patterns : list of Pattern
        Semantic memories, except those with a negative outcome; and, as text, procedures that come from a tool, an import or a web page.
    avoid_these : list of Warned
        Memories with a negative outcome, of any type; and, from the others, each wrong approach with its right one,
        each error with its resolution, each common error of a procedure with its fix.
    applicable_skills : list of Skill
        Procedures of the user and of agents with a confidence of 0.5 or more, except those with a negative outcome.
    similar_episodes : list of Experience
        Episodes, except those with a negative outcome.
    certainty : {"high", "medium", "low", "none"}
        How sure it is that the store has knowledge about the task; ``none``: it was not tried before.
    """

    query_id: str
    retrieved_at: Timestamp
    certainty: Certainty = "none"
    standing_rules: list[Pattern] = Field(default_factory=list)
    relevant_patterns: list[Pattern] = Field(default_factory=list)
    avoid_these: list[Warned] = Field(default_factory=list)
    applicable_skills: list[Skill] = Field(default_factory=list)
    similar_episodes: list[Experience] = Field(default_factory=list)
    notice: str | None = None


class PromptBudget(Model):
    """Limits on the sections of a prompt, in tokens of their text with its headings."""

    constraints: Count = Field(
        default=600,
        description="Standing rules, pinned constraints first; also the tokens of these constraints' content in a recall.",
    )
    long_term: Count = Field(default=1_000, description="What is known about the task, or of the project.")
    recent_notes: Count = Field(default=500, description="Memories of the last days.")
    recent_days: Count = Field(default=3, description="Number of days of the recent notes.")
    chat_context: Count = Field(default=80, description="What the session's chat is about.")
    chat_memory: Count = Field(default=300, description="What is only told in the session.")
    working_memory: Count = Field(default=200, description="What the session is doing.")


class PromptSection(Model):
    """One section. Its text, with its heading, is within its budget.

    Attributes
    ----------
    heading : str
        Its first line; empty for what is known, which has headings of its own.
    body : str
        The rest of its text.
    tokens, budget : int
    memory_ids : list of str
        The memories in it.
    left_out : int
        Entries that do not fit; of the standing rules, the text says so. What fits in part is not among them.
    """

    name: SectionName
    heading: str = ""
    body: str
    tokens: Count
    budget: Count
    memory_ids: list[str] = Field(default_factory=list)
    left_out: Count = 0

    @property
    def text(self) -> str:
        """The section as it stands in the prompt."""
        return "\n".join(filter(None, (self.heading, self.body)))


class Prompt(Model):
    """The memory part of a prompt.

    Attributes
    ----------
    text : str
        The sections, with an empty line between them; empty without any.
    sections : list of PromptSection
        Those that are not empty.
    task_id : str or None
        The task whose memories are in it: the one asked for, else the one that the session works on.
    query_id : str or None
        Of the recall, for `record_outcome`.
    notice : str or None
        A message about the recall, or about standing rules that do not fit.
    """

    text: str
    sections: list[PromptSection] = Field(default_factory=list)
    session_id: str | None = None
    task_id: str | None = None
    query_id: str | None = None
    notice: str | None = None

    @property
    def memory_ids(self) -> list[str]:
        """The memories in it."""
        return [one for section in self.sections for one in section.memory_ids]
