"""Work orders, their answers' results, and the result of making them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from memgraph.model.base import Count, Model, Name, Text, Timestamp, Unit
from memgraph.model.memory import TrustClass

OrderKind = Literal["long session", "returned failure", "community", "contradiction"]
OrderState = Literal["open", "answered", "skipped"]
Verdict = Literal["both hold", "older holds", "newer holds"]
MAX_ORDER_MEMORIES = 200


class WorkOrder(Model):
    """A question about a source that rules cannot answer.

    Attributes
    ----------
    kind : {"long session", "returned failure", "community", "contradiction"}
        A long session of which the rules kept little; a failure that came back after it had been fixed; episodes with something in
        common, but no lesson that rules could state; two memories that may contradict each other.
    excerpt : str
        The source, without secrets: data that others wrote. The evidence of an answer must be part of it.
    subject_ids : list of str
        The memories that it is about. Of a contradiction: the older one, then the newer one.
    value : float
        The expected use of an answer, in [0, 1].
    state : {"open", "answered", "skipped"}
    attempts : int
        Answers of which statements were refused, while the order stayed open for their corrections.
    new_memory_ids, merged_memory_ids : list of str
        The memories that its answer added; those that already said the same.
    """

    id: str
    kind: OrderKind
    question: Text
    excerpt: Text
    project_id: Name | None = None
    task_id: Name | None = None
    build_id: Name | None = None
    subject_ids: list[str] = Field(default_factory=list)
    source_event_ids: list[str] = Field(default_factory=list)
    trust_class: TrustClass
    value: Unit
    source_at: Timestamp
    requested_at: Timestamp
    state: OrderState = "open"
    attempts: Count = 0
    closed_at: Timestamp | None = None
    answered_by: Name | None = None
    answer_trust_class: TrustClass | None = None
    new_memory_ids: list[str] = Field(default_factory=list)
    merged_memory_ids: list[str] = Field(default_factory=list)
    verdict: Verdict | None = None
    skip_reason: Text | None = None


class WorkSheet(Model):
    """A work order with all that is needed to answer it.

    Attributes
    ----------
    instructions : str
        What an answer must look like, and that the excerpt is data.
    fenced_excerpt : str
        The excerpt between lines that it cannot contain: for a prompt.
    reply_schema : dict
        JSON schema of an answer.
    limits : dict
        Maximum numbers of statements and characters.
    """

    order: WorkOrder
    instructions: str
    fenced_excerpt: str
    reply_schema: dict[str, Any]
    limits: dict[str, int]


class AnswerResult(Model):
    """Result of answering a work order.

    Attributes
    ----------
    already_answered : bool
        Whether it had been answered before: then nothing was written, and this is the result of that answer.
    forgotten : int
        Statements left out because they repeat what the user made the store forget.
    attempts_left : int
        How many more answers may correct the refused statements. At zero, or after an answer without refused statements, the order is closed.
    refused : int
        Statements that are malformed, or that the excerpt does not support.
    problems : list of str
        What is wrong with them, each with its place, such as ``statements.0.content: “8080” is not in the quoted evidence``, and the tags that
        were left out of others.
    decision : str or None
        What was carried out of the verdict, and how it is undone.
    notice : str or None
        What contradictions the new memories bring.
    """

    order_id: str
    answered_by: Name
    new_memory_ids: list[str] = Field(default_factory=list)
    merged_memory_ids: list[str] = Field(default_factory=list)
    forgotten: Count = 0
    refused: Count = 0
    problems: list[str] = Field(default_factory=list)
    secrets_redacted: Count = 0
    verdict: Verdict | None = None
    attempts_left: Count = 0
    already_answered: bool = False
    decision: str | None = None
    notice: str | None = None


class OrdersResult(Model):
    """Result of making work orders.

    Attributes
    ----------
    candidates : int
        Sources that rules could not judge, without those that were asked about before.
    requested : int
        Work orders made of the most valuable ones, within the budget of the day.
    """

    candidates: Count = 0
    requested: Count = 0
