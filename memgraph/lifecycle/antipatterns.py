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

from memgraph.lifecycle import experience
from memgraph.lifecycle.evidence import (
    LEAST_BUILDS,
    Scope,
    TimeIsUp,
    changed_scopes,
    commit_each,
    confidence_of,
    in_order,
    is_true,
    may_tell,
    never,
    read_scope,
    revision,
    seen_up_to,
    shared_context,
    unlinked,
)
from memgraph.lifecycle.remedies import (
    Trouble,
    error_text,
    kind_of,
    named_error,
    remedy_of,
    tried_in,
    troubles,
    what_of,
)
from memgraph.lifecycle.vectors import vectors_of
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.events import MemoryDerived, MemoryLinked
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import AgentMemory, SemanticMemory, Vector
from memgraph.model.procedures import ERROR_ANALYSIS, ErrorAnalysis, ErrorKind, ErrorsAnalysed, RepeatedError
from memgraph.model.text import cut
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.appending import Write, with_vector

SOURCE = "error analysis"
"""The `source` of the anti-patterns that are made here."""
NO_EVIDENCE_LEFT = experience.NO_EVIDENCE_LEFT
_TYPES = ("episodic", "semantic")
_MOST_LINKED = 200
_MOST_TOLD = 20
_FAULT: dict[ErrorKind, str] = {
    "internal": "",
    "external": " The fault is not one's own: network, rate limit or service.",
    "configuration": " A matter of the surroundings: a file, setting, permission or version.",
}


@dataclass(slots=True)
class _Plan:
    """What an analysis of one scope found, and what is to be written of it."""

    kinds: Counter[ErrorKind] = field(default_factory=Counter)
    repeated: list[RepeatedError] = field(default_factory=list)
    new: list[SemanticMemory] = field(default_factory=list)
    revised: list[tuple[AgentMemory, AgentMemory]] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    superseded: list[tuple[str, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """What is to be embedded."""
        changed = [after.content for before, after in self.revised if before.content != after.content]
        return sorted({*changed, *(memory.content for memory in self.new)})


def analyse_errors(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ErrorAnalysis:
    """Class the failures by whose fault they are, and make of repeated ones what to avoid and what to do instead.

    Deterministic, without a model. Run again when nothing has changed, it writes nothing; killed, the next run ends as this one
    would have under the same clock.

    Parameters
    ----------
    is_time_up : callable, optional
        Asked between projects: once it says so, the rest waits for the next run.
    """
    with store.reader.frozen(links=True):
        began_at = store.reader.index.offset.seq
        scopes = changed_scopes(store.reader, ERROR_ANALYSIS, _TYPES)
    total, own = ErrorAnalysis(), set[int]()
    for scope in scopes:
        if is_time_up():
            return total.model_copy(update={"complete": False})
        result, written = _analyse(store, scope)
        total, own = _added(total, result), own | written
    if scopes:
        kinds = {name: getattr(total, name) for name in ("internal", "external", "configuration")}
        done = {name: getattr(total, name) for name in ("created", "updated", "superseded")}
        with store.exclusive():
            seen = seen_up_to(store, began_at, own)
            event = ErrorsAnalysed(applied_at=store.now(), up_to_seq=seen, episodes=total.failures, **kinds, **done)
            store.commit("system", [event], actor="system")
    return total


def _added(one: ErrorAnalysis, other: ErrorAnalysis) -> ErrorAnalysis:
    both = {name: getattr(one, name) + getattr(other, name) for name in type(one).model_fields if name != "complete"}
    both["repeated"] = sorted(both["repeated"], key=lambda error: (-error.builds, error.error))[:_MOST_TOLD]
    return ErrorAnalysis(**both)


def _analyse(store: AgentMemoryStore, scope: Scope) -> tuple[ErrorAnalysis, set[int]]:
    """Analyse one scope: planned while others may write, and again under the lock if they did."""
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
        written = commit_each(store, scope, _units(store, plan, vectors))
    result = ErrorAnalysis(
        failures=plan.kinds.total(),
        internal=plan.kinds["internal"],
        external=plan.kinds["external"],
        configuration=plan.kinds["configuration"],
        created=len(plan.new),
        updated=len(plan.revised),
        superseded=len(plan.superseded),
        repeated=plan.repeated,
        new_memory_ids=[memory.id or "" for memory in plan.new],
    )
    return result, written


def _planned(store: AgentMemoryStore, scope: Scope) -> _Plan:
    now, plan = store.now(), _Plan()
    rows = read_scope(store.reader, scope, _TYPES)
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, now)])
    plan.kinds.update(kind_of(error_text(row)) for row in episodes if row.get("outcome") == "negative")
    met = _with_remedies(troubles(episodes), episodes)
    lessons = {what: row for row in episodes if row.get("outcome") == "positive" and (what := what_of(row))}
    by_id = {row["id"]: row for row in episodes}
    told: dict[str, str] = {}
    for row in _generalisations(store, rows, now):
        members = [by_id[one] for one in row.get("source_event_ids", ()) if one in by_id]
        told |= dict.fromkeys((one["id"] for one in members), row["id"])
        _enrich(store, plan, row, members, met, lessons)
    known = {row.get("failure_fingerprint"): row for row in rows if row.get("source") == SOURCE}
    for trouble in met:
        if len(trouble.builds) >= LEAST_BUILDS:
            _tell(store, plan, scope, trouble, known.get(trouble.fingerprint), told, lessons, now)
    _take_back(store, plan, known, {trouble.fingerprint: trouble for trouble in met}, now)
    return plan


def _with_remedies(met: Sequence[Trouble], episodes: Sequence[Row]) -> list[Trouble]:
    """Return the troubles, with what helped later in the same build where that is about the same thing."""
    helped: dict[tuple[str, str], list[Row]] = {}
    for row in episodes:
        if row.get("outcome") == "positive" and row.get("title") and remedy_of(row):
            for build in experience.evidence_of(row):
                helped.setdefault((build, canonical_name(row["title"])), []).append(row)
    for trouble in met:
        known = {row["id"] for row in trouble.mended}
        for row in trouble.failed:
            for build in sorted(experience.evidence_of(row)):
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
        if row.get("source") == experience.SOURCE and row.get("outcome") == "negative" and is_true(row, now)
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
    """Plan to tell a generalisation what to avoid and what to do instead."""
    if not members or row.get("is_pinned"):
        return
    ids = {member["id"] for member in members}
    mended = [one for trouble in met if any(failed["id"] in ids for failed in trouble.failed) for one in trouble.mended]
    said = _approaches(members, [one for one in mended if may_tell(one, [row])], lessons, [row])
    kinds = Counter(kind_of(error_text(member)) for member in members)
    said["category"] = f"{max(kinds, key=lambda kind: (kinds[kind], kind))} error"
    if any(row.get(name) != value for name, value in said.items()):
        before = store.read_memories([row["id"]])[0]
        plan.revised.append((before, before.model_copy(update={**said, "updated_at": store.now()})))


def _approaches(
    failed: Sequence[Row], mended: Sequence[Row], lessons: Mapping[str, Row], told: Sequence[Row]
) -> dict[str, str | None]:
    """Return what to avoid, and what to do instead if that is known: of the latest failure for which it is.

    `told` are the memories whose tier and trust the one that says it has.
    """
    for row in reversed(failed):
        acted_on = lessons.get(what_of(row) or "")
        if acted_on is not None and may_tell(acted_on, told) and (advice := remedy_of(acted_on)):
            return {"incorrect_approach": tried_in(row), "correct_approach": advice}
    remedy = next(filter(None, (remedy_of(row) for row in reversed(mended))), None)
    return {"incorrect_approach": tried_in([*mended, *failed][-1]), "correct_approach": remedy}


def _tell(
    store: AgentMemoryStore,
    plan: _Plan,
    scope: Scope,
    trouble: Trouble,
    known: Row | None,
    told: Mapping[str, str],
    lessons: Mapping[str, Row],
    now: str,
) -> None:
    """Plan what is to be told of a repeated error: by the generalisation that covers it, else by an anti-pattern."""
    said = _approaches(trouble.failed, trouble.mended, lessons, [*trouble.failed, *trouble.mended])
    if trouble.lesson:
        said["incorrect_approach"] = trouble.lesson
    kind = kind_of(trouble.error)
    covering = Counter(told[row["id"]] for row in trouble.failed if row["id"] in told)
    by, many = max(covering.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    is_covered = many * 2 > len(trouble.failed) + len(trouble.mended)
    memory_id = by if is_covered else (known or {}).get("id") or _id(store, scope, trouble.fingerprint)
    is_put_away = known is not None and (not is_true(known, now) or "archived_at" in known)
    if is_covered:
        if known and not is_put_away and store.reader.record("SUPERSEDES", (by, known["id"])) is None:
            plan.superseded.append((by, known["id"]))
    elif not is_put_away:
        _draft(store, plan, trouble, known, _fields(scope, trouble, kind, said), memory_id)
    told_by = None if is_put_away and not is_covered else memory_id
    error, remedy = named_error(trouble.lesson or trouble.error), said["correct_approach"]
    plan.repeated.append(
        RepeatedError(error=error, kind=kind, builds=len(trouble.builds), remedy=remedy, memory_id=told_by)
    )


def _draft(
    store: AgentMemoryStore, plan: _Plan, trouble: Trouble, known: Row | None, fields: dict[str, Any], memory_id: str
) -> None:
    ids = [row["id"] for row in (*trouble.failed, *trouble.mended)][:_MOST_LINKED]
    plan.members[memory_id] = list(dict.fromkeys(ids))
    if known is None:
        plan.new.append(SemanticMemory(id=memory_id, **fields, supporting_memory_ids=plan.members[memory_id]))
        return
    before = store.read_memories([memory_id])[0]
    if before.is_pinned:
        fields.pop("content")
    linked = set(before.supporting_memory_ids)  # type: ignore[attr-defined]
    if any(getattr(before, name) != value for name, value in fields.items()) or linked != set(plan.members[memory_id]):
        changes = dict(fields)
        if set(fields["evidence_build_ids"]) - set(before.evidence_build_ids):
            relevance = store.config.forgetting_curve.confirmed(before.relevance_score)
            changes |= {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": store.now()}
        plan.revised.append((before, before.model_copy(update={**changes, "updated_at": store.now()})))


def _fields(scope: Scope, trouble: Trouble, kind: ErrorKind, said: Mapping[str, str | None]) -> dict[str, Any]:
    rows = in_order([*trouble.failed, *trouble.mended])
    tags = Counter(tag for row in rows for tag in set(row.get("tags", ())))
    shared = [tag for tag, many in sorted(tags.items(), key=lambda item: (-item[1], item[0])) if many * 2 > len(rows)]
    builds = [build for row in rows for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    return {
        "content": _content(trouble, kind, said),
        "pattern": trouble.lesson or named_error(trouble.error),
        "outcome": "negative",
        "confidence": confidence_of(len(trouble.builds)),
        "category": f"{kind} error",
        **said,
        "project_id": scope[0],
        "task_id": scope[1],
        **shared_context(rows),
        "tags": list(dict.fromkeys(["anti-pattern", *shared]))[:6],
        "failure_fingerprint": trouble.fingerprint,
        "evidence_build_ids": list(dict.fromkeys(builds))[-MAX_ITEMS:],
        "source_event_ids": [row["id"] for row in rows][-MAX_ITEMS:],
        "source": SOURCE,
        "occurred_at": rows[-1].get("occurred_at"),
        "reason": "the same error came up again and again",
    }


def _content(trouble: Trouble, kind: ErrorKind, said: Mapping[str, str | None]) -> str:
    stayed = len(frozenset().union(*(experience.evidence_of(row) for row in trouble.failed)))
    unit = "builds" if not any(key.startswith("memory ") for key in trouble.builds) else "episodes"
    if trouble.lesson:
        what = what_of(trouble.failed[-1])
        text = f"Much the same lesson was drawn from {stayed:,} failed trials, so it did not help by itself: “{trouble.lesson}”"
        helped = f" What helped: {said['correct_approach']}" if said["correct_approach"] else ""
        return cut(f"{text} ({cut(what, 160)}).{helped}" if what else f"{text}{helped}", MAX_CONTENT_CHARS)
    text = f"“{named_error(trouble.error)}” came up in {len(trouble.builds):,} {unit}, and stayed in {stayed or 'none'} of them.{_FAULT[kind]}"
    for label, part in (("What helped", said["correct_approach"]), ("Seen when", said["incorrect_approach"])):
        known = f" {label}: {part}" if part and part.strip("“”` ") not in text else ""
        known = known if not known or known.endswith((".", "!", "?", "…", "`", "”")) else f"{known}."
        if len(text) + len(known) <= MAX_CONTENT_CHARS:
            text += known
    return cut(text, MAX_CONTENT_CHARS)


def _id(store: AgentMemoryStore, scope: Scope, fingerprint: str) -> str:
    key = "\x1f".join([scope[0] or "", scope[1] or "", fingerprint])
    ids = (source_id(f"anti-pattern\x1f{key}", number) for number in count())
    return next(one for one in ids if store.reader.index.slot(one) < 0)


def _take_back(
    store: AgentMemoryStore, plan: _Plan, known: Mapping[Any, Row], met: Mapping[str, Trouble], now: str
) -> None:
    """Plan to say of anti-patterns whose evidence was forgotten or proved untrue that they no longer hold."""
    for fingerprint, row in known.items():
        trouble = met.get(fingerprint)
        if is_true(row, now) and "archived_at" not in row and (trouble is None or len(trouble.builds) < LEAST_BUILDS):
            before = store.read_memories([row["id"]])[0]
            gone = {"invalid_at": now, "invalidation_reason": NO_EVIDENCE_LEFT, "updated_at": now}
            plan.revised.append((before, before.model_copy(update=gone)))


def _units(store: AgentMemoryStore, plan: _Plan, vectors: Mapping[str, Vector | None]) -> list[list[Write]]:
    now, units = store.now(), list[list[Write]]()
    units.extend([memory.model_copy(update={"embedding": vectors[memory.content]})] for memory in plan.new)
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
        units.append(unit)
    reason = "a generalisation tells of it"
    for by, old in plan.superseded:
        link = MemoryLinked(source_id=by, relation="SUPERSEDES", target_id=old, reason=reason, created_at=now)
        units.append([link])
    return [unit for unit in units if unit]
