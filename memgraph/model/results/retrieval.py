"""Recall: its query and settings, its results, context for a task, and the prompt."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, SerializeAsAny, StringConstraints

from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Count, Floor, Model, Name, Text, Timestamp, Unit, storable
from memgraph.model.memory import (
    Embedding,
    MemoryType,
    PrivacyTier,
    StandingRule,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)

MAX_TASK_CHARS = 1_000_000
MAX_SEARCHED_CHARS = 8_000
"""Only the beginning of a longer task is used for the search: it states the goal, the rest are logs."""

MAX_PHRASES = 5
MAX_PHRASE_CHARS = 200
Phrases = Annotated[
    list[Annotated[Name, StringConstraints(max_length=MAX_PHRASE_CHARS)]], Field(max_length=MAX_PHRASES)
]
"""Phrases that are searched for with a task: it says what shall be done, they the words in which past work was written down."""
WANTED_PHRASES = (
    "three phrases in the words that past messages would have used, such as “rate limit login attempts”, “lock account after failed logins” "
    "and “brute force protection” for “nobody may guess passwords”"
)
"""What every text asks an agent for: its phrases find more than any ranking of the task's own words."""

TaskText = Annotated[str, StringConstraints(max_length=MAX_TASK_CHARS), AfterValidator(storable)]
Bounded = Annotated[float, Field(ge=0.0, le=0.05)]
Certainty = Literal["high", "medium", "low", "none"]
Rules = Literal["all", "matching", "none"]
"""Which standing rules a recall gives: all, those that match the task, or none besides the pinned constraints."""
MatchType = Literal["semantic", "keyword", "entity", "combined"]
Authority = Literal[
    "pin", "snapshot", "decision", "constraint", "next action", "open question", "event", "memory", "transcript"
]
"""Authority classes, the highest first (seed 4): they decide near ties. ``snapshot`` is a task's title, goal or named value, ``event`` an
artifact or a confirmation in a task, ``transcript`` what was said in a session, verbatim."""


class RetrievalBudget(Model):
    """Limits on what a recall returns: memories of each type, what holds in tasks, and tokens of content."""

    episodic: Count = Field(default=5, description="Maximum number of episodic memories (what happened).")
    semantic: Count = Field(default=3, description="Maximum number of semantic memories (what is true).")
    procedural: Count = Field(default=2, description="Maximum number of procedural memories (how to do something).")
    task_items: Count = Field(default=5, description="Maximum number of items of tasks: goals, decisions and so on.")
    related: Count = Field(default=3, description="Maximum number of results from linked tasks.")
    max_tokens: Count = Field(
        default=800, description="Maximum number of tokens of content in total, besides pinned constraints."
    )


class RetrievalConfig(Model):
    """Settings of retrieval; the defaults are one recipe for all measured sets (``tests/benchmarks/README.md``).

    Seed scores lie in [0, 1], so a weight is the share of the best possible seed score that a term may add.

    Attributes
    ----------
    dense_weight : float or None
        Share of the vector score in the fused score; the text score has the rest. None: 0.9 for a task with phrases; 0.75 for one of more
        than three words without any, which rarely has the words of past work; 0.45 for questions, for texts of few words, and for those that
        the packaged model does not cover.
    fusion : {"scores", "rrf"}
        ``scores`` adds scaled scores; ``rrf`` adds reciprocal ranks (k = 60), which ignore the differences between scores.
    candidates : int
        Number of the best memories of each type that the later stages consider. Fewer take less time, but may lose memories that only
        the graph walk would raise. A tag of more memories than this is not searched for.
    length_constant_words : float
        Cosines are scaled by ``1 − exp(−words / constant)``, the less the higher they are: very short texts rank too high otherwise. At most
        2 for a task with phrases, which are as short as the titles that they look for, unless ``dense_weight`` is given.
    neighbour_span, neighbour_decay : int, float
        Number of NEXT steps within a session around a memory, and the factor by which each step reduces a share.
    context_weight : float
        Share of a query term's score that a memory gains if only a neighbour contains the term.
    neighbour_weight : float
        Share of the best neighbour's score that a memory gains.
    answer_factor : float
        Factor by which that gain grows if the neighbour is a question immediately before the memory.
    question_discount : float
        Share of its score that a question loses, because in a session the answers are wanted.
    speaker_weight, name_weight, tag_weight, trigger_weight, time_weight : float
        Weights for a memory that was said by a speaker the query names; is about an entity it names; has a tag it names; is a
        procedure whose trigger it contains (at full coverage and confidence); happened in a period it names.
    mention_weight, mention_seeds : float, int
        One additive hop from this many of the best memories to memories *about* an entity that they mention (and to landmarks).
    link_seeds, evidence_weight, contradiction_weight : int, float, float
        From this many of the best memories: to generalisations and their evidence; to the other side of a contradiction, which is
        raised to this share of the score.
    landmark_weight : float
        From the best memories to landmarks that share their tags.
    relevance_weight, use_weight, negative_weight : float
        Bounded terms (at most 0.05 each) that decide near ties.
    transcript_factor : float
        Factor of the scores of verbatim turns.
    near_tie : float
        Two scores, as shares of the query's best one, are near if they differ by at most this share of the higher one (and 1e-6): then the
        authority class decides.
    authority_floor : float
        Share of the query's best score below which a candidate's class raises it above nothing.
    override_delta : float
        Dominance: a candidate that leads by this share of the query's best score, or more, is never displaced.
    """

    max_episodic: Count | None = None
    max_semantic: Count | None = None
    max_procedural: Count | None = None
    max_tokens: Count | None = None
    max_task_items: Count | None = None
    max_related: Count | None = None
    dense_weight: Unit | None = None
    fusion: Literal["scores", "rrf"] = "scores"
    candidates: int = Field(default=1_000, ge=1)
    k1: float = Field(default=1.2, ge=0.0)
    b: Unit = 0.4
    length_constant_words: float = Field(default=20.0, gt=0.0)
    neighbour_span: Count = 2
    neighbour_decay: Unit = 0.5
    context_weight: Unit = 0.5
    neighbour_weight: Unit = 0.3
    answer_factor: float = Field(default=1.5, ge=1.0, le=2.0)
    question_discount: Unit = 0.15
    speaker_weight: Unit = 0.2
    name_weight: Unit = 0.3
    tag_weight: Unit = 0.05
    trigger_weight: Unit = 0.3
    time_weight: Unit = 0.15
    mention_weight: Unit = 0.5
    mention_seeds: Count = 5
    link_seeds: Count = 20
    evidence_weight: Unit = 0.3
    contradiction_weight: Unit = 0.95
    landmark_weight: Unit = 0.2
    relevance_weight: Bounded = 0.02
    use_weight: Bounded = 0.01
    negative_weight: Bounded = 0.03
    transcript_factor: Unit = 0.85
    near_tie: Unit = 1e-4
    authority_floor: Unit = 0.3
    override_delta: Unit = 0.05


class RetrievalQuery(Model):
    """An agent's task, and the budget of memories for its prompt.

    Attributes
    ----------
    task_description : str
        Free text, at most a million characters; the first 8,000 are used for the search.
    also : list of str
        At most five phrases of at most 200 characters, in the words that past messages would have used. They are searched for together with
        the description, as one text.
    task_embedding : ndarray, shape (d,), float32, or None
        Used as it is; None: the description and the phrases are embedded.
    agent_name : str
        The asking agent, whose permissions decide what it may have (`memgraph.privacy`). ``agent``: an agent without a name, which may
        have what is public.
    justification : str or None
        Why a named agent needs sensitive memories: more than 20 characters.
    project_id : str or None
        Admits this project's memories and those without a project; None: every project.
    floor : {"auto", "off"}, float or None
        Evidence that a memory needs to be returned (see `memgraph.retrieval.stages.floor`); None: the store's setting ``retrieval_floor``.
    session_id, task_id, build_id : str or None
        Where it is asked; recorded with the retrieval. `session_id` also admits what is only told in that session, `task_id` that task's own
        memories and what holds in it, and what the tasks give that it is linked to. Without `task_id` the task counts that the session
        works on.
    session : str or None
        Admits only this session's memories and those without a session.
    global_fallback : bool
        Whether memories of no task are admitted beside those of the task. Pinned constraints always are. Without a task it has no effect.
    agents : list of str or None
        Admit only memories in which one of these agents was involved.
    """

    task_description: TaskText = ""
    also: Phrases = Field(default_factory=list)
    task_embedding: Embedding | None = None
    agent_name: Name = UNNAMED
    justification: Text | None = None
    project_id: Name | None = None
    max_episodic: Count | None = None
    max_semantic: Count | None = None
    max_procedural: Count | None = None
    max_tokens: Count | None = None
    floor: Floor | None = None
    session_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    session: Name | None = None
    global_fallback: bool = True
    all_tasks: bool = False
    agents: list[Name] | None = None
    privacy_tiers: list[PrivacyTier] | None = None
    trust_classes: list[TrustClass] | None = None


class Hop(Model):
    """The memory from which a score was propagated, and the kind of edge."""

    relation: str
    memory_id: str


class Override(Model):
    """A result before which another one stands although its class is higher, or its score."""

    memory_id: str
    reason: Literal["authority", "dominance"]
    """``authority``: it has the higher score, or comes first by its id, but the scores are near and its class is lower. ``dominance``: its class
    is higher, but the other score leads by `override_delta` or more."""
    lead: float
    """By how much the other one's score is higher, as a share of the query's best; negative where the class decided."""


class StageReport(Model):
    """Report of one stage of a recall: how many memories it admitted, matched or reached."""

    stage: str
    counts: dict[str, int] = Field(default_factory=dict)


class Explanation(Model):
    """Why a memory was recalled: each term of its score, and the memories from which it was reached.

    The terms correspond to the settings of the same name (`RetrievalConfig`); ``question`` is what a question loses, ``succession``
    what a memory gains from one that it supersedes, or what was said later in a session from what it stands before, ``saved`` what puts a saved fact first that matches the task, ``transcript`` what a
    verbatim turn loses, ``source`` what comes from a tool, an import or a web page loses to what the user said on the same matter. They add up to the score. ``rank`` is its place, from 1; 0 if it is not known. ``authority`` is the class that decides near ties, ``overrode`` the results that it, or
    a dominant score, stands before. ``words`` are the words of the query that the memory contains, from the rarest on.
    """

    memory_id: str
    score: float
    dense: float = 0.0
    text: float = 0.0
    speaker: float = 0.0
    named: float = 0.0
    tag: float = 0.0
    trigger: float = 0.0
    time: float = 0.0
    question: float = 0.0
    neighbour: float = 0.0
    mention: float = 0.0
    evidence: float = 0.0
    contradiction: float = 0.0
    landmark: float = 0.0
    succession: float = 0.0
    relevance: float = 0.0
    use: float = 0.0
    negative: float = 0.0
    saved: float = 0.0
    transcript: float = 0.0
    source: float = 0.0
    rank: int = 0
    authority: Authority = "memory"
    overrode: list[Override] = Field(default_factory=list)
    words: list[str] = Field(default_factory=list)
    path: list[Hop] = Field(default_factory=list)

    @property
    def match_type(self) -> MatchType:
        """How it was found (seed 2): by meaning, by words, by a name, or by several of these with a quarter of the score or more each."""
        entity = self.speaker + self.named + self.tag + self.trigger + self.mention
        shares: dict[MatchType, float] = {"semantic": self.dense, "keyword": self.text, "entity": entity}
        found = [kind for kind, share in shares.items() if share > 0.0 and share >= 0.25 * sum(shares.values())]
        return found[0] if len(found) == 1 else "combined"


class Opposed(Model):
    """Ids of two memories of one recall that contradict each other. The older one is the one that held first."""

    older_id: str
    newer_id: str


class RetrievalResult(Model):
    """Memories for a task, best first, and the text to put before the prompt.

    Attributes
    ----------
    certainty : {"high", "medium", "low", "none"}
        How sure it is that the store has knowledge about the query; it filters nothing. ``none``: "I don't think we've tried this
        before".
    certainty_score : float
        The certainty as a probability, in [0, 1].
    versions : dict of str to str
        Versions of settings, analyser and embedder. Scores of different versions are not comparable.
    contradictions : list of Opposed
        Pairs of the memories that contradict each other: one of each pair does not hold, or no longer holds.
    task_id : str or None
        The task in whose scope it was asked: that of the query, or the one that the session works on.
    labels : dict of str to str
        By id, the label of what comes from another task than that: ``[related task: ID]`` from a linked one, ``[task: ID]`` where every
        task is searched.
    related_ids : list of str
        The ids of what comes from linked tasks, which are read and never written to: the last results.
    task_items : dict of str to str
        By id, the class of what is no memory but holds in a task: a decision, a constraint and so on. It stands among the memories.
    is_over_budget : bool
        Whether it is empty although memories were found, because none of them fits the budget.
    constraints_left_out : int
        Pinned constraints that hold but do not fit their budget.
    has_phrases : bool
        Whether phrases were given with the task: without them, an empty recall asks for some.
    rules : list of StoredSemanticMemory and StoredProceduralMemory, or None
        The standing rules that are given with it, in order; they need not match the task. None: only the pinned constraints among the memories are.
    """

    query_id: str
    memories: list[SerializeAsAny[StoredMemory]]
    total_tokens_used: Count
    injected_prompt_prefix: str
    retrieved_at: Timestamp
    certainty: Certainty = "none"
    certainty_score: Unit = 0.0
    explanations: list[Explanation] = Field(default_factory=list)
    stages: list[StageReport] = Field(default_factory=list)
    versions: dict[str, str] = Field(default_factory=dict)
    contradictions: list[Opposed] = Field(default_factory=list)
    task_id: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    related_ids: list[str] = Field(default_factory=list)
    task_items: dict[str, Authority] = Field(default_factory=dict)
    is_over_budget: bool = False
    constraints_left_out: Count = 0
    rules: list[StandingRule] | None = None
    rules_left_out: Count = 0
    notice: str | None = None
    has_phrases: bool = False


class ScoredMemory(Model):
    """A memory found by a search, its score, and how it was found.

    Attributes
    ----------
    has_evidence : bool
        Whether a recall would return it: False, it is only among the most similar ones. Always True without a floor.
    """

    memory: SerializeAsAny[StoredMemory]
    score: float
    match_type: MatchType = "combined"
    has_evidence: bool = True
    label: str | None = None
    task_item: Authority | None = None


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
    """Fields about the memory that an entry was made from: its id, trust and privacy; `label` and `task_item` as in `RetrievalResult`."""

    memory_id: str
    confidence: Unit = 1.0
    trust_class: TrustClass = "agent"
    privacy_tier: PrivacyTier = "public"
    contradicts_older: list[str] = Field(default_factory=list)
    """Ids of older memories of the recall that cannot hold if this one does."""
    contradicted_by_newer: list[str] = Field(default_factory=list)
    """Ids of newer memories of the recall that cannot hold if this one does."""
    label: str | None = None
    task_item: Authority | None = None


class Pattern(FromMemory):
    """General knowledge: when it holds, and the right approach then."""

    text: str
    category: str | None = None
    conditions: list[str] = Field(default_factory=list)
    correct_approach: str | None = None


class Warned(FromMemory):
    """A known failure: what fails, why, and what prevents it (seed 3's anti-pattern). Its memory may be of any type."""

    memory_type: MemoryType
    what_fails: str
    why: str | None = None
    prevention: str | None = None


class Skill(FromMemory):
    """How to do something: trigger, prerequisites, steps and completion criterion; without steps, `text` is the memory's content."""

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
    """One section. Its text, with its heading, is within its budget."""

    name: SectionName
    heading: str = ""
    """Its first line; empty for what is known, which has headings of its own."""
    body: str
    tokens: Count
    budget: Count
    memory_ids: list[str] = Field(default_factory=list)
    left_out: Count = 0
    """Entries that do not fit; of the standing rules, the text says so. What fits in part is not among them."""

    @property
    def text(self) -> str:
        """The section as it stands in the prompt."""
        return "\n".join(filter(None, (self.heading, self.body)))


class Prompt(Model):
    """The memory part of a prompt."""

    text: str
    sections: list[PromptSection] = Field(default_factory=list)
    """Those that are not empty; in `text` there is an empty line between them."""
    session_id: str | None = None
    task_id: str | None = None
    """The task whose memories are in it: the one asked for, else the one that the session works on."""
    query_id: str | None = None
    """Id of the recall, for `record_outcome`."""
    notice: str | None = None
    """A message about the recall, or about standing rules that do not fit."""

    @property
    def memory_ids(self) -> list[str]:
        """The memories in it."""
        return [one for section in self.sections for one in section.memory_ids]
