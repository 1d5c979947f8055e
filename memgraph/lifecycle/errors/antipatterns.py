"""Anti-patterns from errors: what failed in three builds or more, whose fault that is, and what prevents it (seed 3).

Where compression tells of the same failures already, its generalisation is told what to avoid and what to do instead; only
errors that no generalisation covers become anti-patterns of their own, and one that is covered later is superseded by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from memgraph.lifecycle.errors.antipattern_text import approaches, caution_of
from memgraph.lifecycle.errors.error_classification import kind_of
from memgraph.lifecycle.errors.recurrence import Recurrence, growth, recurrences
from memgraph.lifecycle.errors.remedies import Trouble, error_text, remedy_of, troubles, what_of
from memgraph.lifecycle.evidence.deletions import Deletions
from memgraph.lifecycle.evidence.evidence import (
    LEAST_BUILDS,
    Scope,
    TimeIsUp,
    commit_each,
    in_order,
    is_true,
    may_tell,
    never,
    read_scope,
    revision,
    strictness,
    unlinked,
)
from memgraph.lifecycle.evidence.experience import NO_EVIDENCE_LEFT, evidence_of
from memgraph.lifecycle.evidence.experience import SOURCE as GENERALISED
from memgraph.lifecycle.evidence.incremental_run import Study, Vectors
from memgraph.lifecycle.evidence.quotes import quoting
from memgraph.lifecycle.evidence.status import Known, deleted_in, withdrawn
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.lifecycle import ERROR_ANALYSIS, FADED, ErrorsAnalysed
from memgraph.model.events.links import MemoryDerived, MemoryLinked
from memgraph.model.events.payload import Payload
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import AgentMemory, SemanticMemory
from memgraph.model.results.procedures import ErrorAnalysis, ErrorKind, RepeatedError
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.append import Write, with_vector

SOURCE = "error analysis"
"""The `source` of the anti-patterns that are made here."""
_TYPES = ("episodic", "semantic")
_MOST_LINKED = 200
_MOST_TOLD = 20
TAKEN_BACK_TEXT = (
    "An error that came up again and again: too few of the builds that it was seen in are left to tell it."
)
_WORDLESS: dict[str, Any] = {
    "content": TAKEN_BACK_TEXT,
    "pattern": None,
    "incorrect_approach": None,
    "correct_approach": None,
    "is_solved": None,
    "entities": [],
    "tags": ["anti-pattern"],
}


@dataclass(slots=True)
class _Plan:
    """What an analysis of one scope found, and what is to be written of it."""

    kinds: Counter[ErrorKind] = field(default_factory=Counter)
    repeated: list[RepeatedError] = field(default_factory=list)
    new: list[SemanticMemory] = field(default_factory=list)
    grown: dict[str, list[Recurrence]] = field(default_factory=dict)
    revised: list[tuple[AgentMemory, AgentMemory]] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    quoted: dict[str, list[str]] = field(default_factory=dict)
    superseded: list[tuple[str, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """What is to be embedded."""
        changed = [after.content for before, after in self.revised if before.content != after.content]
        grown = [growth[-1].fields["content"] for growth in self.grown.values() if growth]
        return sorted({*changed, *grown, *(memory.content for memory in self.new)})


def analyse_errors(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ErrorAnalysis:
    """Class the failures by whose fault they are, and make of repeated ones what to avoid and what to do instead.

    Deterministic, without a model; run twice or killed, it does as `learn_procedures` does.

    Parameters
    ----------
    is_time_up : callable, optional
        Asked between projects: once it says so, the rest waits for the next run.
    """
    result = _STUDY.run(store, is_time_up)
    return result.model_copy(update={"repeated": _most_frequent(result.repeated)})


def _concluded(result: ErrorAnalysis, now: str, up_to_seq: int) -> ErrorsAnalysed:
    names = ("internal", "external", "configuration", "created", "updated", "superseded")
    counts = {name: getattr(result, name) for name in names}
    return ErrorsAnalysed(applied_at=now, up_to_seq=up_to_seq, episodes=result.failures, **counts)


def _most_frequent(errors: Sequence[RepeatedError]) -> list[RepeatedError]:
    return sorted(errors, key=lambda error: (-error.builds, error.error))[:_MOST_TOLD]


def _written(store: AgentMemoryStore, scope: Scope, plan: _Plan, vectors: Vectors) -> tuple[ErrorAnalysis, set[int]]:
    result = ErrorAnalysis(
        failures=plan.kinds.total(),
        internal=plan.kinds["internal"],
        external=plan.kinds["external"],
        configuration=plan.kinds["configuration"],
        created=len(plan.new),
        updated=len(plan.revised),
        superseded=len(plan.superseded),
        repeated=_most_frequent(plan.repeated),
        new_memory_ids=[memory.id or "" for memory in plan.new],
    )
    return result, commit_each(store, scope, _units(store, plan, vectors))


def _planned(store: AgentMemoryStore, scope: Scope, deletions: Deletions) -> _Plan:
    now, plan = store.now(), _Plan()
    rows = read_scope(store.reader, scope, _TYPES)
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, now)])
    plan.kinds.update(kind_of(error_text(row)) for row in episodes if row.get("outcome") == "negative")
    met = _with_remedies(troubles(episodes), episodes)
    lessons = {what: row for row in episodes if row.get("outcome") == "positive" and (what := what_of(row))}
    by_id = {row["id"]: row for row in episodes}
    met_in: dict[str, list[int]] = {}
    for place, trouble in enumerate(met):
        for row in trouble.failed:
            met_in.setdefault(row["id"], []).append(place)
    told: dict[str, str] = {}
    generalisations = _generalisations(store, rows, now)
    sources = frozenset[str]().union(*(row.get("source_event_ids", ()) for row in generalisations))
    lost = withdrawn(store.reader.index, deletions, sources, by_id)
    for row in generalisations:
        members = [by_id[one] for one in row.get("source_event_ids", ()) if one in by_id]
        told |= dict.fromkeys((one["id"] for one in members), row["id"])
        here = {place for one in members for place in met_in.get(one["id"], ())}
        if members or not lost.isdisjoint(row.get("source_event_ids", ())):  # else what it tells of has only faded
            _enrich(store, plan, row, members, [met[place] for place in sorted(here)], lessons)
    known = _known(store, deletions, rows, by_id)
    _count_faded(met, known, episodes)
    repeated = [trouble for trouble in met if len(trouble.builds) >= LEAST_BUILDS]
    if any(trouble.fingerprint not in known for trouble in repeated):
        known = _deleted(deletions, scope) | known
    for trouble in repeated:
        _tell(store, plan, scope, trouble, known.get(trouble.fingerprint), told, lessons)
    still = {trouble.fingerprint for trouble in repeated}
    for fingerprint, one in known.items():
        if fingerprint not in still:
            _take_back(store, plan, one, now)
    return plan


def _known(
    store: AgentMemoryStore, deletions: Deletions, rows: Sequence[Row], true_ids: Mapping[str, Row]
) -> dict[str, Known]:
    """Return the anti-patterns that there are, by the error that they tell of."""
    own = [row for row in rows if row.get("source") == SOURCE and "failure_fingerprint" in row]
    known = [Known(row, frozenset(row.get("source_event_ids", ()))) for row in own]
    members = frozenset[str]().union(*(one.members for one in known))
    lost = withdrawn(store.reader.index, deletions, members, true_ids)
    return {
        one.row["failure_fingerprint"]: one._replace(
            lost=one.members & lost, faded=one.members - true_ids.keys() - lost
        )
        for one in known
    }


def _deleted(deletions: Deletions, scope: Scope) -> dict[str, Known]:
    """Return the anti-patterns that were deleted: by somebody, so that they are never made again, or because they had faded."""
    gone = deleted_in(deletions, scope, SOURCE)
    return {
        row["failure_fingerprint"]: Known(row, frozenset(), gone="collected" if reason == FADED else "deleted")
        for row, reason in sorted(gone, key=lambda one: one.reason != FADED)  # what somebody deleted counts
    }


def _count_faded(met: Sequence[Trouble], known: Mapping[str, Known], episodes: Sequence[Row]) -> None:
    """Let the builds of episodes that were deleted because they had faded count on."""
    there = frozenset[str]().union(*map(evidence_of, episodes))
    for trouble in met:
        one = known.get(trouble.fingerprint)
        if one is not None and one.faded and not one.lost:
            trouble.faded = frozenset(one.row.get("evidence_build_ids", ())) - there


def _with_remedies(met: Sequence[Trouble], episodes: Sequence[Row]) -> list[Trouble]:
    """Return the troubles, with what helped later in the same build where that is about the same thing."""
    helped: dict[tuple[str, str], list[Row]] = {}
    for row in episodes:
        if row.get("outcome") == "positive" and row.get("title") and remedy_of(row):
            for build in evidence_of(row):
                helped.setdefault((build, canonical_name(row["title"])), []).append(row)
    for trouble in met:
        known = {row["id"] for row in trouble.mended}
        for row in trouble.failed:
            for build in sorted(evidence_of(row)):
                later = helped.get((build, canonical_name(row.get("title") or "")), ())
                new = [one for one in later if one["id"] not in known and one.get("seq", 0) > row.get("seq", 0)]
                trouble.mended.extend(new)
                known.update(one["id"] for one in new)
    return list(met)


def _generalisations(store: AgentMemoryStore, rows: Sequence[Row], now: str) -> list[Row]:
    """Return what compression makes of failures, as far as it is in force."""
    replaced, index = store.reader.superseded(), store.reader.index
    return [
        row
        for row in rows
        if row.get("source") == GENERALISED and row.get("outcome") == "negative" and is_true(row, now)
        if "archived_at" not in row and not replaced[index.slot(row["id"])]
    ]


def _enrich(
    store: AgentMemoryStore,
    plan: _Plan,
    row: Row,
    members: Sequence[Row],
    met: Sequence[Trouble],
    lessons: Mapping[str, Row],
) -> None:
    """Plan to tell a generalisation what to avoid and what to do instead; `met` are the errors of its members."""
    if row.get("is_pinned"):
        return
    said: dict[str, str | None] = {"incorrect_approach": None, "correct_approach": None}
    quoted: list[str] = []
    if members:
        mended = [one for trouble in met for one in trouble.mended if may_tell(one, [row])]
        said, quoted = approaches(members, mended, lessons, [row])
        kinds = Counter(kind_of(error_text(member)) for member in members)
        said["category"] = f"{max(kinds, key=lambda kind: (kinds[kind], kind))} error"
    if any(row.get(name) != value for name, value in said.items()) or _quoting(store, row["id"], quoted):
        plan.quoted[row["id"]] = quoted
        before = store.read_memories([row["id"]])[0]
        plan.revised.append((before, before.model_copy(update={**said, "updated_at": store.now()})))


def _tell(
    store: AgentMemoryStore,
    plan: _Plan,
    scope: Scope,
    trouble: Trouble,
    known: Known | None,
    told: Mapping[str, str],
    lessons: Mapping[str, Row],
) -> None:
    """Plan what is to be told of a repeated error: by the generalisation that covers it, else by an anti-pattern."""
    fields, quoted = caution_of(trouble, scope, lessons, source=SOURCE)
    if known:
        fields |= strictness([known.row, fields])
    covering = Counter(told[row["id"]] for row in trouble.failed if row["id"] in told)
    by, many = max(covering.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    is_covered = many * 2 > len(trouble.failed) + len(trouble.mended)
    is_there = known is not None and not known.gone and not _is_put_away(known.row, store.now())
    told_by: str | None = None
    if is_covered:
        told_by = by
        if known and is_there and store.reader.record("SUPERSEDES", (by, known.row["id"])) is None:
            plan.superseded.append((by, known.row["id"]))
    elif known is None or is_there or (known.gone == "collected" and _fresh(trouble, known)):
        told_by = known.row["id"] if known and is_there else _id(store, scope, trouble.fingerprint)
        plan.quoted[told_by] = quoted
        if known is not None and is_there:
            _draft(store, plan, trouble, known, fields, told_by)
        else:
            first, *later = recurrences(store.reader, trouble, scope, lessons, source=SOURCE, most=_MOST_LINKED)
            plan.new.append(SemanticMemory(id=told_by, **first.fields, supporting_memory_ids=first.members))
            plan.grown[told_by] = later
    counts = {"kind": trouble.kind, "builds": len(trouble.builds)}
    remedy = fields["correct_approach"]
    plan.repeated.append(RepeatedError(error=trouble.name, remedy=remedy, memory_id=told_by, **counts))


def _is_put_away(row: Row, now: str) -> bool:
    """Whether somebody has put an anti-pattern away, so that it is left alone."""
    was_taken_back = row.get("invalidation_reason") == NO_EVIDENCE_LEFT and not row.get("is_suppressed")
    is_out = not is_true(row, now) and not was_taken_back
    return is_out or ("archived_at" in row and row.get("archive_reason") != FADED)


def _fresh(trouble: Trouble, known: Known) -> frozenset[str]:
    return trouble.builds - set(known.row.get("evidence_build_ids", ()))


def _draft(
    store: AgentMemoryStore,
    plan: _Plan,
    trouble: Trouble,
    known: Known,
    fields: dict[str, Any],
    memory_id: str,
) -> None:
    ids = [row["id"] for row in (*trouble.failed, *trouble.mended)][:_MOST_LINKED]
    members = list(dict.fromkeys(ids))
    fresh = _fresh(trouble, known)
    if trouble.faded and not fresh:
        return  # it tells of what can be looked at no more
    before = store.read_memories([memory_id])[0]
    if trouble.faded:
        known_builds = dict.fromkeys([*before.evidence_build_ids, *fields["evidence_build_ids"]])
        fields["evidence_build_ids"] = list(known_builds)[-MAX_ITEMS:]
    if before.is_pinned:
        fields.pop("content")
    if before.invalid_at is not None:
        fields |= {"invalid_at": None, "invalidation_reason": None}
    if fresh and before.archived_at is not None:
        fields |= {"archived_at": None, "archive_reason": None, "archive_summary": None}
    if known.lost:
        fields["entities"] = []
    linked = set(before.supporting_memory_ids)  # type: ignore[attr-defined]
    is_told = all(getattr(before, name) == value for name, value in fields.items())
    if not is_told or linked != set(members) or _quoting(store, memory_id, plan.quoted[memory_id]):
        if fresh:
            relevance = store.config.forgetting_curve.confirmed(before.relevance_score)
            fields |= {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": store.now()}
        plan.members[memory_id] = members
        plan.revised.append((before, before.model_copy(update={**fields, "updated_at": store.now()})))


def _id(store: AgentMemoryStore, scope: Scope, fingerprint: str) -> str:
    key = "\x1f".join([scope[0] or "", scope[1] or "", fingerprint])
    ids = (source_id(f"anti-pattern\x1f{key}", number) for number in count())
    return next(one for one in ids if store.reader.index.slot(one) < 0)


def _take_back(store: AgentMemoryStore, plan: _Plan, known: Known, now: str) -> None:
    """Plan to say of an anti-pattern whose evidence was forgotten, deleted or proved untrue that it no longer holds, without its words."""
    row = known.row
    is_in_force = not known.gone and is_true(row, now) and "archived_at" not in row and not row.get("is_pinned")
    if is_in_force and (known.lost or not known.faded):
        before = store.read_memories([row["id"]])[0]
        gone = {**_WORDLESS, "invalid_at": now, "invalidation_reason": NO_EVIDENCE_LEFT, "updated_at": now}
        linked = before.supporting_memory_ids  # type: ignore[attr-defined]
        plan.members[row["id"]] = [one for one in linked if one not in known.lost]
        plan.quoted[row["id"]] = []
        plan.revised.append((before, before.model_copy(update=gone)))


def _units(store: AgentMemoryStore, plan: _Plan, vectors: Vectors) -> list[list[Write]]:
    now, units = store.now(), list[list[Write]]()
    for memory in plan.new:
        later = plan.grown[memory.id or ""]
        members = later[-1].members if later else memory.supporting_memory_ids
        quotes = _quoting(store, memory.id or "", plan.quoted[memory.id or ""], evidence=members)
        first = memory.model_copy(update={"embedding": vectors[memory.content]})
        units.append([first, *growth(memory, later, vectors, now), *quotes])
    for before, after in plan.revised:
        memory_id = before.id or ""
        new_text = vectors[after.content] if before.content != after.content else None
        unit: list[Write] = []
        if (event := revision(before, after)) is not None:
            unit.append(with_vector(event, new_text))
        if memory_id in plan.members:
            linked, wanted = set(before.supporting_memory_ids), plan.members[memory_id]  # type: ignore[attr-defined]
            if added := [one for one in wanted if one not in linked]:
                unit.append(MemoryDerived(id=memory_id, source_ids=added, created_at=now))
            unit.extend(unlinked(memory_id, sorted(linked - set(wanted))))
        if memory_id in plan.quoted:
            evidence = plan.members.get(memory_id, before.supporting_memory_ids)  # type: ignore[attr-defined]
            unit.extend(_quoting(store, memory_id, plan.quoted[memory_id], evidence=evidence))
        units.append(unit)
    reason = "a generalisation tells of it"
    for by, old in plan.superseded:
        link = MemoryLinked(source_id=by, relation="SUPERSEDES", target_id=old, reason=reason, created_at=now)
        units.append([link])
    return [unit for unit in units if unit]


def _quoting(
    store: AgentMemoryStore, memory_id: str, quoted: Sequence[str], *, evidence: Sequence[str] | None = None
) -> list[Payload]:
    """Return what is to be written so that it is linked with what it quotes; with its evidence it is, by default as it is now."""
    known = store.reader.index.supporting_ids(memory_id) if evidence is None else evidence
    return quoting(store.reader, memory_id, quoted, evidence=known, now=store.now())


_STUDY: Study[_Plan, ErrorAnalysis] = Study(
    ERROR_ANALYSIS, _TYPES, _planned, _written, _concluded, nothing=ErrorAnalysis()
)
