"""What a recall is asked, how it is set, and what it answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SerializeAsAny, StringConstraints

from memgraph.model.base import Count, Model, Name, Timestamp, Unit, storable
from memgraph.model.memory import AgentMemory, Embedding, PrivacyTier, TrustClass

MAX_TASK_CHARS = 1_000_000
MAX_SEARCHED_CHARS = 8_000
"""Of a longer task the beginning is searched with: it says what is wanted, the rest are logs."""

TaskText = Annotated[str, StringConstraints(max_length=MAX_TASK_CHARS), AfterValidator(storable)]
Bounded = Annotated[float, Field(ge=0.0, le=0.05)]
Certainty = Literal["high", "medium", "low", "none"]
MatchType = Literal["semantic", "keyword", "entity", "combined"]


class RetrievalConfig(Model):
    """Settings of retrieval; the defaults are one recipe for all measured sets (``tests/benchmarks/README.md``).

    Scores of the seeds lie in [0, 1], so a weight says how much of the best possible seed a term may add.

    Attributes
    ----------
    max_episodic, max_semantic, max_procedural, max_tokens : int or None
        Budget; None: the store's.
    dense_weight : float
        Share of the vector score in the fused one; text has the rest.
    fusion : {"scores", "rrf"}
        Add scaled scores; or reciprocal ranks (k = 60), which lose how much better the better one is.
    candidates : int
        So many of the best of each type are looked at further; fewer cost less, and may lose what only the walk would raise. A tag
        that more memories have is none to look for.
    k1, b : float
        BM25's saturation and length normalisation.
    length_constant_words : float
        Dense scores are scaled by ``1 − exp(−words / constant)``: very short texts rank too high otherwise.
    neighbour_span, neighbour_decay : int, float
        How many NEXT steps within a session are looked around a memory, and what each step leaves of a share.
    context_weight : float
        Share of a query term that a memory gains if only a neighbour holds it.
    neighbour_weight : float
        Share of the best neighbour's score that a memory gains.
    answer_factor : float
        How much more it gains from a question that comes right before it.
    question_discount : float
        Share of its score that a question loses: in a session, what answers is looked for.
    speaker_weight, name_weight, tag_weight, trigger_weight, time_weight : float
        For what was said by the one whom the query names; is about a thing that it names; has a tag that it names; is a procedure
        whose trigger it holds (at full coverage and confidence); happened in a time that it names.
    mention_weight, mention_seeds : float, int
        One additive hop, from so many of the best to what is *about* something that they name (and to landmarks).
    link_seeds, evidence_weight, contradiction_weight : int, float, float
        From so many of the best: to generalisations and their evidence; to the other side of a contradiction, which is raised to
        this share of the score.
    landmark_weight : float
        From the best to what must not be forgotten and shares their tags.
    relevance_weight, use_weight, negative_weight : float
        Bounded terms (at most 0.05 each) that decide near ties.
    """

    max_episodic: Count | None = None
    max_semantic: Count | None = None
    max_procedural: Count | None = None
    max_tokens: Count | None = None
    dense_weight: Unit = 0.45
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


class RetrievalQuery(Model):
    """What an agent is about to do, and how much memory its prompt can take.

    Attributes
    ----------
    task_description : str
        Free text, at most a million characters; the first 8,000 are searched with.
    task_embedding : ndarray, shape (d,), float32, or None
        Used as given; None: the description is embedded.
    agent_name : str
        Who asks. It filters nothing; `agents` does.
    project_id : str or None
        That project's memories and those of no project; None: every project.
    max_episodic, max_semantic, max_procedural, max_tokens : int or None
        Budget; None: the configured one.
    session_id, task_id, build_id : str or None
        Recorded with the retrieval; `task_id` also admits that task's memories.
    agents : list of str or None
        Only memories in which one of these agents was involved.
    privacy_tiers, trust_classes : list or None
        Only these; None: all.
    """

    task_description: TaskText = ""
    task_embedding: Embedding | None = None
    agent_name: Name = "agent"
    project_id: Name | None = None
    max_episodic: Count | None = None
    max_semantic: Count | None = None
    max_procedural: Count | None = None
    max_tokens: Count | None = None
    session_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    agents: list[Name] | None = None
    privacy_tiers: list[PrivacyTier] | None = None
    trust_classes: list[TrustClass] | None = None


class Hop(Model):
    """From which memory a score was handed on, and over what kind of edge."""

    relation: str
    memory_id: str


class StageReport(Model):
    """What one stage of a recall did: how many memories it admitted, matched or reached."""

    stage: str
    counts: dict[str, int] = Field(default_factory=dict)


class Explanation(Model):
    """Why a memory was recalled: each term of its score, and from where it was reached.

    The terms are the settings' of like name (`RetrievalConfig`); ``question`` is what a question loses, ``succession`` what a memory
    has from one that it supersedes. They add up to the score.
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
    path: list[Hop] = Field(default_factory=list)

    @property
    def match_type(self) -> MatchType:
        """What found it (seed 2): its meaning, its words, something named, or more than one of these for a quarter or more each."""
        entity = self.speaker + self.named + self.tag + self.trigger + self.mention
        shares: dict[MatchType, float] = {"semantic": self.dense, "keyword": self.text, "entity": entity}
        found = [kind for kind, share in shares.items() if share > 0.0 and share >= 0.25 * sum(shares.values())]
        return found[0] if len(found) == 1 else "combined"


class Opposed(Model):
    """Two memories of one recall that contradict each other, by their ids, what was so first as the older one."""

    older_id: str
    newer_id: str


class RetrievalResult(Model):
    """Memories for a task, best first within a type, and the text to put before the prompt.

    Attributes
    ----------
    certainty : {"high", "medium", "low", "none"}
        Whether the store knows of what was asked at all; it removes nothing. ``none``: "I don't think we've tried this before".
    certainty_score : float
        The same as a probability, in [0, 1].
    stages : list of StageReport
        What each stage did, in order.
    versions : dict of str to str
        Of settings, analyser and embedder: scores of different versions are not compared.
    contradictions : list of Opposed
        Which of the memories contradict each other: one of each pair is not so, or is so no longer.
    """

    query_id: str
    memories: list[SerializeAsAny[AgentMemory]]
    total_tokens_used: Count
    injected_prompt_prefix: str
    retrieved_at: Timestamp
    certainty: Certainty = "none"
    certainty_score: Unit = 0.0
    explanations: list[Explanation] = Field(default_factory=list)
    stages: list[StageReport] = Field(default_factory=list)
    versions: dict[str, str] = Field(default_factory=dict)
    contradictions: list[Opposed] = Field(default_factory=list)
    notice: str | None = None


class ScoredMemory(Model):
    """A memory and its score in a search, and what found it."""

    memory: SerializeAsAny[AgentMemory]
    score: float
    match_type: MatchType = "combined"
