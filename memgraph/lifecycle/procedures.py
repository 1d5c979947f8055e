"""Procedures from repeated solutions: the steps that led to success in three builds are proposed as a skill (seeds 1, 2, 3).

A proposal is an archived memory whose reason says so: it is stored and can be viewed, but is never recalled. One event
takes it out of the archive and into force, and one event reverses that. A procedure in force keeps its approved trigger
and steps as long as all its evidence supports them; its rates and errors are updated. It never repeats statements found
only in withdrawn episodes: it is composed again from the remaining ones, and if these are too few it *lapses*, archived
without its words. If its episodes return, so does its former text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.fold.fold import last_known
from memgraph.index.columns import TRUST
from memgraph.lifecycle.episodes import (
    LEAST_BUILDS,
    Deletions,
    IncrementalRun,
    Scope,
    confidence_of,
    is_true,
    read_scope,
    strictness,
)
from memgraph.lifecycle.mining import Way, attempt_of, ways
from memgraph.lifecycle.reconcile import (
    IN_FORCE,
    Known,
    Lesson,
    agents_of,
    confirmed,
    deleted_of,
    fields_of,
    fresh,
    known_of,
    matched,
    reconcile,
    revision,
    shared,
)
from memgraph.lifecycle.run import Commit, Plan, TimeIsUp, View, carry_out, commits_of, never
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.records import FADED, LEARNING, ProceduresLearned
from memgraph.model.memory import AgentMemory, ProceduralMemory, StoredMemory, id_of
from memgraph.model.results.learning import (
    LAPSED,
    LAPSED_PROPOSAL,
    PROPOSED,
    REJECTED,
    UNCONVINCING,
    ProcedureResult,
    Proposal,
    ProposalState,
)
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.store.outcomes import measurement, usage_counts, usage_factor
from memgraph.store.query import Reader
from memgraph.text.cutting import whole_sentences

SOURCE = "procedures"
"""The `source` of procedures learned here."""
LAPSED_TEXT = "A procedure that was learned: too few of the builds that it worked in are left to tell it."
LEAST_CONFIDENCE = 0.3
"""A procedure below this confidence that was never used is archived (seed 1)."""
MOST_OVERRIDES = 3
"""A procedure that was overridden this often and never used is archived."""
LATER_SUCCESSES = 2
"""Builds after a proposal in which it must work before evidence may bring it into force."""
_TYPES = ("episodic", "procedural")
_LAPSES: dict[str | None, str] = {None: LAPSED, FADED: LAPSED, PROPOSED: LAPSED_PROPOSAL}
_OWN_REASONS = (PROPOSED, REJECTED, LAPSED, LAPSED_PROPOSAL)
_LISTS = ("prerequisites", "exit_criteria", "tags", "agents_involved")
_OF_THE_EVIDENCE = (
    "evidence_build_ids source_event_ids confidence occurred_at common_errors privacy_tier trust_class domain".split()
)
_KINDS = ("solution", "recovery")


def learn_procedures(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ProcedureResult:
    """Propose procedures for repeated solutions, and update the existing ones to their current evidence. Deterministic; idempotent."""
    return _RUN.run(store, is_time_up)


def _concluded(result: ProcedureResult, now: str, up_to_seq: int) -> ProceduresLearned:
    counts = {"episodes": result.episodes, "updated": result.updated, "retired": result.retired}
    return ProceduresLearned(applied_at=now, up_to_seq=up_to_seq, created=len(result.new_memory_ids), **counts)


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[ProcedureResult]:
    rows = read_scope(view.reader, scope, _TYPES)
    episodes = {row["id"]: row for row in rows if row.get("source") != SOURCE and is_true(row, view.now)}
    attempts = [attempt for row in episodes.values() if (attempt := attempt_of(row)) is not None]
    successes = {one.row["id"]: one.row for one in attempts if one.went_well}
    procedural = [row for row in rows if row["type"] == "procedural"]
    own = [row for row in procedural if row.get("source") == SOURCE]
    # what faded is no loss, and no reason to stay as it is: the steps are those of the episodes that are left
    known = [
        one._replace(faded=frozenset(), kept=frozenset())
        for one in known_of(view.reader, deletions, own, rows, successes)
    ]
    found = ways(attempts)
    same = _same(found, known)
    if any(way.leads_there and place not in same for place, way in enumerate(found)):
        same = _same(found, [*known, *deleted_of(deletions, scope, SOURCE)])
    doubtful = [row["id"] for row in procedural if _is_unconvincing(view, row)]
    away = {"archived_at": view.now, "archive_reason": UNCONVINCING}
    drawn = (_lesson(view, scope, way, same.get(place)) for place, way in enumerate(found))
    wanted = [
        replace(one, fields={**one.fields, **away})
        if one.of and one.of.id in doubtful and not one.fields.get("archived_at")
        else one
        for one in drawn
        if one
    ]
    followed = {lesson.of.id for lesson in wanted if lesson.of}
    left = [one for one in known if one.id not in followed]
    told = {one.id: [way.row for way in found[place].supporters] for place, one in same.items()}
    wanted += [lesson for one in left if (lesson := _stricter(one, told, episodes, view.now))]
    done = reconcile(
        view,
        wanted,
        left,
        lapse=lambda one: _lapse(one, view.now),
        lapsed_text=LAPSED_TEXT,
        tags=["procedure"],
        own=_OWN_REASONS,
    )
    changed = {*done.grown, *done.lapsed}
    unconvincing = [one for one in doubtful if one not in changed]
    for before in view.reader.read(unconvincing):
        done.units.append([*revision(before, away, view.now)])
    states = {one.of.id: (one.of.reason, one.fields) for one in wanted if one.of and one.of.id in done.grown}
    moved = [(before, fields.get("archive_reason")) for before, fields in states.values() if "archived_at" in fields]
    proposed = len(done.made) + sum(after == PROPOSED != before for before, after in moved)
    retired = len(unconvincing) + sum(after == UNCONVINCING for _, after in moved)
    retired += sum(one.id in done.lapsed and one.reason in _LAPSES for one in left)
    result = ProcedureResult(
        episodes=len(attempts),
        proposed=proposed,
        updated=len(done.made) + len(changed) + len(unconvincing) - proposed - retired,
        brought_into_force=sum(after is None for _, after in moved),
        retired=retired,
        new_memory_ids=done.made,
    )
    return Plan(result, commits_of(scope[1], done.units), done.texts)


def _same(found: Sequence[Way], known: Sequence[Known]) -> dict[int, Known]:
    """Match ways with the procedures that they continue."""
    same = matched([[attempt.row["id"] for attempt in way.supporters] for way in found], known)
    return {place: ones[0] for place, ones in enumerate(same) if ones}


def _lesson(view: View, scope: Scope, way: Way, known: Known | None) -> Lesson | None:
    """Return the procedure of a way; None if it is none, or if a known one is to stay as it is."""
    members = sorted(attempt.row["id"] for attempt in way.supporters)
    joined = [attempt.builds for attempt in way.supporters if known is None or attempt.row["id"] not in known.members]
    fields = skill_of(way, scope)
    key = "\x1f".join(["procedure", scope[0] or "", scope[1] or "", *members])
    lesson = Lesson(key, fields, members, frozenset[str]().union(*joined), known, kind=ProceduralMemory)
    worked = {"tried": way.tried, "succeeded": way.succeeded}

    def measured(memory: AgentMemory) -> list[Write]:
        of = {"id": id_of(memory)} if known is None or known.gone else known.row
        counts = {**usage_counts(view.reader, of), **worked}
        return [measurement(of, counts, confidence=memory.confidence, now=view.now)]

    if known is None or known.gone:
        fields |= {"archived_at": view.now, "archive_reason": PROPOSED, "access_count": 0}
        return replace(lesson, also=measured) if way.leads_there else None
    if known.was_put_away(view.now, _OWN_REASONS):
        return lesson
    new = len(fresh(lesson, known))
    stays_away = known.reason == REJECTED and new < LEAST_BUILDS and (known.lost or not _is_wordless(known))
    if stays_away or (not way.leads_there and known.reason in (REJECTED, LAPSED, LAPSED_PROPOSAL)):
        return None
    counts = usage_counts(view.reader, known.row)
    fields = _brought_up(view, known, way, fields, {**counts, **worked}, new)
    return replace(lesson, fields=fields, also=measured, is_due=counts != {**counts, **worked})


def _brought_up(
    view: View, known: Known, way: Way, fields: dict[str, Any], counts: Mapping[str, int], new: int
) -> dict[str, Any]:
    """Return the fields of a procedure that continues; `fields` are those composed from its current evidence."""
    before = view.reader.read([known.id])[0]
    assert isinstance(before, ProceduralMemory)  # noqa: S101 (what was learned here is one)
    is_in_force = known.reason in (None, FADED)
    fields = {**fields, **strictness([known.row, fields])}
    del fields["success_rate"]  # usage counts towards it
    if is_in_force and _is_outside(fields) and not _is_outside(known.row):
        # what comes from outside is evidence for what was approved, but adds no words to it
        fields |= {"trust_class": before.trust_class}
    fields = _text_fields(view, known, before, fields)
    if is_in_force and not known.lost:
        # repetitions are merged into the procedure in force, so no episode records their builds
        builds = dict.fromkeys([*before.evidence_build_ids, *fields["evidence_build_ids"]])
        fields["evidence_build_ids"] = list(builds)[-MAX_ITEMS:]
        fields["confidence"] = confidence_of(max(len(way.builds), len(builds)))
    borne_out = fields["confidence"] * usage_factor(counts)
    fields["confidence"] = before.confidence if isclose(borne_out, before.confidence) else borne_out
    fields |= _state(view, known, way, before, fields["steps"], new)
    if known.reason and not fields.get("archived_at", view.now):  # it comes into force, and has faded meanwhile
        fields |= confirmed(view, before)
    return fields


def _text_fields(view: View, known: Known, before: ProceduralMemory, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a procedure: the approved one, or the one composed from current evidence (`fields`)."""
    approved: Row = {}
    if known.reason in (None, FADED) and (known.row.get("is_pinned") or not known.lost):
        approved = known.row
    elif known.reason == LAPSED and not known.lost:  # the approved text is supported again
        approved = _before_it_lapsed(view.reader, known.id)
    if not approved:
        return fields
    trigger, steps = approved.get("trigger_pattern"), list(approved.get("steps", ()))
    told = {name: fields[name] for name in _OF_THE_EVIDENCE} | {"trigger_pattern": trigger, "steps": steps}
    own = text_of(before.trigger_pattern or "", before.steps)
    is_own = own == before.content or (bool(before.common_errors) and before.content.startswith(own))
    if known.reason == LAPSED:
        told |= {name: list(approved.get(name, ())) for name in _LISTS}
    elif not is_own or before.is_pinned:  # somebody has changed the text
        return told
    return told | {"content": text_of(trigger or "", steps)}


def _state(view: View, known: Known, way: Way, before: ProceduralMemory, steps: list[str], new: int) -> dict[str, Any]:
    """Return the fields that change whether a procedure is in force."""
    waits = {"archived_at": view.now, "archive_reason": PROPOSED}
    if known.reason in (None, FADED) and steps != before.steps:  # those were approved
        return waits
    if known.reason == LAPSED_PROPOSAL or (known.reason == REJECTED and new >= LEAST_BUILDS):
        return waits
    if known.reason == LAPSED:
        return waits if known.lost else IN_FORCE
    if known.reason == FADED and new:
        return IN_FORCE
    is_own = not any(_is_outside(one.row) for one in way.supporters) and not _is_outside(known.row)
    if known.reason == PROPOSED and view.config.procedure_approval == "evidence" and way.leads_there and is_own:
        since = known.row["archived_at"]
        later = frozenset[str]().union(*(one.builds for one in way.supporters if one.row["created_at"] > since))
        earlier = frozenset[str]().union(*(one.builds for one in way.supporters if one.row["created_at"] <= since))
        if len(later - earlier) >= LATER_SUCCESSES:
            return IN_FORCE
    return {}


def _is_outside(row: Mapping[str, Any]) -> bool:
    """Return whether a tool, an import or a web page said it: only the user may bring that into force."""
    return TRUST.index(row.get("trust_class", "agent")) > TRUST.index("agent")


def _stricter(known: Known, told: Mapping[str, Sequence[Row]], episodes: Mapping[str, Row], now: str) -> Lesson | None:
    """Return what is wanted of a procedure with too little evidence that does not lapse: to be as strict as that, if it is not."""
    rows = told.get(known.id) or [episodes[one] for one in known.members & episodes.keys()]
    own, strict = strictness([known.row]), strictness([known.row, *rows])
    if known.was_put_away(now, _OWN_REASONS) or own == strict or _lapse(known, now) is not None:
        return None
    return Lesson(known.id, strict, sorted(known.members - known.lost), of=known, quotes=None)


def _lapse(known: Known, now: str) -> dict[str, Any] | None:
    """Return the fields that archive a procedure that lost its evidence; None if a user decided on it, or its words are gone."""
    stays = known.was_put_away(now, _OWN_REASONS) or known.row.get("is_pinned") or _is_wordless(known)
    if stays or not known.lost:
        return None
    return {"archived_at": now, "archive_reason": _LAPSES[known.reason]} if known.reason in _LAPSES else {}


def _is_wordless(known: Known) -> bool:
    """Return whether it has lapsed and so has no text to approve."""
    return bool(known.row["content"] == LAPSED_TEXT)


def _before_it_lapsed(reader: Reader, memory_id: str) -> Row:
    """Return the fields of a procedure before it lapsed. Reads the journal."""
    events = reader.history(memory_id)
    revised = [isinstance(event.payload, MemoryRevised) and event.content["changed"] for event in events]
    lapse = max(place for place, fields in enumerate(revised) if fields and fields.get("archive_reason") == LAPSED)
    known = last_known(events[:lapse], memory_id)
    assert known is not None  # noqa: S101 (what lapsed had been learned)
    return known.row


def _is_unconvincing(view: View, row: Row) -> bool:
    """Return whether a procedure is to be archived: never used, and overridden again and again or of low confidence (seed 1).

    Not if it is pinned, or if somebody wrote it down: it has no builds of evidence then.
    """
    stays = (
        "archived_at" in row or row.get("is_pinned") or not is_true(row, view.now) or not row.get("evidence_build_ids")
    )
    counts = {} if stays else usage_counts(view.reader, row)
    if stays or counts["uses"]:
        return False
    is_doubtful = row.get("source") == SOURCE and row.get("confidence", 1.0) < LEAST_CONFIDENCE
    return is_doubtful or counts["override_count"] >= MOST_OVERRIDES


def skill_of(way: Way, scope: Scope) -> dict[str, Any]:
    """Return the fields of a procedure composed from its evidence."""
    rows = [attempt.row for attempt in way.supporters]
    trigger = " ".join(way.trigger)
    return {
        **fields_of(rows, scope, SOURCE),
        "content": text_of(trigger, way.steps),
        "trigger_pattern": trigger,
        "steps": list(way.steps),
        "prerequisites": shared(rows, "prerequisites", "constraints"),
        "exit_criteria": shared(rows, "exit_criteria"),
        "common_errors": [],  # up to 0.3 what helped against errors on the way stood here: the analysis of errors tells it
        "outcome": "positive",
        "confidence": confidence_of(len(way.builds)),
        "success_rate": round(way.succeeded / way.tried, 6),
        "agents_involved": agents_of(rows),
        "tags": list(dict.fromkeys(["procedure", *(tag for tag in shared(rows, "tags") if tag not in _KINDS)]))[:6],
        "reason": "the same steps led to success again and again",
    }


def text_of(trigger: str, steps: Sequence[str]) -> str:
    """Return the text of a procedure: trigger and steps."""
    numbered = "; ".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return whole_sentences(f"How to go about “{trigger}”: {numbered}.", MAX_CONTENT_CHARS)


_RUN = IncrementalRun(LEARNING, _TYPES, _planned, ProcedureResult(), _concluded)


STATES: tuple[ProposalState, ...] = ("proposed", "in force", "rejected")
_OF_REASON: dict[str | None, ProposalState] = {PROPOSED: "proposed", REJECTED: "rejected"}


def list_proposals(
    store: AgentMemoryStore, *, state: ProposalState | None = "proposed", project_id: str | None = None
) -> list[Proposal]:
    """Return learned procedures in a state, or in any, those with the most evidence first."""
    if state is not None and state not in STATES:
        raise InvalidInputError(f"must be one of {', '.join(STATES)}", field="state", value=state)
    with store.reader.frozen():
        archived = store.list_memories(type="procedural", project_id=project_id, state="archived")
        listed = store.list_memories(type="procedural", project_id=project_id)
    found = [_proposal(memory) for memory in (*archived, *listed) if _state_of(memory) is not None]
    wanted = [one for one in found if state is None or one.state == state]
    return sorted(wanted, key=lambda one: (-one.builds, -(one.success_rate or 0.0), one.id))


def approve_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Bring a proposed or rejected procedure into force; `reopen_proposal` undoes it."""
    return _moved(store, id, "in force", None)


def reject_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Reject a procedure, proposed or in force. It is proposed again only if three more builds support it."""
    return _moved(store, id, "rejected", REJECTED)


def reopen_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Undo an approval or a rejection: the procedure is a proposal again."""
    return _moved(store, id, "proposed", PROPOSED)


def _moved(store: AgentMemoryStore, id: str, state: ProposalState, reason: str | None) -> Proposal:
    """Change the state of a procedure by one event; do nothing if it is in that state."""

    def plan(view: View) -> Plan[str]:
        before = store.get_memory(id)
        if before is None:
            raise NotFoundError("proposal", id)
        if (known := _state_of(before)) is None:
            problem = "does not name a learned procedure that is proposed, approved or rejected"
            raise InvalidInputError(f"{problem}; `memgraph proposals list --all` lists them", field="id", value=id)
        if known == state:
            return Plan(before.id)
        away = {"archived_at": view.now, "archive_reason": reason}
        fields = away if reason else {**IN_FORCE, **confirmed(view, before)}  # it has faded while it waited
        return Plan(before.id, [Commit(revision(before, fields, view.now), before.task_id)])

    memory_id = carry_out(store, plan, attempts=1, actor="user").result
    return _proposal(store.read_memories([memory_id])[0])


def _state_of(memory: StoredMemory) -> ProposalState | None:
    """Return the state of a procedure; None if it was not learned, or was archived for another reason."""
    is_out = memory.is_suppressed or memory.invalid_at is not None or memory.content == LAPSED_TEXT
    if memory.source != SOURCE or is_out:
        return None
    return "in force" if memory.archived_at is None else _OF_REASON.get(memory.archive_reason)


def _proposal(memory: StoredMemory) -> Proposal:
    assert isinstance(memory, ProceduralMemory)  # noqa: S101 (what was learned here is one)
    return Proposal(
        id=memory.id,
        state=_state_of(memory) or "proposed",
        trigger=memory.trigger_pattern or "",
        steps=memory.steps,
        success_rate=memory.success_rate,
        confidence=memory.confidence,
        builds=len(memory.evidence_build_ids) or len(memory.supporting_memory_ids),
        since=memory.archived_at or memory.updated_at or "",
        project_id=memory.project_id,
        common_errors=[f"{known.error}: {known.fix}" for known in memory.common_errors],
    )
