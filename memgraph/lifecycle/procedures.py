"""Procedures from repeated solutions: what led to success by the same steps in three builds is proposed as a skill (seeds 1, 2, 3).

A proposal is an archived memory whose reason says so: it is kept and can be looked at, but nothing recalls it. To bring it into
force is to take it out of the archive; that is one event, and so is the way back. What is in force keeps its trigger and
steps, as they were approved; its evidence, rates and errors are brought up. What somebody has put away is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import isclose
from typing import Any, NamedTuple

from memgraph.lifecycle.evidence import (
    LEAST_BUILDS,
    Scope,
    TimeIsUp,
    changed_scopes,
    commit_each,
    confidence_of,
    is_true,
    never,
    read_scope,
    revision,
    seen_up_to,
    unlinked,
)
from memgraph.lifecycle.skills import skill_of
from memgraph.lifecycle.vectors import vectors_of
from memgraph.lifecycle.ways import Way, attempt_of, ways
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events import MemoryDerived
from memgraph.model.ids import source_id
from memgraph.model.memory import AgentMemory, ProceduralMemory, Vector
from memgraph.model.procedures import LEARNING, PROPOSED, REJECTED, UNCONVINCING, ProcedureResult, ProceduresLearned
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.appending import Write, with_vector
from memgraph.store.practice import in_practice, measurement, practice_of

SOURCE = "procedures"
"""The `source` of what was learned here."""
NO_EVIDENCE_LEFT = "too few of the builds that it worked in are left"
LEAST_CONFIDENCE = 0.3
"""Below it, what was never used is put away (seed 1)."""
LATER_SUCCESSES = 2
"""So many builds after a proposal, in which it worked, bring it into force where evidence may."""
_MOST_LINKED = 200
_TYPES = ("episodic", "procedural")
_FADED = "faded"


class _Known(NamedTuple):
    """A procedure that was learned before, and the episodes that it was learned from."""

    row: Row
    members: frozenset[str]

    @property
    def reason(self) -> str | None:
        """Why it is not in force; None: it is."""
        return self.row.get("archive_reason", "archived") if "archived_at" in self.row else None

    @property
    def is_put_away(self) -> bool:
        """Whether somebody has put it away, so that it is left alone."""
        out = self.row.get("is_suppressed", False) or "invalid_at" in self.row
        return out or self.reason not in (None, PROPOSED, REJECTED, _FADED)


class _Draft(NamedTuple):
    """What is to be written of one procedure; `before` is None for a new one."""

    way: Way
    after: ProceduralMemory
    before: AgentMemory | None
    members: frozenset[str]

    @property
    def has_new_text(self) -> bool:
        return self.before is None or self.before.content != self.after.content


class _Plan(NamedTuple):
    """How many episodes of a scope tell of steps, what is to be written of which procedure, and what is to be put away."""

    attempts: int
    drafts: list[_Draft]
    gone: list[_Known]

    @property
    def texts(self) -> list[str]:
        """What is to be embedded."""
        return sorted({draft.after.content for draft in self.drafts if draft.has_new_text})


def learn_procedures(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ProcedureResult:
    """Propose procedures for what was solved again and again, and bring those that there are to what their evidence says now.

    Deterministic, without a model. Run again when nothing has changed, it writes nothing; killed, the next run ends as this one
    would have under the same clock.

    Parameters
    ----------
    is_time_up : callable, optional
        Asked between projects: once it says so, the rest waits for the next run.
    """
    with store.reader.frozen(links=True):
        began_at = store.reader.index.offset.seq
        scopes = changed_scopes(store.reader, LEARNING, _TYPES)
    total, own = ProcedureResult(), set[int]()
    for scope in scopes:
        if is_time_up():
            return total.model_copy(update={"complete": False})
        result, written = _learn(store, scope)
        total, own = _added(total, result), own | written
    if scopes:
        with store.exclusive():
            event = ProceduresLearned(
                applied_at=store.now(),
                up_to_seq=seen_up_to(store, began_at, own),
                episodes=total.episodes,
                created=len(total.new_memory_ids),
                updated=total.updated,
                retired=total.retired,
            )
            store.commit("system", [event], actor="system")
    return total


def _added(one: ProcedureResult, other: ProcedureResult) -> ProcedureResult:
    numbers = {name: getattr(one, name) + getattr(other, name) for name in type(one).model_fields if name != "complete"}
    return ProcedureResult(**numbers)


def _learn(store: AgentMemoryStore, scope: Scope) -> tuple[ProcedureResult, set[int]]:
    """Learn in one scope: planned while others may write, and again under the lock if they did."""
    with store.reader.frozen(links=True):
        seq = store.reader.index.offset.seq
        plan = _planned(store, scope)
    embedder = store.embedder
    vectors = dict(zip(plan.texts, vectors_of(embedder, plan.texts), strict=True))
    with store.exclusive():
        store.check_embedder(embedder)
        if store.reader.index.offset.seq != seq:
            plan = _planned(store, scope)
            lacking = [text for text in plan.texts if text not in vectors]
            vectors |= dict(zip(lacking, vectors_of(embedder, lacking), strict=True))
        return _commit(store, scope, plan, vectors)


def _planned(store: AgentMemoryStore, scope: Scope) -> _Plan:
    """Return how many episodes tell of steps, what is to be written of which procedure, and what is to be put away."""
    now = store.now()
    rows = read_scope(store.reader, scope, _TYPES)
    learned = [row for row in rows if row["type"] == "procedural" and row.get("source") == SOURCE]
    episodes = [row for row in rows if row.get("source") != SOURCE and is_true(row, now)]
    attempts = [attempt for row in episodes if (attempt := attempt_of(row)) is not None]
    known = [_Known(row, frozenset(row.get("source_event_ids", ()))) for row in learned]
    found = ways(attempts, [sorted(one.members) for one in known if not one.is_put_away])
    by_build: dict[str, list[Row]] = {}
    for row in episodes:
        for build in row.get("evidence_build_ids", ()) or [row.get("build_id")]:
            by_build.setdefault(build or row["id"], []).append(row)
    same = _same(found, known)
    drafts = []
    for place, way in enumerate(found):
        draft = _draft(store, scope, way, same.get(place), by_build, now)
        if draft is not None:
            drafts.append(draft)
    true_ids = {row["id"] for row in episodes}
    followed = {one.row["id"] for one in same.values()}
    unconvincing = [row for row in rows if row["type"] == "procedural" and _is_unconvincing(store, row, now)]
    gone = [_Known(row, frozenset()) for row in unconvincing]
    gone += [
        one
        for one in known
        if one.reason == PROPOSED
        and one.row["id"] not in followed
        and not one.is_put_away
        and not one.members <= true_ids
    ]
    leaving = {one.row["id"] for one in gone}
    return _Plan(len(attempts), [draft for draft in drafts if draft.after.id not in leaving], gone)


def _same(found: Sequence[Way], known: Sequence[_Known]) -> dict[int, _Known]:
    """Return which way goes on as which procedure: that with most of whose episodes it has in common, each once."""
    pairs = []
    for place, way in enumerate(found):
        members = {attempt.row["id"] for attempt in way.supporters}
        for one in known:
            common = len(members & one.members)
            if common * 2 > min(len(members), len(one.members)):
                pairs.append((-common, one.row["id"], place, one))
    taken: dict[int, _Known] = {}
    for _, memory_id, place, one in sorted(pairs, key=lambda pair: pair[:3]):
        if place not in taken and all(other.row["id"] != memory_id for other in taken.values()):
            taken[place] = one
    return taken


def _draft(
    store: AgentMemoryStore, scope: Scope, way: Way, known: _Known | None, by_build: dict[str, list[Row]], now: str
) -> _Draft | None:
    """Return what is to be written; None where nothing is, or where somebody has put the procedure away."""
    fields = skill_of(way, by_build, scope, source=SOURCE)
    members = frozenset(fields["source_event_ids"])
    if known is None:
        new = ProceduralMemory(
            id=_id(store, scope, members), **fields, archived_at=now, archive_reason=PROPOSED, access_count=0
        )
        return _Draft(way, new, None, members)
    if known.is_put_away:
        return None
    joined = (attempt.builds for attempt in way.supporters if attempt.row["id"] not in known.members)
    fresh = frozenset().union(*joined) - set(known.row.get("evidence_build_ids", ()))
    if known.reason == REJECTED and len(fresh) < LEAST_BUILDS:
        return None
    before = store.read_memories([known.row["id"]])[0]
    if known.reason in (None, _FADED):
        fields = {name: value for name, value in fields.items() if name in _OF_THE_EVIDENCE}
        # what says the same is merged into what is in force, and no episode tells of those builds
        builds = dict.fromkeys([*known.row.get("evidence_build_ids", ()), *fields["evidence_build_ids"]])
        fields["evidence_build_ids"] = list(builds)[-MAX_ITEMS:]
        fields["confidence"] = confidence_of(max(len(way.builds), len(builds)))
    counts = _counts(store, known.row, way)
    borne_out = fields["confidence"] * in_practice(counts)
    fields["confidence"] = before.confidence if isclose(borne_out, before.confidence) else borne_out
    fields |= _state(store, known, way, fresh=bool(fresh), now=now)
    if known.reason == _FADED and fresh:
        relevance = store.config.forgetting_curve.confirmed(before.relevance_score)
        fields |= {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": now}
    is_told = all(getattr(before, name) == value for name, value in fields.items())
    moved = practice_of(store.reader, known.row) != counts
    if is_told and not moved and members == known.members:
        return None
    return _Draft(way, before.model_copy(update={**fields, "updated_at": now}), before, members)  # type: ignore[arg-type]


_OF_THE_EVIDENCE = frozenset(
    {
        "evidence_build_ids",
        "source_event_ids",
        "confidence",
        "occurred_at",
        "common_errors",
        "privacy_tier",
        "trust_class",
        "domain",
    }
)


def _state(store: AgentMemoryStore, known: _Known, way: Way, *, fresh: bool, now: str) -> dict[str, Any]:
    """Return what becomes of a procedure that is not in force."""
    in_force: dict[str, Any] = {"archived_at": None, "archive_reason": None, "archive_summary": None}
    if known.reason == REJECTED:  # it has come with as much evidence again
        return {"archived_at": now, "archive_reason": PROPOSED}
    if known.reason == _FADED and fresh:
        return in_force
    if known.reason == PROPOSED and store.config.procedure_approval == "evidence":
        since = known.row["archived_at"]
        later = frozenset().union(*(one.builds for one in way.supporters if one.row["created_at"] > since))
        before = frozenset().union(*(one.builds for one in way.supporters if one.row["created_at"] <= since))
        if len(later - before) >= LATER_SUCCESSES:
            return in_force
    return {}


def _counts(store: AgentMemoryStore, row: Row, way: Way) -> dict[str, int]:
    return {**practice_of(store.reader, row), "tried": way.tried, "succeeded": way.succeeded}


def _id(store: AgentMemoryStore, scope: Scope, members: frozenset[str]) -> str:
    key = "\x1f".join([scope[0] or "", scope[1] or "", *sorted(members)])
    ids = (source_id(f"procedure\x1f{key}", number) for number in count())
    return next(one for one in ids if store.reader.index.slot(one) < 0)


def _is_unconvincing(store: AgentMemoryStore, row: Row, now: str) -> bool:
    """Whether a procedure is to be put away: overridden or doubted, and never used (seed 1). Pinned ones stay."""
    if (
        "archived_at" in row
        or row.get("is_pinned")
        or not is_true(row, now)
        or row.get("confidence", 1.0) >= LEAST_CONFIDENCE
    ):
        return False
    return practice_of(store.reader, row)["uses"] == 0


def _commit(
    store: AgentMemoryStore, scope: Scope, plan: _Plan, vectors: Mapping[str, Vector | None]
) -> tuple[ProcedureResult, set[int]]:
    now, kept = store.now(), plan.drafts
    units = [_writes(store, draft, vectors.get(draft.after.content), now) for draft in kept]
    units += [_put_away(store, one, now) for one in plan.gone]
    new = [draft.after.id or "" for draft in kept if draft.before is None]
    again = [one for one in kept if one.before is not None and one.before.archive_reason == REJECTED]
    freed = [one for one in kept if one.before is not None and one.before.archived_at and not one.after.archived_at]
    result = ProcedureResult(
        episodes=plan.attempts,
        proposed=len(new) + len(again),
        updated=len(kept) - len(new) - len(again),
        brought_into_force=len(freed),
        retired=len(plan.gone),
        new_memory_ids=new,
    )
    return result, commit_each(store, scope, units)


def _writes(store: AgentMemoryStore, draft: _Draft, vector: Vector | None, now: str) -> list[Write]:
    after, before = draft.after, draft.before
    linked = sorted(draft.members)[:_MOST_LINKED]
    if before is None:
        row = {"id": after.id}
        counts = {
            "tried": draft.way.tried,
            "succeeded": draft.way.succeeded,
            "uses": 0,
            "uses_judged": 0,
            "uses_succeeded": 0,
        }
        event = measurement(row, {**counts, "override_count": 0}, confidence=after.confidence, now=now)
        return [after.model_copy(update={"embedding": vector, "supporting_memory_ids": linked}), event]
    row = store.reader.rows([after.id or ""])[0]
    counts = _counts(store, row, draft.way)
    writes: list[Write] = []
    if (event_of := revision(before, after)) is not None:
        writes.append(with_vector(event_of, vector if draft.has_new_text else None))
    writes.append(measurement(row, counts, confidence=after.confidence, now=now))
    already = set(before.supporting_memory_ids)  # type: ignore[attr-defined]
    if added := [one for one in linked if one not in already][: max(0, _MOST_LINKED - len(already))]:
        writes.append(MemoryDerived(id=after.id or "", source_ids=added, created_at=now))
    return [*writes, *unlinked(after.id or "", sorted(already - draft.members))]


def _put_away(store: AgentMemoryStore, known: _Known, now: str) -> list[Write]:
    """Put away what does not convince; say of a proposal whose evidence is gone that it no longer holds."""
    before = store.read_memories([known.row["id"]])[0]
    changes: dict[str, Any] = {"invalid_at": now, "invalidation_reason": NO_EVIDENCE_LEFT}
    if known.reason is None:
        changes = {"archived_at": now, "archive_reason": UNCONVINCING}
    event = revision(before, before.model_copy(update={**changes, "updated_at": now}))
    return [event] if event is not None else []
