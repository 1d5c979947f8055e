"""Compression: generalise the lessons that at least three builds state; generalisations outlast their episodes (seed 0; design §5).

A run reads the scopes that have changed since the last one and writes only differences: it is idempotent. Each of its
commits is consistent by itself, and a final event records the run; after a kill the next run finds the completed work
in place. A generalisation is written as it arose, with its third build, and as it grew with each later one (see
`growth`), so a history imported at once replays like one recorded live. If others write while a plan is made, it is
made again; the last time under the writer lock, without a model, so that nobody waits for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from memgraph.lifecycle.evidence.evidence import TimeIsUp, never, revised, unlinked
from memgraph.lifecycle.evidence.experience import (
    WATCH,
    Generalisation,
    changed_scopes,
    read_experience,
)
from memgraph.lifecycle.evidence.retirement import NO_EVIDENCE_LEFT, NO_LESSON, no_longer_valid, retired
from memgraph.lifecycle.generalisation.drafts import Draft, Growth, drafts
from memgraph.lifecycle.generalisation.patterns import plans
from memgraph.lifecycle.generalisation.wording import Wording
from memgraph.lifecycle.run.changes import last_run
from memgraph.lifecycle.run.runner import Commit, Plan, View, account, carry_out
from memgraph.model.events.memories import MemoryDerived, MemoryLinked
from memgraph.model.events.records import COMPRESSION, CompressionApplied
from memgraph.model.memory import SemanticMemory, id_of
from memgraph.model.results.learning import CompressionResult
from memgraph.ports import Embedder, LanguageModel
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.store.projection.bulk import in_bulk
from memgraph.store.query import Reader

RETIRED_TEXT = "A generalisation that was made: too few of the builds that it was seen in are left to tell it."
_BATCH_ROWS = 250_000
"""Approximate number of graph rows changed per commit; writes that belong together may exceed it."""


def compress(
    store: AgentMemoryStore,
    *,
    embedder: Embedder,
    model: LanguageModel | None = None,
    is_time_up: TimeIsUp = never,
) -> CompressionResult:
    """Update the generalisations to match the current episodes.

    Parameters
    ----------
    model : LanguageModel, optional
        Words the generalisations; its texts are checked. If it fails, the episodes' own words are used, and the result
        says so.
    is_time_up : callable, optional
        Once it returns true, the model is no longer called and the episodes' own words are used. The run itself
        completes.

    Notes
    -----
    Deterministic without a model. Time grows with the number of episodes in the changed projects.
    """
    plan = partial(_planned, wording=Wording(model, is_time_up))
    with in_bulk():
        return carry_out(store, plan, embedder=embedder, rests_on=WATCH.touched).result


def _planned(view: View, wording: Wording) -> Plan[CompressionResult]:
    if view.is_locked:
        wording.ask_no_more("others wrote meanwhile")
    reader, now = view.reader, view.now
    with reader.frozen():
        scopes = changed_scopes(reader, now)
        experiences = read_experience(reader, scopes, now)
    if not scopes and not builds_since(reader):
        return Plan(CompressionResult())
    made = plans(experiences)
    groups = drafts(view, made, wording)
    retiring = [(known, plan.latest) for plan in made for known in plan.retired]
    growths = [growth for group in groups for growth in group]
    created = [growth[0] for growth in growths if growth[0].before is None]
    counts = {
        "episodes": sum(plan.episodes for plan in made),
        "communities": sum(plan.communities for plan in made),
        "updated": len(growths) - len(created),
        "superseded": len({known.row["id"] for draft in created for known in draft.pattern.replaced}),
        "retired": len(retiring),
    }
    units = [
        (group[0][0].memory.task_id, [write for growth in group for draft in growth for write in _writes(draft, now)])
        for group in groups
    ]
    units += [(known.row.get("task_id"), _retirement(reader, known, latest, now)) for known, latest in retiring]
    applied = CompressionApplied(applied_at=now, created=len(created), **counts)
    new_ids = [draft.memory.id for draft in created]
    return Plan(
        CompressionResult(compressed=len(created), **counts, new_memory_ids=new_ids, notice=wording.notice),
        [*_commits(units), account(applied)],
        _texts(growths, [known for known, _ in retiring]),
    )


def _texts(growths: Sequence[Growth], retired: Sequence[Generalisation]) -> list[str]:
    """Return the texts to embed: for a generalisation that grew, its first new text and its latest one."""
    new = [[draft for draft in growth if draft.has_new_text] for growth in growths]
    texts = [draft.memory.content for growth in new for draft in (*growth[:1], *growth[-1:])]
    return [*texts, *(RETIRED_TEXT for known in retired if known.lost)]


def _commits(units: Sequence[tuple[str | None, list[Write]]]) -> Iterator[Commit]:
    """Group the writes of one scope into commits; writes that belong together stay together.

    New and updated memories are committed separately: with 100,000 memories the engine's buffer pool is too small to
    copy new rows into a table and update others of it in one transaction. A new memory that grew is still one row.
    """

    def kind(unit: tuple[str | None, list[Write]]) -> tuple[str, bool]:
        return (unit[0] or "", isinstance(unit[1][0], SemanticMemory))

    for _, alike in groupby(sorted(units, key=kind), key=kind):
        batch: list[Write] = []
        size = 0
        for task_id, writes in alike:
            more = sum(map(_rows, writes))
            if batch and size + more > _BATCH_ROWS:
                yield Commit(batch, task_id)
                batch, size = [], 0
            batch.extend(writes)
            size += more
        yield Commit(batch, task_id)


def _rows(write: Write) -> int:
    """Return approximately how many graph rows a write changes."""
    if isinstance(write, SemanticMemory):
        return 2 * len(write.supporting_memory_ids) + len(write.evidence_build_ids) + len(write.entities) + 10
    return 2 * len(write.source_ids) if isinstance(write, MemoryDerived) else 10


def _writes(draft: Draft, now: str) -> list[Write]:
    memory_id, before = id_of(draft.memory), draft.before
    if before is None:
        new = draft.memory.model_copy(update={"supporting_memory_ids": draft.linked})
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
    writes: list[Write] = [revised(before, after)]
    writes += [MemoryDerived(id=memory_id, source_ids=added, created_at=now) for added in draft.added]
    withdrawn = draft.pattern.same.withdrawn if draft.pattern.same else []
    return [*writes, *unlinked(memory_id, [*draft.left, *(row["id"] for row in withdrawn)])]


def _retirement(reader: Reader, known: Generalisation, latest: str, now: str) -> list[Write]:
    """Return the event that retires it, without its words if they may be those of withdrawn episodes.

    If somebody withdrew evidence, it ends now; otherwise it ends at the time of the latest episodes, which changed its
    community.
    """
    memory_id = known.row["id"]
    before = reader.read([memory_id])[0]
    ended_at = now if known.lost or not latest else min(latest, now)
    text = RETIRED_TEXT if known.lost else None
    reason = NO_EVIDENCE_LEFT if known.lost or not known.live else NO_LESSON
    event = revised(before, retired(before, text, no_longer_valid(ended_at, reason), now=now))
    return [event, *unlinked(memory_id, [row["id"] for row in known.withdrawn])]


def builds_since(reader: Reader) -> int:
    """Return how many builds were consolidated since compression last ran."""
    return int(last_run(reader, COMPRESSION).get("builds_since", 0))
