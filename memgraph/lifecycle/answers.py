"""Answers to work orders: verified against the excerpt, deduplicated, and committed with the state of the order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, field_validator

from memgraph.errors import InvalidInputError, UnsupportedClaimError
from memgraph.extraction.llm.claims import Claim, evidence_in
from memgraph.extraction.secrets import redact_any
from memgraph.index.columns import TRUST
from memgraph.lifecycle.contradictions.conflict import is_users
from memgraph.lifecycle.contradictions.resolution import dismissal, replacement
from memgraph.lifecycle.contradictions.search import described, find_contradictions_of
from memgraph.lifecycle.intake.settle import OBSERVATION_COSINE, Pending, settle
from memgraph.lifecycle.orders import MAX_ATTEMPTS, MAX_STATEMENTS, known_order, text_shown
from memgraph.lifecycle.run import vectors_of
from memgraph.model.base import Model, Name, Prose, checked
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.events.payload import Actor
from memgraph.model.events.records import DistilAnswered, DistilAttempted, DistilSkipped
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import AgentMemory, ProceduralMemory, SemanticMemory, TrustClass, Vector, id_of
from memgraph.model.results.learning import WORK_ORDER_SOURCE, AnswerResult, Verdict, WorkOrder
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.store.query import Reader
from memgraph.text.attempts import BY_USER, LEADS, stated
from memgraph.text.sentences import split_sentences

_ASKED_ABOUT = "the work order was about it"
"""Reason of the link between what an answer made and what the order was about."""


class Answer(Model):
    """An answer: statements about the excerpt (claims, each checked by itself), or of a contradiction the verdict alone."""

    statements: Annotated[list[Any], Field(max_length=MAX_STATEMENTS)] = Field(default_factory=list)
    verdict: Verdict | None = None

    @field_validator("verdict", mode="before")
    @classmethod
    def _none_if_empty(cls, value: object) -> object:
        return None if value == "" else value


@dataclass(slots=True)
class _Settled:
    """What becomes of an answer's statements."""

    writes: list[Write] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    forgotten: int = 0


def answer_order(
    store: AgentMemoryStore,
    order_id: str,
    answer: Answer | Mapping[str, Any],
    *,
    answered_by: str,
    trust_class: TrustClass = "agent",
) -> AnswerResult:
    """Store the statements of an answer as memories, merge those that are known, and close the order: one commit.

    Secrets are removed first. A statement that is malformed or that the order's excerpt does not support is refused, and the result
    says why. The order then stays open for their corrections, at most `MAX_ATTEMPTS` times; statements that it has already are left
    out. If all are refused at first, nothing is stored. An order about a contradiction takes the verdict alone, which is carried out in the
    same commit. Idempotent: an order that was answered before returns the result of that answer. The memories have the trust class of whoever answers, or the
    order's if that is lower.
    """
    answered_by = checked(Name, answered_by, "answered_by")
    trust_class = checked(TrustClass, trust_class, "trust_class")
    order = known_order(store, order_id)
    if order.state == "answered":
        return _earlier(order)
    parsed, secrets = redact_any(Answer.parse(answer))
    claims, problems = _checked(order, parsed)
    distinct = list({canonical_name(claim.text): claim for claim in reversed(claims)}.values())[::-1]
    embedder = store.embedder
    vectors = vectors_of(embedder, [claim.text for claim in distinct])
    with store.exclusive():
        order = known_order(store, order.id)
        if order.state == "answered":
            return _earlier(order)
        if order.state == "skipped":
            raise InvalidInputError("names a work order that was skipped", field="id", value=order_id)
        store.check_embedder(embedder)  # the store may have changed its model meanwhile
        decision = _decision(store, order, parsed.verdict, answered_by, trust_class)
        memories = _memories(store.reader, order, distinct, answered_by, trust_class)
        settled = _settle(store, order, memories, vectors)
        refused = len(parsed.statements) - len(claims)
        said = {
            "id": order.id,
            "answered_by": answered_by,
            "trust_class": trust_class,
            "new_memory_ids": settled.added,
            "merged_memory_ids": settled.merged,
            "verdict": parsed.verdict,
        }
        attempts_left = MAX_ATTEMPTS - order.attempts - 1 if refused else 0
        event: DistilAnswered | DistilAttempted
        if attempts_left:
            event = DistilAttempted(**said, attempted_at=store.now(), refused=refused)
        else:
            event = DistilAnswered(**said, answered_at=store.now())
        store.commit("task" if order.task_id else "global", [*decision, *settled.writes, event], task_id=order.task_id)
        found = find_contradictions_of(store, settled.added)
    return AnswerResult(
        order_id=order.id,
        answered_by=answered_by,
        new_memory_ids=settled.added,
        merged_memory_ids=settled.merged,
        forgotten=settled.forgotten,
        refused=refused,
        attempts_left=attempts_left,
        problems=problems,
        secrets_redacted=secrets,
        verdict=parsed.verdict,
        decision=None if parsed.verdict in (None, order.verdict) else _decided(order, parsed.verdict),
        notice=described(found),
    )


def skip_order(
    store: AgentMemoryStore, order_id: str, *, reason: str | None = None, actor: Actor = "user"
) -> WorkOrder:
    """Close a work order without an answer; it is not made again. Idempotent."""
    reason = checked(Prose | None, reason, "reason")
    with store.exclusive():
        order = known_order(store, order_id)
        if order.state == "answered":
            raise InvalidInputError("names a work order that was answered", field="id", value=order_id)
        if order.state == "open":
            reason = redact_any(reason).value
            store.commit("global", [DistilSkipped(id=order.id, skipped_at=store.now(), reason=reason)], actor=actor)
        return known_order(store, order.id)


def _checked(order: WorkOrder, answer: Answer) -> tuple[list[Claim], list[str]]:
    """Return the statements that the excerpt supports, and what is wrong with the others; refuse an answer without any to accept."""
    if answer.verdict is not None and order.kind != "contradiction":
        raise InvalidInputError("is only for a work order about a contradiction", field="verdict", value=answer.verdict)
    if answer.statements and order.kind == "contradiction":
        raise InvalidInputError(
            "are refused: a work order about a contradiction takes none, only a verdict", field="statements"
        )
    wanted = "verdict" if order.kind == "contradiction" else "statements"
    if answer.model_fields_set.isdisjoint({"statements", wanted}):
        raise InvalidInputError("is missing", field=wanted)
    accepted: list[Claim] = []
    problems: list[str] = []
    for place, statement in enumerate(answer.statements):
        try:
            claim = Claim.parse(statement)
        except InvalidInputError as error:
            problems.append(f"statements.{place}.{error}")
            continue
        metadata = " ".join(filter(None, (order.source_at[:10], order.project_id)))
        kept, found = claim.verified(order.excerpt, metadata=metadata)
        problems += [f"statements.{place}.{problem}" for problem in found]
        if kept is not None:
            accepted.append(kept)
    if problems and not accepted and not order.attempts:
        raise UnsupportedClaimError(problems)
    return accepted, problems


def _earlier(order: WorkOrder) -> AnswerResult:
    return AnswerResult(
        order_id=order.id,
        answered_by=order.answered_by or "",
        new_memory_ids=order.new_memory_ids,
        merged_memory_ids=order.merged_memory_ids,
        verdict=order.verdict,
        already_answered=True,
    )


def _memories(
    reader: Reader, order: WorkOrder, claims: Sequence[Claim], answered_by: str, trust_class: TrustClass
) -> list[AgentMemory]:
    """Return the statements as memories. Those of corrections are numbered after those of earlier answers."""
    found = []
    texts = {row["id"]: text_shown(row, order.requested_at) for row in reader.rows(order.subject_ids)}
    for place, claim in enumerate(claims, start=MAX_STATEMENTS * order.attempts):
        memory = claim.memory(
            id=source_id(f"work order\x1f{order.id}", place),
            occurred_at=order.source_at,
            project_id=order.project_id,
            task_id=order.task_id,
            build_id=order.build_id,
            evidence_build_ids=[order.build_id] if order.build_id else [],
            source_event_ids=order.source_event_ids,
            tags=claim.clean_tags,
            trust_class=max(trust_class, order.trust_class, key=TRUST.index),
            source=WORK_ORDER_SOURCE,
            reason=f"{answered_by} stated it about a {order.kind}: “{claim.quoted}”",
        )
        if memory.type != "episodic" and (quoted := [one for one, text in texts.items() if _quotes(claim, text)]):
            memory = memory.model_copy(update={"supporting_memory_ids": quoted})
        found.append(memory)
    return found


def _quotes(claim: Claim, text: str) -> bool:
    """Return whether a passage that a claim quotes stands in a text."""
    return len(evidence_in(text, claim.evidence)[1]) < len(claim.evidence)


def _settle(
    store: AgentMemoryStore,
    order: WorkOrder,
    memories: Sequence[AgentMemory],
    vectors: Sequence[Vector | None],
) -> _Settled:
    """Decide for each statement: new, known or forgotten.

    A known memory keeps its text: it is not withheld when what the order was about is forgotten. What only quotes the user is known by a rule in
    the quoted words; what quotes more is supported by it.
    """
    settled, pending = _Settled(), Pending(store)
    stored = {*order.new_memory_ids, *order.merged_memory_ids}
    embedded = (
        memory.model_copy(update={"embedding": vector}) for memory, vector in zip(memories, vectors, strict=True)
    )
    for statement in embedded:
        memory, found = statement, settle(store, statement, threshold=OBSERVATION_COSINE)
        if found.state == "new" and isinstance(memory, SemanticMemory):
            same = [settle(store, one, threshold=OBSERVATION_COSINE) for one in _as_rules(memory)]
            found = next((one for one in same if one.is_left_out), next(iter(same), found))
            rules = [id_of(one.memory) for one in same if one.state == "known" and one.memory]
            if rules:
                both = list(dict.fromkeys([*memory.supporting_memory_ids, *rules]))
                memory = memory.model_copy(update={"supporting_memory_ids": both})
        if found.state in ("forgotten", "decided"):
            settled.forgotten += 1
        elif found.state == "new":
            settled.writes += [memory, *_links(order, memory, pending.now)]
            settled.added.append(id_of(memory))
        elif found.memory and (known := id_of(found.memory)) not in (*settled.merged, *stored):
            settled.writes.append(pending.merge(found.memory, memory, takes_text=False))
            settled.merged.append(known)
    return settled


def _as_rules(memory: AgentMemory) -> Iterator[AgentMemory]:
    """Yield what a memory quotes of the user, and its sentences, as rules have it, without a vector: then equal texts alone are the same."""
    if memory.content.startswith(BY_USER):
        said = stated(memory.content).strip("“”")
        of_memory = memory.model_dump(include={"id", "project_id", "task_id", "trust_class"})
        for one in (said, *split_sentences(said, "claim")):
            yield SemanticMemory(content=f"{LEADS['instruction']}: {one}", **of_memory)


def _links(order: WorkOrder, memory: AgentMemory, now: str) -> list[Write]:
    """Return the links to what the order was about; what the memory quotes supports it, and has its links from that."""
    supporting = memory.supporting_memory_ids if isinstance(memory, SemanticMemory | ProceduralMemory) else ()
    return [
        MemoryLinked(
            source_id=id_of(memory), relation="DERIVED_FROM", target_id=one, reason=_ASKED_ABOUT, created_at=now
        )
        for one in order.subject_ids
        if one not in supporting
    ]


def _decided(order: WorkOrder, verdict: Verdict) -> str:
    """Return what a verdict did, and the command that undoes it."""
    older, newer = order.subject_ids
    if verdict == "both hold":
        return f"both statements hold; undo: memgraph link {newer} CONTRADICTS {older}"
    if verdict == "older holds":
        return f"the older statement replaces the newer; undo: memgraph unsupersede {newer} --by {older}"
    return f"the newer statement replaces the older; undo: memgraph unsupersede {older} --by {newer}"


def _decision(
    store: AgentMemoryStore, order: WorkOrder, verdict: Verdict | None, answered_by: str, trust_class: TrustClass
) -> list[Write]:
    """Return the events that carry out a verdict on a contradiction."""
    if verdict is None or verdict == order.verdict:
        return []
    if order.verdict is not None:
        raise InvalidInputError(f"was “{order.verdict}” in an earlier answer", field="verdict", value=verdict)
    older, newer = order.subject_ids
    reason = f"{answered_by}: {verdict}"
    if verdict == "both hold":
        return [*dismissal(store, newer, older, reason=reason)]
    keep, gone = (older, newer) if verdict == "older holds" else (newer, older)
    (replaced,) = store.read_memories([gone])
    is_users_own = replaced.is_pinned or is_users(replaced) or getattr(replaced, "category", None) == "instruction"
    if TRUST.index(trust_class) > TRUST.index(replaced.trust_class) or (is_users_own and trust_class != "user"):
        problem = f"would replace {gone}, which is the user's or trusted more: answer “”, and the user decides (`memgraph contradictions resolve`, `supersede`)"
        raise InvalidInputError(problem, field="verdict", value=verdict)
    return [replacement(store, keep=keep, gone=gone, reason=reason)]
