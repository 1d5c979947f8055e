"""Build logs as in seed 0, the result of extraction from one, and the settings of their consolidation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from memgraph.model.base import MAX_ITEMS, MAX_NAME_CHARS, Count, Finite, Model, Name, Timestamp, Unit, storable
from memgraph.model.memory import AgentMemory, TrustClass, parse_memory

TaskOutcome = Literal["success", "failure", "partial"]
CommitKind = Literal["fix", "feature", "docs", "test", "refactor", "revert", "release", "dependency", "merge", "other"]
FIRST_RUN = " (first run)"  # ends the id of a task: the failure of a test that passed when it was run again
LogText = Annotated[str, Field(max_length=200_000), AfterValidator(storable)]


class ChangedFile(Model):
    """A file that a commit changed."""

    path: LogText
    kind: Literal["A", "M", "D", "R"]
    """Added (or copied), modified, deleted, renamed (and possibly modified)."""
    added: Count | None = None
    """Lines added; None for a file that is binary or over 512 kB, for a submodule, and where the source does not say."""
    removed: Count | None = None
    """Lines removed; None as in `added`."""
    was: LogText | None = None
    """The former path of a renamed file."""


class BuildTask(Model):
    """One task of a build: the request to an agent and its result. Only some sources fill the optional fields.

    Attributes
    ----------
    agent_name : str
        Who did it; of a merge in a history, who made most of what it merges, or in a saved log without ``--parents`` the last of it.
    command : str
        The command, if the task is one call of a tool or program; `output` is what that printed.
    reasoning, lesson : str
        What the agent said before the task; the lesson that it stated, such as a reflection after a failed trial.
    files_changed, files_removed : list of str
        Paths; in a repository, relative to it. The removed ones are among the changed.
    files_renamed : dict of str to str
        New names of files by their old ones.
    reverts, restores : str or None
        The earlier task (in this build or another) that this one undid; that had been undone and that this one puts back.
    undone_subject : str
        What the task was called that was undone or put back.
    takes_back : str or None
        The earlier task whose decision this one reverses by another change: it goes back to what was left, or restores what was removed.
    mends, mends_subject : str or None, str
        The earlier task whose mistake this one corrects, and what it was called.
    repeats : str or None
        The earlier task that said the same, and that this one only brings in, such as the merge of a commit.
    release : str or None
        The first release that contains it.
    attempt, attempts : int or None
        The number of the attempt at a task, as the source counts them, and how many there were.
    kind : str or None
        What kind of change a commit is: decided once, by its reader. None: it is no commit.
    text : str
        The whole message of a commit without trailers and markup, at most `MAX_TEXT_CHARS` characters.
    changes : list of ChangedFile
        The files of `files_changed`, each with what happened to it.
    mentions, closes : list of int
        Issues and pull requests of the same repository that the message mentions; those that it says it closes.
    undoes : list of str
        All tasks that this one undid, where it is more than `reverts`.
    restores_too : list of str
        Further tasks that it puts back, besides `restores`.
    test : str or None
        The name of the test that the task is a run of, the same in every run.
    """

    task_id: Name
    agent_name: Name
    description: LogText
    output: LogText = ""
    outcome: TaskOutcome
    ace_score: Finite | None = None
    command: LogText = ""
    reasoning: LogText = ""
    lesson: LogText = ""
    files_changed: Annotated[list[LogText], Field(max_length=100_000)] = Field(default_factory=list)
    occurred_at: Timestamp | None = None
    files_removed: Annotated[list[LogText], Field(max_length=100_000)] = Field(default_factory=list)
    files_renamed: Annotated[dict[LogText, LogText], Field(max_length=100_000)] = Field(default_factory=dict)
    reverts: Name | None = None
    restores: Name | None = None
    undone_subject: LogText = ""
    takes_back: Name | None = None
    mends: Name | None = None
    mends_subject: LogText = ""
    repeats: Name | None = None
    release: Name | None = None
    attempt: Count | None = None
    attempts: Count | None = None
    kind: CommitKind | None = None
    text: LogText = ""
    changes: Annotated[list[ChangedFile], Field(max_length=100_000)] = Field(default_factory=list)
    mentions: Annotated[list[Count], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    closes: Annotated[list[Count], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    undoes: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    restores_too: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    test: Name | None = None


def event_id(build_id: str, task_id: str) -> str:
    """Return what names a task of a build among the `source_event_ids` of memories."""
    return f"{build_id}/{task_id}"[:MAX_NAME_CHARS]


class UserIntervention(Model):
    """Something the user did during a build; `context` is what the agent had said before, `reply` what it said in the end, and when."""

    timestamp: Timestamp
    action: LogText
    context: LogText = ""
    reply: LogText = ""
    replied_at: Timestamp | None = None


class BuildEventLog(Model):
    """Everything that happened in one build: a CI run, an author's sitting, an agent's session, a trial.

    Attributes
    ----------
    source, trust_class : str
        The kind of record it was read from (``git``, ``transcript``, …), which becomes its memories' `source`; their trust class.
    session_id : str or None
        The agent's session, for its memories' order.
    git_commit : str or None
        The hash of the commit that it ran on, where the record names it.
    """

    build_id: Name
    project_id: Name
    tasks: Annotated[list[BuildTask], Field(max_length=100_000)] = Field(default_factory=list)
    user_interventions: Annotated[list[UserIntervention], Field(max_length=100_000)] = Field(default_factory=list)
    build_summary: LogText = ""
    build_outcome: TaskOutcome
    started_at: Timestamp
    completed_at: Timestamp
    source: Name = "build log"
    session_id: Name | None = None
    trust_class: TrustClass = "agent"
    git_commit: Name | None = None

    def content(self) -> dict[str, Any]:
        """Return the log as JSON, without the fields that came later where they are not set: its digest is what it was."""
        found = self.model_dump(mode="json")
        of_tasks = ((task, name) for task in found["tasks"] for name in ("test", "restores_too"))
        for one, name in [(found, "git_commit"), *of_tasks]:
            if not one[name]:
                del one[name]
        return found


class Candidate(Model):
    """A memory that extraction proposes; its `reason` states why it was made."""

    key: Name | None = None
    """Names the part of the log it came from; stable when the log grows (``task-7:failure``). The memory's id is derived from it, so each part is
    consolidated once. None: its position is used."""
    memory: AgentMemory
    is_stated: bool = False
    """Whether a user stated it. Each is kept, however many memories a log may have."""


class ExtractionResult(Model):
    """What an extractor found in a build log: the most salient first, and a message for the caller, such as that a fallback was used."""

    candidates: list[Candidate] = Field(default_factory=list)
    extractor: Name = "rules"
    notice: str | None = None

    @classmethod
    def from_memories(cls, memories: list[Mapping[str, Any]], *, extractor: str = "given") -> ExtractionResult:
        """Build a result from mappings in seed 0's ``ExtractionPromptResult`` shape."""
        found = [Candidate(memory=parse_memory({**memory})) for memory in memories]
        return cls(candidates=found, extractor=extractor)


class ConsolidationConfig(Model):
    """Settings of consolidation (seed 0)."""

    deduplication_threshold: Unit = 0.82
    """Minimum cosine of two findings that are compared as duplicates; the other thresholds are in `memgraph.lifecycle.intake.settle` and
    `memgraph.lifecycle.dedup.near_duplicates`."""
    max_memories_per_extraction: int = Field(default=8, ge=1)
    compression_cycle_interval: int = Field(default=10, ge=1)
    max_duration_ms: float = Field(default=60_000.0, gt=0.0)
    """Time limit for extracting and embedding one batch. What does not fit is left to the next call with the same logs."""
    max_memory_mb: Count = 128
    """Seed 0 names it without a meaning; it limits nothing here. `AgentMemoryConfig` has a setting of this name."""
