"""Anti-patterns from errors: failures in at least three builds, their class, and what prevents them (seed 3).

Where a generalisation from compression covers the same failures, it is extended by what to avoid and what to do
instead. Only errors that no generalisation covers become anti-patterns of their own; one that is covered later is
superseded by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from memgraph.lifecycle.errors.antipattern_text import approaches, caution_of, is_lesson
from memgraph.lifecycle.errors.error_classification import kind_of
from memgraph.lifecycle.errors.recurrence import Recurrence, growth, recurrences
from memgraph.lifecycle.errors.remedies import Trouble, error_text, remedy_of, troubles, what_of
from memgraph.lifecycle.evidence.deletions import Deletions
from memgraph.lifecycle.evidence.evidence import (
    LEAST_BUILDS,
    Scope,
    TimeIsUp,
    in_order,
    is_true,
    may_quote,
    never,
    read_scope,
    revision,
    strictness,
    unlinked,
)
from memgraph.lifecycle.evidence.experience import SOURCE as GENERALISED
from memgraph.lifecycle.evidence.experience import evidence_of
from memgraph.lifecycle.evidence.incremental_run import IncrementalRun
from memgraph.lifecycle.evidence.quotes import quoting
from memgraph.lifecycle.evidence.retirement import no_longer_valid, retired, was_retired
from memgraph.lifecycle.evidence.runs import is_of_a_tool, one_build_a_run, passed_after
from memgraph.lifecycle.evidence.status import Learned, deleted_in, withdrawn
from memgraph.lifecycle.run.runner import Plan, View, commits_of
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import MemoryDerived, MemoryLinked
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import ERROR_ANALYSIS, FADED, ErrorsAnalysed
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import SemanticMemory, StoredMemory, id_of
from memgraph.model.results.learning import ErrorAnalysis, ErrorKind, RepeatedError
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write

SOURCE = "error analysis"
"""The `source` of these anti-patterns."""
_TYPES = ("episodic", "semantic")
_MOST_LINKED = 200
_MOST_TOLD = 20
RETIRED_TEXT = "An error that came up again and again: too few of the builds that it was seen in are left to tell it."


@dataclass(slots=True)
class _Findings:
    """The result of analysing one scope, and what is to be written."""

    kinds: Counter[ErrorKind] = field(default_factory=Counter)
    repeated: list[RepeatedError] = field(default_factory=list)
    new: list[SemanticMemory] = field(default_factory=list)
    grown: dict[str, list[Recurrence]] = field(default_factory=dict)
    revised: list[tuple[StoredMemory, StoredMemory]] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    quoted: dict[str, list[str]] = field(default_factory=dict)
    superseded: list[tuple[str, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        changed = [after.content for before, after in self.revised if before.content != after.content]
        grown = [growth[-1].fields["content"] for growth in self.grown.values() if growth]
        return sorted({*changed, *grown, *(memory.content for memory in self.new)})


def analyse_errors(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ErrorAnalysis:
    """Classify failures, and turn repeated ones into anti-patterns: what to avoid and what to do instead.

    Deterministic, without a model; idempotent and safe to interrupt, like `learn_procedures`.

    Parameters
    ----------
    is_time_up : callable, optional
        Called between projects: once it returns true, the rest waits for the next run.
    """
    result = _RUN.run(store, is_time_up)
    return result.model_copy(update={"repeated": _most_frequent(result.repeated)})


def _concluded(result: ErrorAnalysis, now: str, up_to_seq: int) -> ErrorsAnalysed:
    names = ("internal", "external", "configuration", "created", "updated", "superseded")
    counts = {name: getattr(result, name) for name in names}
    return ErrorsAnalysed(applied_at=now, up_to_seq=up_to_seq, episodes=result.failures, **counts)


def _most_frequent(errors: Sequence[RepeatedError]) -> list[RepeatedError]:
    return sorted(errors, key=lambda error: (-error.builds, error.error))[:_MOST_TOLD]


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[ErrorAnalysis]:
    now, found = view.now, _Findings()
    rows = one_build_a_run(view.reader, read_scope(view.reader, scope, _TYPES))
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, now)])
    found.kinds.update(kind_of(error_text(row)) for row in episodes if row.get("outcome") == "negative")
    met = _with_remedies(troubles(episodes), episodes)
    _note_passed(view, scope, met)
    lessons = {what: row for row in episodes if row.get("outcome") == "positive" and (what := what_of(row))}
    by_id = {row["id"]: row for row in episodes}
    met_in: dict[str, list[int]] = {}
    for place, trouble in enumerate(met):
        for row in trouble.failed:
            met_in.setdefault(row["id"], []).append(place)
    covered_by: dict[str, str] = {}
    generalisations = _generalisations(view, rows, now)
    sources = frozenset[str]().union(*(row.get("source_event_ids", ()) for row in generalisations))
    lost = withdrawn(view.reader.index, deletions, sources, by_id)
    for row in generalisations:
        members = [by_id[one] for one in row.get("source_event_ids", ()) if one in by_id]
        covered_by |= dict.fromkeys((one["id"] for one in members), row["id"])
        here = {place for one in members for place in met_in.get(one["id"], ())}
        if members or not lost.isdisjoint(row.get("source_event_ids", ())):  # otherwise its evidence has only faded
            _enrich(view, found, row, members, [met[place] for place in sorted(here)], lessons)
    known = _known(view, deletions, rows, by_id)
    _count_faded(met, known, episodes)
    repeated = [trouble for trouble in met if len(trouble.builds) >= LEAST_BUILDS and is_lesson(trouble)]
    if any(trouble.fingerprint not in known for trouble in repeated):
        known = _deleted(deletions, scope) | known
    for trouble in repeated:
        _plan_for(view, found, scope, trouble, known.get(trouble.fingerprint), covered_by, lessons)
    still = {trouble.fingerprint for trouble in repeated}
    for fingerprint, one in known.items():
        if fingerprint not in still:
            _retire(view, found, one, now)
    result = ErrorAnalysis(
        failures=found.kinds.total(),
        internal=found.kinds["internal"],
        external=found.kinds["external"],
        configuration=found.kinds["configuration"],
        created=len(found.new),
        updated=len(found.revised),
        superseded=len(found.superseded),
        repeated=_most_frequent(found.repeated),
        new_memory_ids=[id_of(memory) for memory in found.new],
    )
    return Plan(result, commits_of(scope[1], _units(view, found)), found.texts)


def _known(view: View, deletions: Deletions, rows: Sequence[Row], true_ids: Mapping[str, Row]) -> dict[str, Learned]:
    """Return the existing anti-patterns by the error that they describe."""
    own = [row for row in rows if row.get("source") == SOURCE and "failure_fingerprint" in row]
    known = [Learned(row, frozenset(row.get("source_event_ids", ()))) for row in own]
    members = frozenset[str]().union(*(one.members for one in known))
    lost = withdrawn(view.reader.index, deletions, members, true_ids)
    return {
        one.row["failure_fingerprint"]: one._replace(
            lost=one.members & lost, faded=one.members - true_ids.keys() - lost
        )
        for one in known
    }


def _deleted(deletions: Deletions, scope: Scope) -> dict[str, Learned]:
    """Return the deleted anti-patterns: deleted by somebody, so never made again, or because they had faded."""
    gone = deleted_in(deletions, scope, SOURCE)
    return {
        row["failure_fingerprint"]: Learned(row, frozenset(), gone="collected" if reason == FADED else "deleted")
        for row, reason in sorted(gone, key=lambda one: one.reason != FADED)  # deletions by somebody take precedence
    }


def _count_faded(met: Sequence[Trouble], known: Mapping[str, Learned], episodes: Sequence[Row]) -> None:
    """Keep counting the builds of episodes that were deleted because they had faded."""
    there = frozenset[str]().union(*map(evidence_of, episodes))
    for trouble in met:
        one = known.get(trouble.fingerprint)
        if one is not None and one.faded and not one.lost:
            trouble.faded = frozenset(one.row.get("evidence_build_ids", ())) - there


def _with_remedies(met: Sequence[Trouble], episodes: Sequence[Row]) -> list[Trouble]:
    """Add to the errors what helped later in the same build, where it is about the same thing."""
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


def _note_passed(view: View, scope: Scope, met: Sequence[Trouble]) -> None:
    """Note for the repeated errors when their builds ended, and for those that only tools reported when later runs passed."""
    repeated = [trouble for trouble in met if len(trouble.builds) >= LEAST_BUILDS]
    builds = view.reader.builds(scope[0]) if repeated else []
    ends = {row["name"]: row.get("completed_at", "") for row in builds}
    for trouble in repeated:
        trouble.ends = ends
        if trouble.failed and all(map(is_of_a_tool, trouble.failed)):
            trouble.passed = passed_after(builds, trouble.failed, trouble.met_at)


def _generalisations(view: View, rows: Sequence[Row], now: str) -> list[Row]:
    """Return the generalisations of failures that are in force."""
    replaced, index = view.reader.superseded(), view.reader.index
    return [
        row
        for row in rows
        if row.get("source") == GENERALISED and row.get("outcome") == "negative" and is_true(row, now)
        if "archived_at" not in row and not replaced[index.slot(row["id"])]
    ]


def _enrich(
    view: View,
    found: _Findings,
    row: Row,
    members: Sequence[Row],
    met: Sequence[Trouble],
    lessons: Mapping[str, Row],
) -> None:
    """Plan to extend a generalisation by what to avoid and what to do instead; `met` are the errors of its members."""
    if row.get("is_pinned"):
        return
    said: dict[str, str | None] = {"incorrect_approach": None, "correct_approach": None}
    quoted: list[str] = []
    if members:
        mended = [one for trouble in met for one in trouble.mended if may_quote(one, [row])]
        said, quoted = approaches(members, mended, lessons, [row])
        kinds = Counter(kind_of(error_text(member)) for member in members)
        said["category"] = f"{max(kinds, key=lambda kind: (kinds[kind], kind))} error"
    if any(row.get(name) != value for name, value in said.items()) or _quoting(view, row["id"], quoted):
        found.quoted[row["id"]] = quoted
        before = view.reader.read([row["id"]])[0]
        found.revised.append((before, before.model_copy(update={**said, "updated_at": view.now})))


def _plan_for(
    view: View,
    found: _Findings,
    scope: Scope,
    trouble: Trouble,
    known: Learned | None,
    covered_by: Mapping[str, str],
    lessons: Mapping[str, Row],
) -> None:
    """Plan how a repeated error is described: by the generalisation that covers it, else by an anti-pattern."""
    fields, quoted = caution_of(trouble, scope, lessons, source=SOURCE)
    if known:
        fields |= strictness([known.row, fields])
    covering = Counter(covered_by[row["id"]] for row in trouble.failed if row["id"] in covered_by)
    by, many = max(covering.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    is_covered = many * 2 > len(trouble.failed) + len(trouble.mended)
    is_there = known is not None and not known.gone and not _is_put_away(known.row, view.now)
    told_by: str | None = None
    if is_covered:
        told_by = by
        if known and is_there and view.reader.record("SUPERSEDES", (by, known.row["id"])) is None:
            found.superseded.append((by, known.row["id"]))
    elif known is None or is_there or (known.gone == "collected" and _fresh(trouble, known)):
        told_by = known.row["id"] if known and is_there else _id(view, scope, trouble.fingerprint)
        found.quoted[told_by] = quoted
        if known is not None and is_there:
            _draft(view, found, trouble, known, fields, told_by)
        else:
            first, *later = recurrences(view.reader, trouble, scope, lessons, source=SOURCE, most=_MOST_LINKED)
            found.new.append(SemanticMemory(id=told_by, **first.fields, supporting_memory_ids=first.members))
            found.grown[told_by] = later
    counts = {"kind": trouble.kind, "builds": len(trouble.builds)}
    remedy = fields["correct_approach"]
    found.repeated.append(RepeatedError(error=trouble.name, remedy=remedy, memory_id=told_by, **counts))


def _is_put_away(row: Row, now: str) -> bool:
    """Return whether somebody has hidden an anti-pattern, so that it must be left alone."""
    is_out = not is_true(row, now) and not was_retired(row)
    return is_out or ("archived_at" in row and row.get("archive_reason") != FADED)


def _fresh(trouble: Trouble, known: Learned) -> frozenset[str]:
    return trouble.builds - set(known.row.get("evidence_build_ids", ()))


def _draft(
    view: View,
    found: _Findings,
    trouble: Trouble,
    known: Learned,
    fields: dict[str, Any],
    memory_id: str,
) -> None:
    ids = [row["id"] for row in (*trouble.failed, *trouble.mended)][:_MOST_LINKED]
    members = list(dict.fromkeys(ids))
    fresh = _fresh(trouble, known)
    if trouble.faded and not fresh:
        return  # none of its evidence can be read any more
    before = view.reader.read([memory_id])[0]
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
    if not is_told or linked != set(members) or _quoting(view, memory_id, found.quoted[memory_id]):
        if fresh:
            relevance = view.config.forgetting_curve.confirmed(before.relevance_score)
            fields |= {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": view.now}
        found.members[memory_id] = members
        found.revised.append((before, before.model_copy(update={**fields, "updated_at": view.now})))


def _id(view: View, scope: Scope, fingerprint: str) -> str:
    key = "\x1f".join([scope[0] or "", scope[1] or "", fingerprint])
    ids = (source_id(f"anti-pattern\x1f{key}", number) for number in count())
    return next(one for one in ids if view.reader.index.slot(one) < 0)


def _retire(view: View, found: _Findings, known: Learned, now: str) -> None:
    """Plan to retire, without its words, an anti-pattern whose evidence was forgotten, deleted or invalidated."""
    row = known.row
    is_in_force = not known.gone and is_true(row, now) and "archived_at" not in row and not row.get("is_pinned")
    if is_in_force and (known.lost or not known.faded):
        before = view.reader.read([row["id"]])[0]
        gone = retired(before, RETIRED_TEXT, no_longer_valid(now), now=now, tags=["anti-pattern"])
        linked = before.supporting_memory_ids  # type: ignore[attr-defined]
        found.members[row["id"]] = [one for one in linked if one not in known.lost]
        found.quoted[row["id"]] = []
        found.revised.append((before, gone))


def _units(view: View, found: _Findings) -> list[list[Write]]:
    now, units = view.now, list[list[Write]]()
    for memory in found.new:
        memory_id = id_of(memory)
        later = found.grown[memory_id]
        members = later[-1].members if later else memory.supporting_memory_ids
        quotes = _quoting(view, memory_id, found.quoted[memory_id], evidence=members)
        units.append([memory, *growth(memory, later, now), *quotes])
    for before, after in found.revised:
        memory_id = before.id
        unit: list[Write] = []
        if (event := revision(before, after)) is not None:
            unit.append(event)
        if memory_id in found.members:
            linked, wanted = set(before.supporting_memory_ids), found.members[memory_id]  # type: ignore[attr-defined]
            if added := [one for one in wanted if one not in linked]:
                unit.append(MemoryDerived(id=memory_id, source_ids=added, created_at=now))
            unit.extend(unlinked(memory_id, sorted(linked - set(wanted))))
        if memory_id in found.quoted:
            evidence = found.members.get(memory_id, before.supporting_memory_ids)  # type: ignore[attr-defined]
            unit.extend(_quoting(view, memory_id, found.quoted[memory_id], evidence=evidence))
        units.append(unit)
    reason = "a generalisation tells of it"
    for by, old in found.superseded:
        link = MemoryLinked(source_id=by, relation="SUPERSEDES", target_id=old, reason=reason, created_at=now)
        units.append([link])
    return [unit for unit in units if unit]


def _quoting(
    view: View, memory_id: str, quoted: Sequence[str], *, evidence: Sequence[str] | None = None
) -> list[Payload]:
    """Return the events that link it with what it quotes; its evidence is, by default, what it has now."""
    known = view.reader.index.supporting_ids(memory_id) if evidence is None else evidence
    return quoting(view.reader, memory_id, quoted, evidence=known, now=view.now)


_RUN = IncrementalRun(ERROR_ANALYSIS, _TYPES, _planned, _concluded, nothing=ErrorAnalysis())
