"""Results of intake, of learning from memories (compression, procedures, errors, contradictions, work orders) and of sleep."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from memgraph.model.base import Count, Finite, Model, Name, Text, Timestamp, Unit
from memgraph.model.memory import StoredMemory, TrustClass
from memgraph.model.model_usage import ModelUsage


class CompressionResult(Model):
    """Result of a compression."""

    compressed: Count = 0
    """Generalisations created, repeated errors among them."""
    updated: Count = 0
    """Generalisations updated to their present episodes."""
    superseded: Count = 0
    """Generalisations that were split or joined, and replaced by new ones."""
    retired: Count = 0
    """Generalisations withdrawn because too few of their builds are left."""
    deleted: Count = 0
    """Faded memories that were deleted."""
    archived: Count = 0
    """Faded memories that were archived."""
    episodes: Count = 0
    communities: Count = 0
    """Communities of two episodes or more that the examined episodes form."""
    new_memory_ids: list[str] = Field(default_factory=list)
    notice: str | None = None


class ConsolidationResult(Model):
    """Result of consolidating one build log."""

    build_id: str
    consolidated_at: Timestamp
    memories_extracted: Count
    memories_deduplicated: Count
    memories_forgotten: Count = 0
    """Memories left out because they repeat forgotten ones."""
    memories_left_out: Count = 0
    """Findings dropped because a log keeps only its most salient ones (`max_memories_per_extraction`) besides what users stated."""
    records_kept: Count = 0
    """Commits, runs and turns kept as records."""
    secrets_redacted: Count = 0
    memories_compressed: Count = 0
    memories_deleted: Count = 0
    new_memory_ids: list[str] = Field(default_factory=list)
    duration_ms: Annotated[float, Field(ge=0)]
    complete: bool = True
    was_known: bool = False
    """Whether exactly this log had been consolidated before, so that nothing was done."""
    notice: str | None = None
    extraction_notice: str | None = None
    """A message of the extractor, for example that the rules were used instead of a model; `notice` includes it."""
    usage: ModelUsage | None = None
    """None if there were no model calls, or if the log is one of several consolidated together."""


class SavedObservation(Model):
    """Result of saving an observation."""

    memory_id: str | None = None
    """The memory that holds it, or the first of several parts; None: it was left out."""
    action: Literal["created", "consolidated", "forgotten", "superseded"]
    """Stored as a new memory; merged into one with the same content; left out, because the user had it forgotten, or because the user replaced it."""
    part_ids: list[str] = Field(default_factory=list)
    """All memories that hold it, in order."""
    notice: str | None = None
    secrets_redacted: Count = 0


class SavedEpisode(Model):
    """The memory in which an episode was stored, a notice for the caller, and the number of secrets removed from it."""

    episode_id: str
    notice: str | None = None
    secrets_redacted: Count = 0


class IngestReport(Model):
    """Result of reading a source."""

    source: str
    read: Count = 0
    """Records read."""
    builds: Count = 0
    known: Count = 0
    """Builds that were consolidated before and have not changed. They are counted neither in `builds` nor, with their records, in `read`."""
    extracted: Count = 0
    """Memories added."""
    merged: Count = 0
    """Memories merged into existing ones."""
    forgotten: Count = 0
    """Memories left out because they repeat forgotten ones."""
    left_out: Count = 0
    """Findings beyond the best of each build."""
    recorded: Count = 0
    """Commits, runs and turns kept as records: searches and recalls find them, and they are no memories."""
    repeated: Count = 0
    """Merges of a history that change no file and only repeat the message of what they bring in: they are kept neither as memory nor as record."""
    skipped: Count = 0
    """Records, or parts of them, that could not be read."""
    secrets_redacted: Count = 0
    kept_share: Unit = 0.0
    """Share of the builds read that yielded at least one new or merged memory."""
    compressed: Count = 0
    """Generalisations created at the end."""
    reasons: dict[str, int] = Field(default_factory=dict)
    """Reasons for skipping: the first 100 of a source, with their counts."""
    seconds: Finite = 0.0
    notice: str | None = None
    usage: ModelUsage | None = None


class Contradiction(Model):
    """Two memories that cannot both hold."""

    newer: SerializeAsAny[StoredMemory]
    """The memory whose content holds from the later time, as far as the contents state it."""
    older: SerializeAsAny[StoredMemory]
    score: Unit | None = None
    """Share of their words that they have in common; None if they were linked by hand."""
    reason: str | None = None
    """How they differ, by their present texts; the link between them stores only the kind, and quotes neither."""
    found_at: Timestamp | None = None


class ContradictionResult(Model):
    """Result of a search for contradictions. Not `complete`: time ran out, and the next run continues."""

    looked_at: Count = 0
    """Memories that are new or changed since the last run."""
    found: Count = 0
    """Pairs that are now linked."""
    superseded: Count = 0
    """Memories that a sufficiently certain newer one replaced."""
    replaced: Count = 0
    """Memories that a later statement replaced without contradicting them."""
    complete: bool = True
    memory_ids: list[str] = Field(default_factory=list)
    """The newer memory of each pair found."""


PROPOSED = "proposed"
REJECTED = "rejected"
UNCONVINCING = "little confidence and no use"
LAPSED = "too few of the builds that it worked in are left"
"""Why a procedure is archived: it waits for approval; the user rejected it; it was never successful; or its evidence was forgotten
or deleted. If that evidence is restored, the procedure is proposed again."""

ErrorKind = Literal["internal", "external", "configuration"]
ProposalState = Literal["proposed", "in force", "rejected"]


class ProcedureResult(Model):
    """Result of a learning run for procedures. Not `complete`: time ran out, and the next run continues."""

    episodes: Count = 0
    """Episodes with steps, in projects that have changed."""
    proposed: Count = 0
    """New proposals, rejected ones with as much new evidence as a new one needs, and procedures in force whose steps differ from the approved ones
    after some evidence was withdrawn."""
    updated: Count = 0
    brought_into_force: Count = 0
    """Proposals confirmed by later successes (setting ``procedure_approval``)."""
    retired: Count = 0
    """Procedures archived for low confidence and no use, or for too little remaining evidence."""
    new_memory_ids: list[str] = Field(default_factory=list)
    complete: bool = True


class RepeatedError(Model):
    """An error that occurred in several builds."""

    error: Text
    kind: ErrorKind
    """A mistake of the agent; network, rate limit or service; a missing file, setting, permission or version."""
    builds: Count
    remedy: Text | None = None
    """What prevented or fixed it, if known."""
    memory_id: str | None = None
    """The memory that generalises it."""


class ErrorAnalysis(Model):
    """Result of an analysis of errors: the failures in projects that have changed, by `ErrorKind`."""

    failures: Count = 0
    internal: Count = 0
    external: Count = 0
    configuration: Count = 0
    created: Count = 0
    """Anti-patterns created."""
    updated: Count = 0
    """Anti-patterns updated or withdrawn."""
    repeated: list[RepeatedError] = Field(default_factory=list)
    """Errors of three builds or more, most frequent first, at most 20."""
    new_memory_ids: list[str] = Field(default_factory=list)
    complete: bool = True


class Proposal(Model):
    """A procedure learned from episodes, the number of builds of evidence, and its state since when. Only procedures in force are recalled."""

    id: str
    state: ProposalState
    trigger: Text
    steps: list[Text]
    success_rate: Unit | None = None
    confidence: Unit
    builds: Count
    since: Timestamp
    project_id: str | None = None
    common_errors: list[Text] = Field(default_factory=list)


OrderKind = Literal["long session", "returned failure", "community", "contradiction"]
OrderState = Literal["open", "answered", "skipped"]
Verdict = Literal["both hold", "older holds", "newer holds"]
MAX_ORDER_MEMORIES = 200


class WorkOrder(Model):
    """A question about a source that rules cannot answer."""

    id: str
    kind: OrderKind
    """A long session of which the rules kept little; a failure that came back after it had been fixed; episodes with something in common, but no
    lesson that rules could state; two memories that may contradict each other."""
    question: Text
    excerpt: Text
    """The source, without secrets: data that others wrote. The evidence of an answer must be part of it."""
    project_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    subject_ids: list[str] = Field(default_factory=list)
    """The memories that it is about. Of a contradiction: the older one, then the newer one."""
    source_event_ids: list[str] = Field(default_factory=list)
    trust_class: TrustClass
    value: Unit
    """The expected use of an answer, in [0, 1]."""
    source_at: Timestamp
    requested_at: Timestamp
    """From when it is asked: of parts of a long session that are too many for one day, a day after."""
    state: OrderState = "open"
    attempts: Count = 0
    """Answers of which statements were refused, while the order stayed open for their corrections."""
    closed_at: Timestamp | None = None
    answered_by: Name | None = None
    answer_trust_class: TrustClass | None = None
    new_memory_ids: list[str] = Field(default_factory=list)
    merged_memory_ids: list[str] = Field(default_factory=list)
    """The memories that already said what its answer says."""
    verdict: Verdict | None = None
    skip_reason: Text | None = None


class WorkSheet(Model):
    """A work order with all that is needed to answer it."""

    order: WorkOrder
    instructions: str
    """What an answer must look like, and that the excerpt is data."""
    fenced_excerpt: str
    """The excerpt between lines that it cannot contain: for a prompt."""
    reply_schema: dict[str, Any]
    """JSON schema of an answer."""
    limits: dict[str, int]
    """Maximum numbers of statements and characters."""

    @property
    def prompt(self) -> str:
        """All of it in one text, as an agent gets it."""
        schema = json.dumps(self.reply_schema, ensure_ascii=False)
        return (
            f"{self.instructions}\n\n{self.fenced_excerpt}\n\nSchema of the answer: {schema}\norder_id: {self.order.id}"
        )


class AnswerResult(Model):
    """Result of answering a work order."""

    order_id: str
    answered_by: Name
    new_memory_ids: list[str] = Field(default_factory=list)
    merged_memory_ids: list[str] = Field(default_factory=list)
    forgotten: Count = 0
    """Statements left out because they repeat what the user made the store forget."""
    refused: Count = 0
    """Statements that are malformed, or that the excerpt does not support."""
    problems: list[str] = Field(default_factory=list)
    """What is wrong with the refused statements, each with its place, such as ``statements.0.content: “8080” is not in the quoted evidence``, and the
    tags that were left out of others."""
    secrets_redacted: Count = 0
    verdict: Verdict | None = None
    attempts_left: Count = 0
    """How many more answers may correct the refused statements. At zero, or after an answer without refused statements, the order is closed."""
    already_answered: bool = False
    """Whether it had been answered before: then nothing was written, and this is the result of that answer."""
    decision: str | None = None
    """What was carried out of the verdict, and how it is undone."""
    notice: str | None = None


class OrdersResult(Model):
    """Result of making work orders: sources that rules could not judge and that were not asked about, and orders made of the most valuable ones."""

    candidates: Count = 0
    requested: Count = 0


FEEDBACK_SOURCE = "feedback"
"""The `source` of rules made of repeated comments."""
COUNTING_SOURCE = "counting"
"""The `source` of rules that were counted over records."""
MADE_BY_SLEEP = frozenset({"compression", "error analysis", "procedures", FEEDBACK_SOURCE, COUNTING_SOURCE})
"""The `source` of memories that phases of sleep make from others and keep up to date."""
WORK_ORDER_SOURCE = "work order"
"""The `source` of memories that answers to work orders make."""
MADE_FROM_OTHERS = MADE_BY_SLEEP | {WORK_ORDER_SOURCE}
"""The `source` of memories that repeat what others say: they are withheld while one of these is hidden, and not merged."""


class CountingReport(Model):
    """Rules counted over commits: memories made, brought up to date, and ended."""

    created: Count = 0
    updated: Count = 0
    ended: Count = 0
    complete: bool = True


class MergeResult(Model):
    """Near-duplicates: new or changed memories in force, those merged into another one, and how many of these were found by words alone."""

    looked_at: Count = 0
    merged: Count = 0
    by_words: Count = 0
    complete: bool = True


class CopiesResult(Model):
    """Copies: new or changed memories in force, and those merged into one with the same text."""

    looked_at: Count = 0
    merged: Count = 0
    complete: bool = True


class FeedbackResult(Model):
    """Learning from feedback: comments that repeat each other in changed projects, rules made, and rules changed or retired."""

    comments: Count = 0
    created: Count = 0
    updated: Count = 0
    complete: bool = True


class TemporalResult(Model):
    """Temporal validation: facts in force that state their own end."""

    looked_at: Count = 0
    expired: Count = 0
    """Facts that are invalid since their stated end."""
    ended_but_pinned: Count = 0
    """Facts that stay although their stated end has passed, because they are pinned."""
    complete: bool = True


class PhaseReport(Model):
    """Result of one phase of a sleep."""

    name: str
    counts: dict[str, int] = Field(default_factory=dict)
    changed: Count = 0
    """Memories changed, created or linked."""
    memory_ids: list[str] = Field(default_factory=list)
    """The first 100 of these memories, in chronological order."""
    seconds: Finite = 0.0
    complete: bool = True
    """False if it was stopped; the next sleep continues it."""


class SleepReport(Model):
    """Result of a sleep."""

    started_at: Timestamp
    """When the run began; before this call, if it continued an interrupted run."""
    resumed: bool = False
    phases: list[PhaseReport] = Field(default_factory=list)
    """Phases run by this call, in order."""
    left: list[str] = Field(default_factory=list)
    """Phases left for the next sleep."""
    changed: Count = 0
    """Memories changed, created or linked, summed over the phases."""
    complete: bool = True
    seconds: Finite = 0.0
    usage: ModelUsage | None = None
