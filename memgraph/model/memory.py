"""Memories: one set of fields per type, defined once for users, journal and graph.

The field groups below are the single definition. `EpisodicMemory`, `SemanticMemory` and `ProceduralMemory` are what users
build and receive; `MemoryRecord` is the strict, flat form that the journal holds and whose fields are the columns of the
graph's ``Memory`` table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from memgraph.errors import InvalidInputError
from memgraph.model.base import (
    MAX_ITEMS,
    Content,
    Count,
    Finite,
    Model,
    Name,
    Strict,
    Text,
    Timestamp,
    Unit,
)
from memgraph.model.ids import MemoryId
from memgraph.model.relevance import ForgettingCurveConfig, decayed
from memgraph.model.similarity import to_vector
from memgraph.model.timestamps import days_between

MemoryType = Literal["episodic", "semantic", "procedural"]
Outcome = Literal["positive", "negative", "neutral", "unknown"]
PrivacyTier = Literal["public", "sensitive", "private"]
TrustClass = Literal["user", "agent", "tool", "imported", "web"]
EntityKind = Literal["file", "symbol", "package", "person", "error", "issue", "commit", "url", "concept", "user"]

MEMORY_TYPES: tuple[MemoryType, ...] = ("episodic", "semantic", "procedural")

OUTCOME_OF_WORD: dict[str, Outcome] = {
    "positive": "positive",
    "negative": "negative",
    "neutral": "neutral",
    "unknown": "unknown",
    "success": "positive",
    "love": "positive",
    "like": "positive",
    "failure": "negative",
    "meh": "negative",
    "partial": "neutral",
    "pending": "unknown",
}
"""Maps every outcome word of the seeds to one of four outcomes."""

RECORD_SOURCE, RUN_SOURCE, SAID_SOURCE = "commit", "run", "session turn"
RECORD_SOURCES = {RECORD_SOURCE: "git", RUN_SOURCE: "run log", SAID_SOURCE: "transcript"}
"""Sources of records, each with that of the memory that a record becomes: commits, what a build, test or trial did, and what was said in a session, kept whole as evidence. Searches and recalls find them; those that helped, or that somebody changed, become memories. That one supports a counted rule is not enough."""

M = TypeVar("M", bound=BaseModel)
Vector = NDArray[np.float32]
Embedding = Annotated[
    Vector, BeforeValidator(to_vector), PlainSerializer(lambda v: v.tolist(), return_type=list[float])
]
Texts = Annotated[list[Text], Field(max_length=MAX_ITEMS)]
Names = Annotated[list[Name], Field(max_length=MAX_ITEMS)]
MAX_CUES, MAX_CUE_CHARS = 5, 80
Cues = Annotated[list[Annotated[Name, Field(max_length=MAX_CUE_CHARS)]], Field(max_length=MAX_CUES)]


class Entity(Strict):
    """An entity that a memory names; `about` marks a subject as opposed to a mere mention."""

    name: Name
    kind: EntityKind
    about: bool = False


class ActionStep(Strict):
    """One step of an episode's action log (seed 3): `t` in seconds since its start."""

    t: Finite
    action: Text
    target: Text | None = None
    result: Text | None = None
    error: Text | None = None


class EncounteredError(Strict):
    """An error during an episode and its resolution (seed 3)."""

    type: Text
    message: Text
    resolution: Text | None = None


class ErrorFix(Strict):
    """A common error of a procedure and its fix (seed 3)."""

    error: Text
    fix: Text


ChangeKind = Literal["A", "M", "D", "R"]


class FileChange(Strict):
    """What a commit did to a file: added, modified, deleted or renamed it; the lines, None where they are not known; its former path."""

    path: Text
    kind: ChangeKind
    added: Count | None = None
    removed: Count | None = None
    was: Text | None = None


class Role(Flag):
    """What a field of a memory is to those who need not know its name; see `fields_with`."""

    STORE = auto()
    """Set by the store; a new version of a memory has its own."""
    USE = auto()
    """Changes with each use."""
    VECTOR = auto()
    """Says which model made the vector, and when."""
    ASIDE = auto()
    """No part of the content: nothing that is derived from a memory's text depends on it."""
    PIN = auto()
    """Decides what a pin says, and whether, where and by whom it is recalled."""
    PART = auto()
    """The parts of a split memory take it over."""


class MemoryFields(BaseModel):
    """The fields of every memory."""

    id: Annotated[MemoryId, Role.STORE]
    type: MemoryType
    content: Annotated[Content, Role.PIN]
    outcome: Annotated[Outcome, Role.PART] = "unknown"
    outcome_word: Annotated[Name | None, Role.PART] = None
    confidence: Annotated[Unit, Role.PART] = 1.0
    access_count: Annotated[Count, Role.USE] = 0
    last_accessed_at: Annotated[Timestamp | None, Role.USE] = None
    is_pinned: Annotated[bool, Role.ASIDE | Role.PIN | Role.PART] = False
    is_suppressed: Annotated[bool, Role.ASIDE | Role.PIN] = False
    archived_at: Annotated[Timestamp | None, Role.ASIDE | Role.PIN] = None
    archive_reason: Annotated[Text | None, Role.ASIDE] = None
    archive_summary: Annotated[Text | None, Role.ASIDE] = None
    valid_at: Annotated[Timestamp | None, Role.PIN | Role.PART] = None
    invalid_at: Annotated[Timestamp | None, Role.PIN | Role.PART] = None
    invalidation_reason: Text | None = None
    created_at: Annotated[Timestamp, Role.STORE]
    updated_at: Annotated[Timestamp, Role.STORE | Role.ASIDE]
    occurred_at: Annotated[Timestamp, Role.PART]
    privacy_tier: Annotated[PrivacyTier, Role.PIN | Role.PART] = "public"
    domain: Annotated[Name | None, Role.PIN | Role.PART] = None
    trust_class: Annotated[TrustClass, Role.PIN | Role.PART] = "agent"
    project_id: Annotated[Name | None, Role.PIN | Role.PART] = None
    build_id: Annotated[Name | None, Role.PART] = None
    task_id: Annotated[Name | None, Role.PIN | Role.PART] = None
    session_id: Annotated[Name | None, Role.PIN | Role.PART] = None
    previous_id: Annotated[MemoryId | None, Role.STORE] = None
    title: Annotated[Text | None, Role.PIN] = None
    speaker: Annotated[Name | None, Role.PART] = None
    agents_involved: Annotated[Names, Role.PART] = Field(default_factory=list)
    tags: Annotated[Names, Role.PART] = Field(default_factory=list)
    cues: Annotated[Cues, Role.PIN | Role.PART] = Field(default_factory=list)
    """Phrases that say when it matters, in the words of a task rather than its own: searched, never shown in a prompt."""
    entities: Annotated[list[Entity], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    source_event_ids: Annotated[Names, Role.PART] = Field(default_factory=list)
    source: Annotated[Text | None, Role.PIN | Role.PART] = None
    evidence_build_ids: Annotated[Names, Role.PART] = Field(default_factory=list)
    failure_fingerprint: Name | None = None
    reason: Text | None = None
    """Why this memory was made."""
    embedding_model: Annotated[Name | None, Role.VECTOR | Role.ASIDE] = None
    embedded_at: Annotated[Timestamp | None, Role.VECTOR | Role.ASIDE] = None


Worked = Literal["instead", "edit", "after", "again"]
"""How what had failed came to work: another command, an edit, another command before it, or another run of the same."""


class AttemptFields(BaseModel):
    """An attempt at something: a whole trial of a task (`asked`), or a step of a session or build (`tried`)."""

    asked: Text | None = None
    """The task of a trial, as it was asked."""
    tried: Text | None = None
    """The command, task or edit that failed: commands in backticks, tasks in quotation marks."""
    attempt: Count | None = None
    """The number of the attempt, as its source counts them."""
    attempts: Count | None = None
    """How many attempts there were."""
    lesson: Text | None = None
    acted_on: Text | None = None
    """The earlier lesson that this attempt acted on."""
    tools_called: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    calls: Count | None = None
    failed_calls: Count | None = None
    worked: Text | None = None
    """What worked in the end."""
    worked_how: Worked | None = None
    last_error: Text | None = None
    explained: Text | None = None
    """The explanation given by the one who made the attempt."""
    result: Text | None = None


class Attempt(Strict, AttemptFields):
    """The same fields by themselves: what a rule found."""


ATTEMPT_FIELDS = frozenset(AttemptFields.model_fields)


def no_attempt() -> dict[str, object]:
    """Return the values of all fields where there was no attempt."""
    fields = AttemptFields.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields}


class CommitFields(BaseModel):
    """What a history says of a commit: what kind of change it is, what it did to which files, and the commits and issues that it names."""

    change_kind: Name | None = None
    changes: Annotated[list[FileChange], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    undoes: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    """The commits that it takes back."""
    mends: Name | None = None
    """The commit whose mistake it corrects."""
    closes: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    """Numbers of the issues that it says it closes."""
    release: Name | None = None
    """The first release that contains it."""


COMMIT_FIELDS = frozenset(CommitFields.model_fields)


class EpisodicFields(AttemptFields, CommitFields):
    """An episode: seed 0's fields, seed 3's trace, seed 2's interaction, and the fields of an attempt and of a commit."""

    event_date: Annotated[Timestamp | None, Role.PART] = None
    location: Text | None = None
    decision: Text | None = None
    alternatives_considered: Texts = Field(default_factory=list)
    duration_seconds: Finite | None = None
    phase: Name | None = None
    goal: Text | None = None
    constraints: Texts = Field(default_factory=list)
    files_involved: Texts = Field(default_factory=list)
    action_log: Annotated[list[ActionStep], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    errors_encountered: Annotated[list[EncounteredError], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    artifacts_produced: Texts = Field(default_factory=list)
    git_commit: Name | None = None
    situation: Text | None = None
    reasoning: Text | None = None
    action: Text | None = None
    user_feedback: Text | None = None
    agent_type: Name | None = None
    mission_id: Name | None = None


class SemanticFields(BaseModel):
    """A generalisation: seed 3's pattern; of trials of one task what was asked, the lesson quoted, and whether one solved it."""

    asked: Text | None = None
    lesson: Text | None = None
    is_solved: bool | None = None

    pattern: Text | None = None
    category: Name | None = None
    conditions: Texts = Field(default_factory=list)
    correct_approach: Text | None = None
    incorrect_approach: Text | None = None
    usage_count: Count = 0
    last_used_at: Timestamp | None = None


class ProceduralFields(BaseModel):
    """A procedure: seed 0's trigger, steps and rate, seed 3's skill, seed 2's rule."""

    trigger_pattern: Text | None = None
    steps: Texts = Field(default_factory=list)
    success_rate: Unit | None = None
    prerequisites: Texts = Field(default_factory=list)
    common_errors: Annotated[list[ErrorFix], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    exit_criteria: Texts = Field(default_factory=list)
    agent_type: Name | None = None
    last_validated_at: Timestamp | None = None
    override_count: Count = 0


class MemoryRecord(Strict, MemoryFields, EpisodicFields, SemanticFields, ProceduralFields):
    """A memory as stored in the journal: every field of every type, in one flat, strict record."""

    relevance_anchor: Annotated[Finite, Role.USE | Role.ASIDE] = 1.0
    relevance_at: Annotated[Timestamp, Role.USE | Role.ASIDE]
    floor: Annotated[Unit, Role.ASIDE] = 0.0
    usage_count: Count | None = None  # type: ignore[assignment]
    override_count: Count | None = None  # type: ignore[assignment]


def fields_with(roles: Role) -> frozenset[str]:
    """Return the fields of a record that have any of some roles."""
    fields = MemoryRecord.model_fields.items()
    return frozenset(
        name for name, field in fields if any(isinstance(one, Role) and one & roles for one in field.metadata)
    )


VECTOR_COLUMNS = fields_with(Role.VECTOR) | {"vector_row", "vector_sha256"}
"""What a row says of its memory's vector: the record's fields, and the place in the file."""
REASONS_OF = {"archived_at": ("archive_reason", "archive_summary"), "invalid_at": ("invalidation_reason",)}
"""For each way in which a memory ends, the fields that describe it: they are kept only while it holds."""


class AgentMemory(Model, MemoryFields):
    """A memory as users build and receive it. Build one of its three subclasses, or `parse_memory` a mapping.

    Attributes
    ----------
    id, created_at, updated_at, occurred_at : str or None
        Set on insert if missing. Times are UTC, ISO 8601, milliseconds.
    embedding : ndarray, shape (d,), float32, or None
        Stored bit for bit; computed from `content` on insert if missing.
    relevance_score : float
        Relevance *now*, in [0, max_relevance]. On insert it sets the anchor of the curve.
    relevance_anchor, relevance_at, floor : float or None, str or None, float
        The curve's stored state, see `memgraph.model.relevance`.
    """

    id: MemoryId | None = None  # type: ignore[assignment]
    created_at: Timestamp | None = None  # type: ignore[assignment]
    updated_at: Timestamp | None = None  # type: ignore[assignment]
    occurred_at: Timestamp | None = None  # type: ignore[assignment]
    embedding: Embedding | None = Field(default=None, repr=False)
    relevance_score: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = 1.0
    relevance_anchor: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] | None = None
    relevance_at: Timestamp | None = None
    floor: Unit = 0.0

    @model_validator(mode="before")
    @classmethod
    def _outcome_words(cls, data: object) -> object:
        if not isinstance(data, Mapping) or not isinstance(data.get("outcome"), str):
            return data
        word = data["outcome"]
        if word not in OUTCOME_OF_WORD:
            raise InvalidInputError(f"must be one of {', '.join(OUTCOME_OF_WORD)}", field="outcome", value=word)
        kept = data.get("outcome_word", data.get("outcomeWord"))
        if kept is None and OUTCOME_OF_WORD[word] != word:
            kept = word
        rest = {key: value for key, value in data.items() if key not in {"outcome_word", "outcomeWord"}}
        return {**rest, "outcome": OUTCOME_OF_WORD[word], "outcome_word": kept}

    @field_validator("tags", "agents_involved", mode="after")
    @classmethod
    def _no_repeats(cls, values: list[str]) -> list[str]:
        return list(dict.fromkeys(value.strip() for value in values))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AgentMemory) or type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.__dict__, other.__dict__
        same = all(mine[name] == theirs[name] for name in mine if name != "embedding")
        if self.embedding is None or other.embedding is None:
            return same and self.embedding is other.embedding
        return same and np.array_equal(self.embedding, other.embedding)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def from_row(cls, row: Mapping[str, Any], *, now: str, curve: ForgettingCurveConfig, **filled: Any) -> StoredMemory:
        """Build the memory that a stored row describes, with its relevance at `now`. The row is not validated."""
        kind = _CLASS_OF_TYPE[row["type"]]
        relevance = decayed(
            row["relevance_anchor"],
            days_between(row["relevance_at"], now),
            rate=curve.rate(row["type"]),
            is_pinned=row.get("is_pinned", False),
            floor=row.get("floor", 0.0),
        )
        blank, lists = _blank(kind)
        known = {name: [] for name in lists} | {name: value for name, value in row.items() if name in vars(blank)}
        for name, model in _NESTED.items():
            if known.get(name):
                nothing = _blank(model)[0]
                known[name] = [nothing.model_copy(update=item) for item in known[name]]
        stored: StoredMemory = blank.model_copy(update={**known, "relevance_score": relevance, **filled})
        return stored


class EpisodicMemory(AgentMemory, EpisodicFields):
    """What happened: an event with its place, decision and outcome."""

    type: Literal["episodic"] = "episodic"


class SemanticMemory(AgentMemory, SemanticFields):
    """General knowledge. `supporting_memory_ids` are read from the SUPPORTS edges; on insert they create them."""

    type: Literal["semantic"] = "semantic"
    supporting_memory_ids: Annotated[list[MemoryId], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)


class ProceduralMemory(AgentMemory, ProceduralFields):
    """How to do something: a trigger and ordered steps."""

    type: Literal["procedural"] = "procedural"
    supporting_memory_ids: Annotated[list[MemoryId], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)


if TYPE_CHECKING:

    class StoredMemory(AgentMemory):
        """A memory that the store returns: what is left out of a draft is there.

        A type for type checkers alone: when the program runs, a stored memory is of the same class as a draft, with the same
        JSON, and the two compare equal.
        """

        id: MemoryId
        created_at: Timestamp
        updated_at: Timestamp
        occurred_at: Timestamp

    class StoredEpisodicMemory(StoredMemory, EpisodicMemory):
        """An episode that the store returns."""

    class StoredSemanticMemory(StoredMemory, SemanticMemory):
        """A generalisation that the store returns."""

    class StoredProceduralMemory(StoredMemory, ProceduralMemory):
        """A procedure that the store returns."""

else:
    StoredMemory = AgentMemory
    StoredEpisodicMemory = EpisodicMemory
    StoredSemanticMemory = SemanticMemory
    StoredProceduralMemory = ProceduralMemory

StandingRule = StoredSemanticMemory | StoredProceduralMemory

_NESTED: dict[str, type[Strict]] = {
    "entities": Entity,
    "action_log": ActionStep,
    "changes": FileChange,
    "errors_encountered": EncounteredError,
    "common_errors": ErrorFix,
}
_CLASS_OF_TYPE: dict[str, type[AgentMemory]] = {
    "episodic": EpisodicMemory,
    "semantic": SemanticMemory,
    "procedural": ProceduralMemory,
}


@cache
def _blank(kind: type[M]) -> tuple[M, list[str]]:
    """Return a model with default values to copy, which is much quicker than construction, and its list fields, which copies must not share."""
    fields = kind.model_fields
    lists = [name for name, field in fields.items() if field.default_factory is list]
    defaults = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    return kind.model_construct(_fields_set=set(fields), **defaults), lists


def id_of(memory: AgentMemory) -> str:
    """Return the id of a memory that is stored, or of a draft that was given one; raise `InvalidInputError` for any other."""
    if memory.id is None:
        raise InvalidInputError("is missing: the memory is not stored yet", field="id", value=None)
    return memory.id


def parse_memory(data: AgentMemory | Mapping[str, Any]) -> AgentMemory:
    """Return the memory that a mapping (snake_case or camelCase) describes; pass a memory through.

    Raises
    ------
    InvalidInputError
        The mapping is invalid; the error names the first refused field and its value.
    """
    if isinstance(data, AgentMemory):
        if type(data) is AgentMemory:
            return parse_memory(data.model_dump(exclude_unset=True))
        return data
    if not isinstance(data, Mapping):
        raise InvalidInputError("must be a memory or a mapping", field="memory", value=data)
    given = data.get("type")
    if not isinstance(given, str) or given not in _CLASS_OF_TYPE:
        raise InvalidInputError(f"must be one of {', '.join(MEMORY_TYPES)}", field="type", value=given)
    return _CLASS_OF_TYPE[given].parse(data)
