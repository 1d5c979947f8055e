"""Procedures from repeated solutions: the steps that led to success in three builds are proposed as a skill (seeds 1, 2, 3).

A proposal is an archived memory whose reason says so: it is stored and can be viewed, but is never recalled. One event
takes it out of the archive and into force, and one event reverses that. A procedure in force keeps its approved trigger
and steps as long as all its evidence supports them (`memgraph.lifecycle.evidence.status`); its rates and errors are
updated. What somebody has hidden or deleted is left alone, and never made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from math import isclose
from typing import Any, NamedTuple

from memgraph.index.columns import TRUST
from memgraph.lifecycle.evidence.evidence import (
    LEAST_BUILDS,
    Deletions,
    Scope,
    TimeIsUp,
    confidence_of,
    is_true,
    never,
    read_scope,
    revision,
    strictness,
    unlinked,
)
from memgraph.lifecycle.evidence.incremental_run import IncrementalRun
from memgraph.lifecycle.evidence.quotes import quoting
from memgraph.lifecycle.evidence.status import (
    Learned,
    before_it_lapsed,
    deleted_in,
    lapsed,
    lapses,
    stricter,
    withdrawn,
)
from memgraph.lifecycle.procedures.procedure_mining import Way, attempt_of, builds_of, ways
from memgraph.lifecycle.procedures.procedure_text import skill_of, text_of
from memgraph.lifecycle.run.runner import Plan, View, commits_of
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import MemoryDerived
from memgraph.model.events.records import FADED, LEARNING, ProceduresLearned
from memgraph.model.ids import source_id
from memgraph.model.memory import AgentMemory, ProceduralMemory, StoredMemory, id_of
from memgraph.model.results.learning import LAPSED, LAPSED_PROPOSAL, PROPOSED, REJECTED, UNCONVINCING, ProcedureResult
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.store.outcomes import measurement, usage_counts, usage_factor

SOURCE = "procedures"
"""The `source` of procedures learned here."""
LEAST_CONFIDENCE = 0.3
"""A procedure below this confidence that was never used is archived (seed 1)."""
MOST_OVERRIDES = 3
"""A procedure that was overridden this often and never used is archived."""
LATER_SUCCESSES = 2
"""Builds after a proposal in which it must work before evidence may bring it into force."""
_MOST_LINKED = 200
_TYPES = ("episodic", "procedural")
_IN_FORCE: dict[str, Any] = {"archived_at": None, "archive_reason": None, "archive_summary": None}
_LISTS = ("prerequisites", "exit_criteria", "tags", "agents_involved")
_OF_THE_EVIDENCE = (
    "evidence_build_ids",
    "source_event_ids",
    "confidence",
    "occurred_at",
    "common_errors",
    "privacy_tier",
    "trust_class",
    "domain",
)


class _Draft(NamedTuple):
    """The planned state of one procedure.

    `before` is None for a new one, `way` is None for one without sufficient evidence, `quoted` is set where it quotes
    its sources.
    """

    way: Way | None
    after: AgentMemory
    before: StoredMemory | None
    members: frozenset[str]
    quoted: frozenset[str] | None = None

    @property
    def has_new_text(self) -> bool:
        return self.before is None or self.before.content != self.after.content

    def comes_to(self, *reasons: str | None) -> bool:
        """Return whether it becomes archived for one of these reasons; None: comes into force."""
        before = self.before.archive_reason if self.before else ""
        return self.after.archive_reason in reasons and self.after.archive_reason != before


_Drafts = dict[str, _Draft]
"""The drafts by procedure id."""


def learn_procedures(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ProcedureResult:
    """Propose procedures for repeated solutions, and update the existing ones to their current evidence.

    Deterministic, without a model. Idempotent; after a kill the next run ends with the same result under the same
    clock.

    Parameters
    ----------
    is_time_up : callable, optional
        Called between projects: once it returns true, the rest waits for the next run.
    """
    return _RUN.run(store, is_time_up)


def _concluded(result: ProcedureResult, now: str, up_to_seq: int) -> ProceduresLearned:
    counts = {"episodes": result.episodes, "updated": result.updated, "retired": result.retired}
    return ProceduresLearned(applied_at=now, up_to_seq=up_to_seq, created=len(result.new_memory_ids), **counts)


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[ProcedureResult]:
    now = view.now
    rows = read_scope(view.reader, scope, _TYPES)
    episodes = {row["id"]: row for row in rows if row.get("source") != SOURCE and is_true(row, now)}
    attempts = [attempt for row in episodes.values() if (attempt := attempt_of(row)) is not None]
    learned = [row for row in rows if row["type"] == "procedural" and row.get("source") == SOURCE]
    known = _known(view, deletions, learned, {one.row["id"] for one in attempts if one.went_well}, now)
    found = ways(attempts, [sorted(one.members) for one in known if not one.was_put_away(now)])
    same = _same(found, known)
    if any(way.leads_there and place not in same for place, way in enumerate(found)):
        same = _same(found, [*known, *_deleted(deletions, scope)])
    by_build: dict[str, list[Row]] = {}
    for row in episodes.values():
        for build in builds_of(row):
            by_build.setdefault(build, []).append(row)
    drafts = [_draft(view, scope, way, same.get(place), by_build, now) for place, way in enumerate(found)]
    followed = {one.row["id"] for one in same.values()}
    left = [one for one in known if one.row["id"] not in followed and not one.was_put_away(now)]
    drafts += [_left(view, one, [episodes[member] for member in one.members & episodes.keys()], now) for one in left]
    by_id = {id_of(draft.after): draft for draft in drafts if draft is not None}
    procedural = [row for row in rows if row["type"] == "procedural"]
    _put_away(view, by_id, [row for row in procedural if _is_unconvincing(view, row, now)], now)
    units = [_writes(view, draft, now) for draft in by_id.values()]
    texts = [draft.after.content for draft in by_id.values() if draft.has_new_text]
    return Plan(_result(len(attempts), list(by_id.values())), commits_of(scope[1], units), texts)


def _result(attempts: int, drafts: Sequence[_Draft]) -> ProcedureResult:
    proposed = sum(draft.comes_to(PROPOSED) for draft in drafts)
    retired = sum(draft.comes_to(UNCONVINCING, LAPSED, LAPSED_PROPOSAL) for draft in drafts)
    return ProcedureResult(
        episodes=attempts,
        proposed=proposed,
        updated=len(drafts) - proposed - retired,
        brought_into_force=sum(draft.comes_to(None) for draft in drafts),
        retired=retired,
        new_memory_ids=[id_of(draft.after) for draft in drafts if draft.before is None],
    )


def _known(view: View, deletions: Deletions, learned: Sequence[Row], successes: set[str], now: str) -> list[Learned]:
    known = [Learned(row, frozenset(row.get("source_event_ids", ()))) for row in learned]
    members = frozenset[str]().union(*(one.members for one in known if not one.was_put_away(now)))
    lost = withdrawn(view.reader.index, deletions, members, successes)
    return [one._replace(lost=one.members & lost) for one in known]


def _deleted(deletions: Deletions, scope: Scope) -> list[Learned]:
    """Return the learned procedures that were deleted, by somebody or because they had faded."""
    return [
        Learned(row, frozenset(row.get("source_event_ids", ())), gone="collected" if reason == FADED else "deleted")
        for row, reason in deleted_in(deletions, scope, SOURCE)
    ]


def _same(found: Sequence[Way], known: Sequence[Learned]) -> dict[int, Learned]:
    """Match ways with the procedures that they continue: the one with the most episodes in common, each once."""
    pairs = []
    for place, way in enumerate(found):
        members = {attempt.row["id"] for attempt in way.supporters}
        for one in known:
            common = len(members & one.members)
            if common * 2 > min(len(members), len(one.members)):
                pairs.append((one.gone, -common, one.row["id"], place, one))
    taken: dict[int, Learned] = {}
    for _, _, memory_id, place, one in sorted(pairs, key=lambda pair: pair[:4]):
        if place not in taken and all(other.row["id"] != memory_id for other in taken.values()):
            taken[place] = one
    return taken


def _draft(
    view: View,
    scope: Scope,
    way: Way,
    known: Learned | None,
    by_build: Mapping[str, Sequence[Row]],
    now: str,
) -> _Draft | None:
    """Return the draft; None if nothing changes, or if somebody has hidden the procedure."""
    if known is not None and known.was_put_away(now):
        return None
    fresh = _fresh(way, known)
    fields, quoted = skill_of(way, by_build, scope, source=SOURCE)
    if known is not None:
        fields |= strictness([known.row, fields])
    if known is None or known.gone:
        return _new(view, scope, way, fields, quoted, now) if way.leads_there and fresh else None
    stays_away = known.reason == REJECTED and len(fresh) < LEAST_BUILDS and (known.lost or not known.is_wordless)
    if stays_away or (not way.leads_there and known.reason in (REJECTED, LAPSED, LAPSED_PROPOSAL)):
        return _left(view, known, [attempt.row for attempt in way.supporters], now)
    return _revised(view, known, way, fields, quoted, len(fresh), now)


def _new(view: View, scope: Scope, way: Way, fields: dict[str, Any], quoted: frozenset[str], now: str) -> _Draft:
    members = frozenset(fields["source_event_ids"])
    proposed = {"archived_at": now, "archive_reason": PROPOSED, "access_count": 0}
    return _Draft(way, ProceduralMemory(id=_id(view, scope, members), **fields, **proposed), None, members, quoted)


def _revised(
    view: View,
    known: Learned,
    way: Way,
    fields: dict[str, Any],
    quoted: frozenset[str],
    fresh: int,
    now: str,
) -> _Draft | None:
    """Return the draft of a procedure that continues; `fields` are those composed from its current evidence."""
    members = frozenset(fields["source_event_ids"])
    before = view.reader.read([known.row["id"]])[0]
    assert isinstance(before, ProceduralMemory)  # noqa: S101 (what was learned here is one)
    del fields["success_rate"]  # usage counts towards it
    if known.reason in (None, FADED) and _is_outside(fields) and not _is_outside(known.row):
        # what comes from outside is evidence for what was approved, but adds no words to it
        fields |= {"common_errors": before.common_errors, "trust_class": before.trust_class}
    fields = _text_fields(view, known, before, fields)
    if known.reason in (None, FADED) and not known.lost:
        # repetitions are merged into the procedure in force, so no episode records their builds
        builds = dict.fromkeys([*before.evidence_build_ids, *fields["evidence_build_ids"]])
        fields["evidence_build_ids"] = list(builds)[-MAX_ITEMS:]
        fields["confidence"] = confidence_of(max(len(way.builds), len(builds)))
    counts = _counts(view, known.row, way)
    borne_out = fields["confidence"] * usage_factor(counts)
    fields["confidence"] = before.confidence if isclose(borne_out, before.confidence) else borne_out
    fields |= _state(view, known, way, before, fields["steps"], fresh, now)
    if known.reason and not fields.get("archived_at", now):  # it comes into force, and has faded meanwhile
        relevance = view.config.forgetting_curve.confirmed(before.relevance_score)
        fields |= {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": now}
    is_told = all(getattr(before, name) == value for name, value in fields.items())
    is_linked = members == known.members and not quoting(
        view.reader, known.row["id"], quoted, evidence=members, now=now
    )
    if is_told and is_linked and usage_counts(view.reader, known.row) == counts:
        return None
    return _Draft(way, before.model_copy(update={**fields, "updated_at": now}), before, members, quoted)


def _fresh(way: Way, known: Learned | None) -> frozenset[str]:
    """Return the builds in which it worked that the procedure does not have yet."""
    if known is None:
        return way.builds
    joined = (attempt.builds for attempt in way.supporters if attempt.row["id"] not in known.members)
    return frozenset[str]().union(*joined) - set(known.row.get("evidence_build_ids", ()))


def _text_fields(view: View, known: Learned, before: ProceduralMemory, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a procedure: the approved one, or the one composed from current evidence (`fields`)."""
    approved: Row = {}
    if known.keeps_its_words:
        approved = known.row
    elif known.reason == LAPSED and not known.lost:  # the approved text is supported again
        approved = before_it_lapsed(view.reader, known.row["id"])
    if not approved:
        return fields | ({"entities": []} if known.lost else {})
    trigger, steps = approved.get("trigger_pattern"), list(approved.get("steps", ()))
    told = {name: fields[name] for name in _OF_THE_EVIDENCE} | {"trigger_pattern": trigger, "steps": steps}
    is_own = text_of(before.trigger_pattern or "", before.steps, before.common_errors) == before.content
    if known.reason == LAPSED:
        told |= {name: list(approved.get(name, ())) for name in _LISTS}
    elif not is_own or before.is_pinned:  # somebody has changed the text
        return told
    return told | {"content": text_of(trigger or "", steps, fields["common_errors"])}


def _state(
    view: View, known: Learned, way: Way, before: ProceduralMemory, steps: list[str], fresh: int, now: str
) -> dict[str, Any]:
    """Return the fields that change whether a procedure is in force."""
    waits = {"archived_at": now, "archive_reason": PROPOSED}
    if known.reason in (None, FADED) and steps != before.steps:  # those were approved
        return waits
    if known.reason == LAPSED_PROPOSAL or (known.reason == REJECTED and fresh >= LEAST_BUILDS):
        return waits
    if known.reason == LAPSED:
        return waits if known.lost else _IN_FORCE
    if known.reason == FADED and fresh:
        return _IN_FORCE
    is_own = not any(_is_outside(one.row) for one in way.supporters) and not _is_outside(known.row)
    if known.reason == PROPOSED and view.config.procedure_approval == "evidence" and way.leads_there and is_own:
        since = known.row["archived_at"]
        later = frozenset[str]().union(*(one.builds for one in way.supporters if one.row["created_at"] > since))
        earlier = frozenset[str]().union(*(one.builds for one in way.supporters if one.row["created_at"] <= since))
        if len(later - earlier) >= LATER_SUCCESSES:
            return _IN_FORCE
    return {}


def _is_outside(row: Mapping[str, Any]) -> bool:
    """Return whether a tool, an import or a web page said it: only the user may bring that into force."""
    return TRUST.index(row.get("trust_class", "agent")) > TRUST.index("agent")


def _left(view: View, known: Learned, rows: Sequence[Row], now: str) -> _Draft | None:
    """Return the draft of a procedure with too few remaining episodes: these `rows`."""
    is_lapsing = lapses(known, now)
    changes = {} if is_lapsing else stricter(known, rows)
    if not is_lapsing and not changes:
        return None
    before = view.reader.read([known.row["id"]])[0]
    after = lapsed(known, before, now) if is_lapsing else before.model_copy(update={**changes, "updated_at": now})
    quoted = frozenset[str]() if is_lapsing else None
    return _Draft(None, after, before, known.members - known.lost, quoted)


def _put_away(view: View, drafts: _Drafts, rows: Sequence[Row], now: str) -> None:
    """Plan to archive unconvincing procedures."""
    away = {"archived_at": now, "archive_reason": UNCONVINCING, "updated_at": now}
    for row in rows:
        draft = drafts.get(row["id"])
        if draft is None:
            before = view.reader.read([row["id"]])[0]
            members = frozenset(row.get("source_event_ids", ()))
            drafts[row["id"]] = _Draft(None, before.model_copy(update=away), before, members)
        elif not draft.after.archived_at:
            drafts[row["id"]] = draft._replace(after=draft.after.model_copy(update=away))


def _counts(view: View, row: Row, way: Way) -> dict[str, int]:
    return {**usage_counts(view.reader, row), "tried": way.tried, "succeeded": way.succeeded}


def _id(view: View, scope: Scope, members: frozenset[str]) -> str:
    key = "\x1f".join([scope[0] or "", scope[1] or "", *sorted(members)])
    ids = (source_id(f"procedure\x1f{key}", number) for number in count())
    return next(one for one in ids if view.reader.index.slot(one) < 0)


def _is_unconvincing(view: View, row: Row, now: str) -> bool:
    """Return whether a procedure is to be archived: never used, and overridden again and again or of low confidence (seed 1).

    Not if it is pinned, or if somebody wrote it down: it has no builds of evidence then.
    """
    stays = "archived_at" in row or row.get("is_pinned") or not is_true(row, now) or not row.get("evidence_build_ids")
    counts = {} if stays else usage_counts(view.reader, row)
    if stays or counts["uses"]:
        return False
    is_doubtful = row.get("source") == SOURCE and row.get("confidence", 1.0) < LEAST_CONFIDENCE
    return is_doubtful or counts["override_count"] >= MOST_OVERRIDES


def _writes(view: View, draft: _Draft, now: str) -> list[Write]:
    after, before, way = draft.after, draft.before, draft.way
    memory_id, linked = id_of(after), sorted(draft.members)[:_MOST_LINKED]
    if before is None:
        assert way is not None  # noqa: S101 (what is new follows a way)
        counts = {**usage_counts(view.reader, {"id": memory_id}), "tried": way.tried, "succeeded": way.succeeded}
        event = measurement({"id": memory_id}, counts, confidence=after.confidence, now=now)
        new = after.model_copy(update={"supporting_memory_ids": linked})
        return [new, event, *quoting(view.reader, memory_id, draft.quoted or (), evidence=linked, now=now)]
    writes: list[Write] = []
    if (event_of := revision(before, after)) is not None:
        writes.append(event_of)
    already = set(before.supporting_memory_ids)  # type: ignore[attr-defined]
    if way is not None:
        row = view.reader.rows([memory_id])[0]
        writes.append(measurement(row, _counts(view, row, way), confidence=after.confidence, now=now))
        if added := [one for one in linked if one not in already][: max(0, _MOST_LINKED - len(already))]:
            writes.append(MemoryDerived(id=memory_id, source_ids=added, created_at=now))
    writes.extend(unlinked(memory_id, sorted(already - draft.members)))
    if draft.quoted is not None:
        writes.extend(quoting(view.reader, memory_id, draft.quoted, evidence=draft.members, now=now))
    return writes


_RUN = IncrementalRun(LEARNING, _TYPES, _planned, ProcedureResult(), _concluded)
