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
from memgraph.lifecycle.dedup.near_duplicates import NEAR_DUPLICATE, joined, merge_write, ranked
from memgraph.lifecycle.intake.settle import OBSERVATION_COSINE, Pending, settle
from memgraph.lifecycle.orders import MAX_ATTEMPTS, MAX_STATEMENTS, known_order, text_shown, undecided_of
from memgraph.lifecycle.reconcile import linked_to
from memgraph.lifecycle.run import vectors_of
from memgraph.model.base import Model, Name, Prose, checked
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.events.payload import Actor
from memgraph.model.events.records import DistilAnswered, DistilAttempted, DistilSkipped
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import AgentMemory, ProceduralMemory, SemanticMemory, StoredMemory, TrustClass, Vector, id_of
from memgraph.model.results.learning import WORK_ORDER_SOURCE, AnswerResult, Verdict, WorkOrder
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import everything
from memgraph.store.commit.records import Write
from memgraph.store.query import Mask, Reader
from memgraph.text.attempts import BY_USER, LEADS, stated
from memgraph.text.sentences import split_sentences

_ASKED_ABOUT = "the work order was about it"
"""Reason of the link between what an answer made and what the order was about."""


class Answer(Model):
    """An answer: statements about the excerpt (claims, each checked by itself), or of a contradiction the verdict."""

    statements: Annotated[list[Any], Field(max_length=MAX_STATEMENTS)] = Field(default_factory=list)
    verdict: Verdict | None = None
    numbers: list[int] = Field(default_factory=list)
    """The older statements that the verdict is about, as the excerpt numbers them; of one alone none is needed. The others hold."""

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


@dataclass(slots=True)
class _Decision:
    """What carries out a verdict, the memories that it replaces, and what it did, each with the command that undoes it."""

    writes: list[Write] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def replace(self, keep: str, gone: str, how: str) -> None:
        """Note that one memory replaces another."""
        self.replaced.append(gone)
        self.said.append(f"{how}; undo: memgraph unsupersede {gone} --by {keep}")


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
    out. If all are refused at first, nothing is stored. A verdict on a contradiction is carried out in the same commit. Idempotent:
    an order that was answered before returns the result of that answer. The memories have the trust class of whoever answers, or the
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
        decision = _decision(store, order, parsed, answered_by, trust_class)
        memories = _memories(store.reader, order, distinct, answered_by, trust_class)
        settled = _settle(store, order, memories, vectors, decision.replaced)
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
        store.commit(
            "task" if order.task_id else "global", [*decision.writes, *settled.writes, event], task_id=order.task_id
        )
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
        decision="; ".join(decision.said) or None,
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
    if answer.model_fields_set.isdisjoint({"statements", *(["verdict"] if order.kind == "contradiction" else [])}):
        raise InvalidInputError("is missing", field="statements")
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
    replaced: Sequence[str],
) -> _Settled:
    """Decide for each statement: new, known or forgotten. It is not compared with the memories that the verdict replaces.

    A known memory keeps its text: it is not withheld when what the order was about is forgotten. What only quotes the user is known by a rule in
    the quoted words; what quotes more is supported by it.
    """
    settled, pending = _Settled(), Pending(store)
    stored = {*order.new_memory_ids, *order.merged_memory_ids}

    def may(reader: Reader) -> Mask:
        allowed = everything(reader)
        allowed[[reader.index.slot(one) for one in replaced]] = False
        return allowed

    embedded = (
        memory.model_copy(update={"embedding": vector}) for memory, vector in zip(memories, vectors, strict=True)
    )
    for statement in embedded:
        memory, found = statement, settle(store, statement, threshold=OBSERVATION_COSINE, may=may)
        if found.state == "new":
            same = [settle(store, one, threshold=OBSERVATION_COSINE, may=may) for one in _as_rules(memory)]
            found = next(iter(same), found)
            rules = [id_of(one.memory) for one in same if one.state == "known" and one.memory]
            if rules and isinstance(memory, SemanticMemory | ProceduralMemory):
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


def _decision(
    store: AgentMemoryStore, order: WorkOrder, answer: Answer, answered_by: str, trust_class: TrustClass
) -> _Decision:
    """Return what carries out a verdict on those of an order's statements about which nothing was decided yet."""
    found, verdict = _Decision(), answer.verdict
    if verdict is None or verdict == order.verdict:
        return found
    if order.verdict is not None:
        raise InvalidInputError(f"was “{order.verdict}” in an earlier answer", field="verdict", value=verdict)
    *older, newest = order.subject_ids
    numbers = answer.numbers or ([1] if len(older) == 1 else [])
    if not set(numbers) <= set(range(1, len(older) + 1)) or (verdict != "both hold" and not numbers):
        problem = f"must be numbers of the older statements that the verdict is about, from 1 to {len(older)}"
        raise InvalidInputError(problem, field="numbers", value=numbers)
    named = {older[number - 1] for number in numbers if verdict != "both hold"}
    undecided = undecided_of(store.reader, order.subject_ids)
    if held := [one for one in undecided if one not in named]:
        for one in held:
            found.writes += dismissal(store, newest, one, reason=f"{answered_by}: both hold")
        both = "both statements hold" if len(older) == 1 else f"{len(held)} older statements hold beside the newest"
        found.said.append(f"{both}; undo: memgraph link {newest} CONTRADICTS {' or '.join(held)}")
    about = [one for one in undecided if one in named]
    if verdict == "same" and about:
        _unite(store, found, store.read_memories([*about, newest]), trust_class)
        return found
    for one in about:
        keep, gone = (one, newest) if verdict == "older holds" else (newest, one)
        (replaced,) = store.read_memories([gone])
        if not _may_retire(replaced, trust_class):
            problem = f"would replace {gone}, which is the user's or trusted more; decide with `memgraph contradictions resolve`"
            raise InvalidInputError(problem, field="verdict", value=verdict)
        found.writes.append(replacement(store, keep=keep, gone=gone, reason=f"{answered_by}: {verdict}"))
        how = "the older statement replaces the newer" if gone == newest else "the newer statement replaces the older"
        found.replace(keep, gone, how)
    return found


def _unite(
    store: AgentMemoryStore, found: _Decision, memories: Sequence[StoredMemory], trust_class: TrustClass
) -> None:
    """Merge statements that say the same, as in sleep, but keep the text of the one that stays; what may not be replaced is related to it."""
    kept, *others = sorted(ranked(memories, are_copies=False), key=lambda one: _may_retire(one, trust_class))
    for one in others:
        if _may_retire(one, trust_class):
            after = joined(kept, one, store.now(), store.config.forgetting_curve, takes_text=False)
            found.writes.append(merge_write(kept, one, after, is_stored=True))
            found.writes.append(linked_to(kept.id, "SUPERSEDES", one.id, NEAR_DUPLICATE, store.now()))
            found.replace(kept.id, one.id, "the statements are merged")
            kept = after
        else:
            found.writes += dismissal(store, kept.id, one.id, reason=NEAR_DUPLICATE)
            found.said.append(f"both statements hold; undo: memgraph link {kept.id} CONTRADICTS {one.id}")


def _may_retire(memory: StoredMemory, trust_class: TrustClass) -> bool:
    """Return whether an answer may replace a memory: not what is trusted more, and what the user said or pinned only if the user answers."""
    is_users_own = memory.is_pinned or is_users(memory) or getattr(memory, "category", None) == "instruction"
    is_trusted = TRUST.index(trust_class) <= TRUST.index(memory.trust_class)
    return is_trusted and (trust_class == "user" or not is_users_own)
