"""Compression: what was seen in three builds or more becomes one generalisation, which outlasts its episodes (seed 0; design §5).

A run looks at the scopes in which something has changed since the last one, and writes what differs: run again, it writes
nothing. It is made of commits that each leave a true account, and ends with an event that says so; killed before that, the next
run finds done what was done. What is planned while others write is planned anew, the last time under the lock, where no model is
asked: nobody shall wait for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any

from memgraph.index.index import Index
from memgraph.lifecycle.evidence import TimeIsUp, never, strictness
from memgraph.lifecycle.experience import (
    NO_EVIDENCE_LEFT,
    SOURCE,
    Known,
    changed_scopes,
    changes_something,
    read_experience,
)
from memgraph.lifecycle.generalise import Shared, counted, generalised, kind_of, shared_by
from memgraph.lifecycle.patterns import Pattern, Plan, plans
from memgraph.lifecycle.study import Vectors
from memgraph.lifecycle.vectors import vectors_of
from memgraph.lifecycle.wording import Wording
from memgraph.model.base import MAX_ITEMS
from memgraph.model.compression import COMPRESSION, CompressionApplied
from memgraph.model.events import MemoryDerived, MemoryLinked, MemoryRevised, MemoryUnlinked
from memgraph.model.ids import natural_id, source_id
from memgraph.model.memory import AgentMemory, Entity, SemanticMemory, Vector
from memgraph.model.payload import Payload, WriteScope, sparse
from memgraph.model.results import CompressionResult
from memgraph.ports import Embedder, LanguageModel, Row
from memgraph.store import AgentMemoryStore
from memgraph.store.appending import Write, with_vector
from memgraph.store.bulk import in_bulk
from memgraph.store.drafts import patch, record_of
from memgraph.store.reading import Reader

MOST_LINKED = 200
"""Of a larger community so many episodes are linked as evidence: those that are already, then the most typical."""
TAKEN_BACK_TEXT = "A generalisation that was made: too few of the builds that it was seen in are left to tell it."
_WORDLESS: dict[str, Any] = {
    "content": TAKEN_BACK_TEXT,
    "title": None,
    "pattern": None,
    "incorrect_approach": None,
    "correct_approach": None,
    "agents_involved": [],
    "entities": [],
    "tags": [],
}
_ATTEMPTS = 3
"""So many times it is planned, if others write meanwhile; the last time under the lock."""
_BATCH_ROWS = 250_000
"""A commit changes about so many rows of the graph at most, unless what belongs together are more."""
_MOST_AGENTS = 50
_CONFIDENCE = {3: 0.7, 4: 0.8}
_CONFIDENCE_AT_MOST = 0.9


@dataclass(slots=True)
class _Draft:
    """A pattern and the generalisation that says it; `before` is the one that goes on."""

    pattern: Pattern
    memory: SemanticMemory
    before: AgentMemory | None
    linked: list[str]

    @property
    def has_new_text(self) -> bool:
        return self.before is None or self.before.content != self.memory.content


def compress(
    store: AgentMemoryStore,
    *,
    embedder: Embedder,
    model: LanguageModel | None = None,
    is_time_up: TimeIsUp = never,
) -> CompressionResult:
    """Bring the generalisations to what the episodes say now.

    Parameters
    ----------
    model : LanguageModel, optional
        Words them; what it says is checked, and where it fails the episodes' own words serve and the result says so.
    is_time_up : callable, optional
        Once it says so the model is asked no more, and the episodes' own words serve. The run itself comes to its end.

    Notes
    -----
    Deterministic without a model. Time grows with the episodes of the projects in which something changed.
    """
    with in_bulk():
        return _compress(store, embedder, Wording(model, is_time_up))


def _compress(store: AgentMemoryStore, embedder: Embedder, wording: Wording) -> CompressionResult:
    vectors: dict[str, Vector | None] = {}
    for attempt in range(_ATTEMPTS):
        is_last = attempt == _ATTEMPTS - 1
        lock: AbstractContextManager[None] = store.exclusive() if is_last else nullcontext()
        if is_last:
            wording.ask_no_more("others wrote meanwhile")
        with lock:
            with store.reader.frozen(links=True):
                now = store.now()
                scopes = changed_scopes(store.reader, now)
                seq = store.reader.index.offset.seq
                experiences = read_experience(store.reader, scopes, now)
            if not scopes and not builds_since(store):
                return CompressionResult()
            made = plans(experiences)
            del experiences
            drafts = _drafts(store, made, wording)
            _embed(embedder, made, drafts, vectors)
            with store.exclusive():
                store.check_embedder(embedder)
                if is_last or not _has_moved(store, seq):
                    return _commit(store, made, drafts, vectors, wording)
    raise AssertionError("the last time nothing can move")  # pragma: no cover


def _has_moved(store: AgentMemoryStore, seq: int) -> bool:
    """Whether anything was written since that would change what is to be generalised."""
    return any(changes_something(event) and event.payload.memory_ids() for event in store.reader.events_after(seq))


def _drafts(store: AgentMemoryStore, made: Sequence[Plan], wording: Wording) -> list[list[_Draft]]:
    """Return, group by group, the generalisations of which something has changed."""
    known = [pattern.same.row["id"] for plan in made for group in plan.groups for pattern in group if pattern.same]
    before = {memory.id: memory for memory in store.read_memories(known)}
    drafts = []
    for plan in made:
        for group in plan.groups:
            found = [
                _draft(store.reader, pattern, before.get(pattern.same.row["id"]) if pattern.same else None, wording)
                for pattern in group
            ]
            drafts.append([draft for draft in found if draft is not None])
    return [group for group in drafts if group]


def _draft(reader: Reader, pattern: Pattern, before: AgentMemory | None, wording: Wording) -> _Draft | None:
    told = pattern.told
    shared = shared_by(told)
    fields = _fields(reader, pattern, told, shared)
    linked = _linked(pattern)
    if before is None:
        fields |= {"content": wording.of(told, fields["pattern"], counted(pattern.evidence, told))}
        return _Draft(pattern, SemanticMemory(id=_id(reader.index, pattern), **fields), None, linked)
    same = pattern.same
    assert same is not None  # noqa: S101 (what was there before is the same)
    is_told = all(getattr(before, name) == value for name, value in fields.items())
    # what else is told of episodes that faded or are gone is not compared: the same would be told in other words
    is_as_open = all(getattr(before, name) == fields[name] for name in ("privacy_tier", "trust_class"))
    has_same_builds = set(fields["evidence_build_ids"]) == set(before.evidence_build_ids)
    is_told |= bool(same.collected or same.faded) and has_same_builds and is_as_open
    if is_told and set(linked) == same.live | same.others and not same.lost:
        return None
    says_the_same = getattr(before, "pattern", None) == fields["pattern"] and not same.lost
    is_kept = before.is_pinned or says_the_same
    content = before.content if is_kept else wording.of(told, fields["pattern"], counted(pattern.evidence, told))
    return _Draft(pattern, before.model_copy(update={**fields, "content": content}), before, linked)  # type: ignore[arg-type]


def _fields(reader: Reader, pattern: Pattern, told: Sequence[Row], shared: Shared) -> dict[str, Any]:
    """Return what a generalisation says of its episodes; narrow, strict and cautious as the narrowest of them."""
    project_id, task_id = pattern.experience.scope
    in_order = sorted(told, key=lambda row: (row.get("occurred_at", ""), row.get("seq", 0)))
    builds = [build for row in in_order for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    domains = {row.get("domain") for row in told}
    gone = sorted(key for key in pattern.evidence if not key.startswith("memory ") and key not in builds)
    agents = dict.fromkeys(agent for row in in_order for agent in row.get("agents_involved", ()))
    before = [pattern.same] if pattern.same else pattern.replaced
    collected = sorted(pattern.same.collected) if pattern.same else []
    shared_context = {"tags": list(shared.tags), "entities": [Entity(**entity) for entity in shared.entities]}
    return {
        **{name: values for name, values in shared_context.items() if values},  # else they are found in the text
        "outcome": pattern.experience.outcome,
        "confidence": _CONFIDENCE.get(len(pattern.evidence), _CONFIDENCE_AT_MOST),
        "project_id": project_id,
        "task_id": task_id,
        "domain": domains.pop() if len(domains) == 1 else None,
        **strictness([*told, *(known.row for known in before)]),
        "title": shared.title,
        "agents_involved": list(agents)[:_MOST_AGENTS],
        "evidence_build_ids": list(dict.fromkeys([*gone, *builds]))[-MAX_ITEMS:],
        "source_event_ids": [*collected, *(row["id"] for row in in_order)][-MAX_ITEMS:],
        "source": SOURCE,
        "occurred_at": in_order[-1].get("occurred_at"),
        "pattern": generalised(
            told,
            shared,
            pattern.experience.outcome,
            counted(pattern.evidence, told),
            solved=pattern.solved,
            failed_builds=_failed_builds(reader, pattern) if kind_of(told) == "recovery" else 0,
        ),
        "reason": f"the same was seen {counted(pattern.evidence, told)}",
    }


def _failed_builds(reader: Reader, pattern: Pattern) -> int:
    """Return how many of the builds are known to have failed."""
    project = pattern.experience.scope[0]
    found = (reader.record("Build", natural_id("build", one, project_id=project)) for one in pattern.evidence)
    return sum(build is not None and build.get("outcome") == "failure" for build in found)


def _linked(pattern: Pattern) -> list[str]:
    """Return the episodes that are linked: the evidence, and what solved the task of failed trials, which it tells of."""
    members = [row["id"] for row in pattern.members]
    before = pattern.same.live if pattern.same else set()
    evidence = [*(one for one in members if one in before), *(one for one in members if one not in before)]
    return [*evidence[:MOST_LINKED], *(row["id"] for row in pattern.solved or ())]


def _id(index: Index, pattern: Pattern) -> str:
    """Return the id that follows from what is generalised, and from what that replaces.

    What had been taken back and is to be said again is another one, for the one before has its history.
    """
    scope = "\x1f".join(part or "" for part in (*pattern.experience.scope, pattern.experience.outcome))
    members = "\x1f".join(sorted(row["id"] for row in pattern.members))
    replaced = "\x1f".join(sorted(known.row["id"] for known in pattern.replaced))
    ids = (source_id(f"generalisation\x1f{scope}\x1f{members}\x1f{replaced}", number) for number in count())
    return next(one for one in ids if index.slot(one) < 0)


def _embed(
    embedder: Embedder, made: Sequence[Plan], drafts: Sequence[Sequence[_Draft]], vectors: dict[str, Vector | None]
) -> None:
    """Add the vectors of new texts to those that there are."""
    texts = dict.fromkeys(draft.memory.content for group in drafts for draft in group if draft.has_new_text)
    texts |= dict.fromkeys(TAKEN_BACK_TEXT for plan in made for known in plan.retired if known.lost)
    lacking = [text for text in texts if text not in vectors]
    vectors |= dict(zip(lacking, vectors_of(embedder, lacking), strict=True))


def _commit(
    store: AgentMemoryStore,
    made: Sequence[Plan],
    drafts: Sequence[Sequence[_Draft]],
    vectors: Vectors,
    wording: Wording,
) -> CompressionResult:
    now = store.now()
    retired = [known for plan in made for known in plan.retired]
    created = sum(draft.before is None for group in drafts for draft in group)
    superseded = {known.row["id"] for group in drafts for draft in group for known in draft.pattern.replaced}
    units = [
        (group[0].memory.task_id, [write for draft in group for write in _writes(store, draft, vectors, now)])
        for group in drafts
    ]
    units += [(known.row.get("task_id"), _taken_back(store, known, vectors, now)) for known in retired]
    for task_id, writes in _batches(units):
        scope: WriteScope = "task" if task_id else "global"
        store.commit(scope, writes, task_id=task_id, actor="system")
    counts = {
        "created": created,
        "updated": sum(draft.before is not None for group in drafts for draft in group),
        "superseded": len(superseded),
        "retired": len(retired),
    }
    episodes = sum(plan.episodes for plan in made)
    found = sum(plan.communities for plan in made)
    event = CompressionApplied(applied_at=now, episodes=episodes, communities=found, **counts)
    store.commit("system", [event], actor="system")
    return CompressionResult(
        compressed=created,
        episodes=episodes,
        communities=found,
        **{name: many for name, many in counts.items() if name != "created"},
        new_memory_ids=[draft.memory.id or "" for group in drafts for draft in group if draft.before is None],
        notice=wording.notice,
    )


def _batches(units: Sequence[tuple[str | None, list[Write]]]) -> Iterator[tuple[str | None, list[Write]]]:
    """Put the writes of one scope together into commits; what belongs together stays together.

    New ones and those that are brought up go apart: among 100,000 memories the engine's buffer pool has no room for copying
    new rows into a table and changing others of it in one transaction.
    """

    def kind(unit: tuple[str | None, list[Write]]) -> tuple[str, bool]:
        return (unit[0] or "", isinstance(unit[1][0], SemanticMemory))

    for _, alike in groupby(sorted(units, key=kind), key=kind):
        batch: list[Write] = []
        size = 0
        for task_id, writes in alike:
            more = sum(map(_rows, writes))
            if batch and size + more > _BATCH_ROWS:
                yield task_id, batch
                batch, size = [], 0
            batch.extend(writes)
            size += more
        yield task_id, batch


def _rows(write: Write) -> int:
    """Return about how many rows of the graph a write changes."""
    if isinstance(write, SemanticMemory):
        return 2 * len(write.supporting_memory_ids) + len(write.evidence_build_ids) + len(write.entities) + 10
    return 2 * len(write.source_ids) if isinstance(write, MemoryDerived) else 10


def _writes(store: AgentMemoryStore, draft: _Draft, vectors: Vectors, now: str) -> list[Write]:
    memory_id, before = draft.memory.id or "", draft.before
    vector = vectors[draft.memory.content] if draft.has_new_text else None
    if before is None:
        new = draft.memory.model_copy(update={"embedding": vector, "supporting_memory_ids": draft.linked})
        reason = "joined" if len(draft.pattern.replaced) > 1 else "split"
        return [
            new,
            *(
                MemoryLinked(
                    source_id=memory_id, relation="SUPERSEDES", target_id=known.row["id"], reason=reason, created_at=now
                )
                for known in draft.pattern.replaced
            ),
        ]
    same = draft.pattern.same
    assert same is not None  # noqa: S101 (what was there before is the same)
    after = draft.memory.model_copy(update={"updated_at": now})
    if set(after.evidence_build_ids) - set(before.evidence_build_ids) or set(draft.linked) - same.live - same.others:
        relevance = store.config.forgetting_curve.confirmed(before.relevance_score)
        confirmed = {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": now}
        after = after.model_copy(update=confirmed)
    writes: list[Write] = [with_vector(_revision(before, after, now), vector)]
    if added := [one for one in draft.linked if one not in same.live | same.others]:
        writes.append(MemoryDerived(id=memory_id, source_ids=added, created_at=now))
    left = sorted(same.live - {row["id"] for row in draft.pattern.members} | same.others - set(draft.linked))
    left += [row["id"] for row in same.withdrawn]
    return [*writes, *_unlinked(memory_id, left)]


def _taken_back(store: AgentMemoryStore, known: Known, vectors: Vectors, now: str) -> list[Write]:
    """Return what says that it no longer holds; without its words, if they may be those of episodes that were withdrawn."""
    memory_id = known.row["id"]
    before = store.read_memories([memory_id])[0]
    gone = {**(_WORDLESS if known.lost else {}), "invalid_at": now, "invalidation_reason": NO_EVIDENCE_LEFT}
    event = _revision(before, before.model_copy(update={**gone, "updated_at": now}), now)
    vector = vectors[TAKEN_BACK_TEXT] if known.lost else None
    return [with_vector(event, vector), *_unlinked(memory_id, [row["id"] for row in known.withdrawn])]


def _unlinked(memory_id: str, source_ids: Sequence[str]) -> list[Payload]:
    gone: list[Payload] = []
    for one in source_ids:
        gone.append(MemoryUnlinked(source_id=memory_id, relation="DERIVED_FROM", target_id=one))
        gone.append(MemoryUnlinked(source_id=one, relation="SUPPORTS", target_id=memory_id))
    return gone


def _revision(before: AgentMemory, after: AgentMemory, now: str) -> MemoryRevised:
    old = sparse(record_of(before, now=now, max_relevance=float("inf")).model_dump())
    changed, cleared = patch(old, record_of(after, now=now, max_relevance=float("inf")))
    return MemoryRevised(id=before.id or "", changed=changed, cleared=cleared)


def builds_since(store: AgentMemoryStore) -> int:
    """Return how many builds were consolidated since compression last ran."""
    run = store.reader.record("LifecycleRun", COMPRESSION)
    return int(run.get("builds_since", 0)) if run else 0
