"""Compression: what was seen in three builds or more becomes one generalisation, which outlasts its episodes (seed 0; design §5).

A run looks at the scopes in which something has changed since the last one, and writes what differs: run again, it writes
nothing. It is made of commits that each leave a true account, and ends with an event that says so; killed before that, the next
run finds done what was done. A generalisation is written as it came, with its third build, and as it grew with each later one
(see `growth`), so a history that is read at once replays like one that was lived through. What is planned while others write is
planned anew, the last time under the lock, where no model is asked: nobody shall wait for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any

from memgraph.lifecycle.evidence.evidence import TimeIsUp, never
from memgraph.lifecycle.evidence.experience import (
    NO_EVIDENCE_LEFT,
    Known,
    changed_scopes,
    changes_something,
    read_experience,
)
from memgraph.lifecycle.evidence.incremental_run import Vectors
from memgraph.lifecycle.generalisation.drafts import Draft, Growth, drafts
from memgraph.lifecycle.generalisation.patterns import Plan, plans
from memgraph.lifecycle.generalisation.wording import Wording
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.events.lifecycle import COMPRESSION, CompressionApplied
from memgraph.model.events.links import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.payload import Payload, WriteScope, sparse
from memgraph.model.memory import AgentMemory, SemanticMemory, Vector
from memgraph.model.results.learning import CompressionResult
from memgraph.ports import Embedder, LanguageModel
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.append import Write, with_vector
from memgraph.store.commit.records import patch, record_of
from memgraph.store.projection.bulk import in_bulk

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
            groups = drafts(store, made, wording)
            _embed(embedder, made, groups, vectors)
            with store.exclusive():
                store.check_embedder(embedder)
                if is_last or not _has_moved(store, seq):
                    return _commit(store, made, groups, vectors, wording)
    raise AssertionError("unreachable: the last pass is forced")  # pragma: no cover


def _has_moved(store: AgentMemoryStore, seq: int) -> bool:
    """Whether anything was written since that would change what is to be generalised."""
    return any(changes_something(event) and event.payload.memory_ids() for event in store.reader.events_after(seq))


def _embed(
    embedder: Embedder, made: Sequence[Plan], groups: Sequence[Sequence[Growth]], vectors: dict[str, Vector | None]
) -> None:
    """Add the vectors of new texts to those that there are: of what grew, of the first and the latest; the others are history."""
    told = [[draft for draft in growth if draft.has_new_text] for group in groups for growth in group]
    texts = dict.fromkeys(draft.memory.content for growth in told for draft in (*growth[:1], *growth[-1:]))
    texts |= dict.fromkeys(TAKEN_BACK_TEXT for plan in made for known in plan.retired if known.lost)
    lacking = [text for text in texts if text not in vectors]
    vectors |= dict(zip(lacking, vectors_of(embedder, lacking), strict=True))


def _commit(
    store: AgentMemoryStore,
    made: Sequence[Plan],
    groups: Sequence[Sequence[Growth]],
    vectors: Vectors,
    wording: Wording,
) -> CompressionResult:
    now = store.now()
    retired = [(known, plan.latest) for plan in made for known in plan.retired]
    growths = [growth for group in groups for growth in group]
    created = [growth[0] for growth in growths if growth[0].before is None]
    superseded = {known.row["id"] for draft in created for known in draft.pattern.replaced}
    units = [
        (
            group[0][0].memory.task_id,
            [write for growth in group for draft in growth for write in _writes(draft, vectors, now)],
        )
        for group in groups
    ]
    units += [(known.row.get("task_id"), _taken_back(store, known, latest, vectors, now)) for known, latest in retired]
    for task_id, writes in _batches(units):
        scope: WriteScope = "task" if task_id else "global"
        store.commit(scope, writes, task_id=task_id, actor="system")
    counts = {
        "created": len(created),
        "updated": len(growths) - len(created),
        "superseded": len(superseded),
        "retired": len(retired),
    }
    episodes = sum(plan.episodes for plan in made)
    found = sum(plan.communities for plan in made)
    event = CompressionApplied(applied_at=now, episodes=episodes, communities=found, **counts)
    store.commit("system", [event], actor="system")
    return CompressionResult(
        compressed=len(created),
        episodes=episodes,
        communities=found,
        **{name: many for name, many in counts.items() if name != "created"},
        new_memory_ids=[draft.memory.id or "" for draft in created],
        notice=wording.notice,
    )


def _batches(units: Sequence[tuple[str | None, list[Write]]]) -> Iterator[tuple[str | None, list[Write]]]:
    """Put the writes of one scope together into commits; what belongs together stays together.

    New ones and those that are brought up go apart: among 100,000 memories the engine's buffer pool has no room for copying
    new rows into a table and changing others of it in one transaction. A new one that grew is but one row.
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


def _writes(draft: Draft, vectors: Vectors, now: str) -> list[Write]:
    memory_id, before = draft.memory.id or "", draft.before
    vector = vectors.get(draft.memory.content) if draft.has_new_text else None
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
    after = draft.memory.model_copy(update={"updated_at": now})
    writes: list[Write] = [with_vector(_revision(before, after, now), vector)]
    writes += [MemoryDerived(id=memory_id, source_ids=added, created_at=now) for added in draft.added]
    withdrawn = draft.pattern.same.withdrawn if draft.pattern.same else []
    return [*writes, *_unlinked(memory_id, [*draft.left, *(row["id"] for row in withdrawn)])]


def _taken_back(store: AgentMemoryStore, known: Known, latest: str, vectors: Vectors, now: str) -> list[Write]:
    """Return what says that it no longer holds; without its words, if they may be those of episodes that were withdrawn.

    What somebody withdrew ends it now; else the latest episodes did, which its own turned out to belong with, when they happened.
    """
    memory_id = known.row["id"]
    before = store.read_memories([memory_id])[0]
    ended_at = now if known.lost or not latest else min(latest, now)
    gone = {**(_WORDLESS if known.lost else {}), "invalid_at": ended_at, "invalidation_reason": NO_EVIDENCE_LEFT}
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
