"""Anti-patterns from errors: failures in at least three builds, their class, and what prevents them (seed 3).

Where a generalisation from compression covers the same failures, it is extended by what to avoid and what to do
instead. Only errors that no generalisation covers become anti-patterns of their own; one that is covered later is
superseded by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.lifecycle.errors.remedies import Trouble, error_text, kind_of, remedy_of, tried_in, troubles, what_of
from memgraph.lifecycle.evidence.evidence import (
    LEAST_BUILDS,
    Deletions,
    Scope,
    TimeIsUp,
    confidence_of,
    in_order,
    is_true,
    may_quote,
    never,
    one_build_a_run,
    read_scope,
    revision,
)
from memgraph.lifecycle.evidence.experience import SOURCE as GENERALISED
from memgraph.lifecycle.evidence.experience import IncrementalRun
from memgraph.lifecycle.evidence.reconcile import (
    Known,
    Lesson,
    deleted_of,
    fields_of,
    known_of,
    linked_to,
    quoting,
    reconcile,
    shared_tags,
)
from memgraph.lifecycle.generalisation.lessons import dated, when
from memgraph.lifecycle.run.runner import Plan, View, commits_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.records import ERROR_ANALYSIS, ErrorsAnalysed
from memgraph.model.results.learning import ErrorAnalysis, ErrorKind, RepeatedError
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.text import lazy_re as re
from memgraph.text.calendar import in_words
from memgraph.text.cutting import whole_sentences
from memgraph.text.sentences import ended

SOURCE = "error analysis"
"""The `source` of these anti-patterns."""
RETIRED_TEXT = "An error that came up again and again: too few of the builds that it was seen in are left to tell it."
_TYPES = ("episodic", "semantic")
_MOST_TOLD = 20
_FAULT: dict[ErrorKind, str] = {
    "internal": "",
    "external": " The fault is not one's own: network, rate limit or service.",
    "configuration": " A matter of the surroundings: a file, setting, permission or version.",
}
_WHAT_CHARS = 160
_CALL = re.compile(r"`([A-Za-z_][\w.]{1,80})\([^`]*`")
_BARE_CALL = re.compile(r"`[\w.]+\(…\)`")


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
    rows = one_build_a_run(view.reader, read_scope(view.reader, scope, _TYPES))
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, view.now)])
    by_id = {row["id"]: row for row in episodes}
    own = [row for row in rows if row.get("source") == SOURCE and "failure_fingerprint" in row]
    known = {one.row["failure_fingerprint"]: one for one in known_of(view.reader, deletions, own, rows, by_id)}
    met = troubles(episodes)
    for trouble in met:
        if one := known.get(trouble.fingerprint):
            trouble.faded = one.kept
    _note_ends(view, scope, met)
    lessons = {what: row for row in episodes if row.get("outcome") == "positive" and (what := what_of(row))}
    generalised = _generalisations(view, rows)
    units = _enriched(view, known_of(view.reader, deletions, generalised, rows, by_id), by_id, met, lessons)
    enriched = len(units)
    repeated = [trouble for trouble in met if len(trouble.builds) >= LEAST_BUILDS and is_lesson(trouble)]
    if any(trouble.fingerprint not in known for trouble in repeated):
        gone = reversed(deleted_of(deletions, scope, SOURCE))  # deletions by somebody take precedence
        known = {one.row["failure_fingerprint"]: one for one in gone} | known
    covered_by = {member: row["id"] for row in generalised for member in row.get("source_event_ids", ())}
    told = {trouble.fingerprint: _covered(trouble, covered_by) for trouble in repeated}
    wanted = {
        trouble.fingerprint: _lesson(trouble, scope, lessons, known.get(trouble.fingerprint)) for trouble in repeated
    }
    left = [one for fingerprint, one in known.items() if fingerprint not in wanted]
    own_ones = [lesson for fingerprint, lesson in wanted.items() if told[fingerprint] is None]
    found = reconcile(view, own_ones, left, lapsed_text=RETIRED_TEXT, tags=["anti-pattern"])
    replaced = [(by, known[name]) for name, by in told.items() if by and name in known]
    superseded = [(by, one.id) for by, one in replaced if not (one.gone or one.was_put_away(view.now))]
    new = [pair for pair in superseded if view.reader.record("SUPERSEDES", pair) is None]
    links = [[linked_to(by, "SUPERSEDES", old, "a generalisation tells of it", view.now)] for by, old in new]
    kinds = Counter(kind_of(error_text(row)) for row in episodes if row.get("outcome") == "negative")
    result = ErrorAnalysis(
        failures=kinds.total(),
        internal=kinds["internal"],
        external=kinds["external"],
        configuration=kinds["configuration"],
        created=len(found.made),
        updated=enriched + len(found.grown) + len(found.lapsed),
        superseded=len(new),
        repeated=_most_frequent(
            [
                RepeatedError(
                    error=trouble.name,
                    remedy=wanted[trouble.fingerprint].fields["correct_approach"],
                    memory_id=told[trouble.fingerprint] or found.ids.get(wanted[trouble.fingerprint].key),
                    kind=trouble.kind,
                    builds=len(trouble.builds),
                )
                for trouble in repeated
            ]
        ),
        new_memory_ids=found.made,
    )
    return Plan(result, commits_of(scope[1], [*units, *found.units, *links]), found.texts)


def _covered(trouble: Trouble, covered_by: Mapping[str, str]) -> str | None:
    """Return the generalisation whose evidence has the most episodes of an error; None without one."""
    covering = Counter(covered_by[row["id"]] for row in trouble.failed if row["id"] in covered_by)
    by, many = max(covering.items(), key=lambda item: (item[1], item[0]), default=("", 0))
    return by if many * 2 > len(trouble.failed) + len(trouble.mended) else None


def _note_ends(view: View, scope: Scope, met: Sequence[Trouble]) -> None:
    """Note for the repeated errors when their builds ended."""
    repeated = [trouble for trouble in met if len(trouble.builds) >= LEAST_BUILDS]
    builds = view.reader.builds(scope[0]) if repeated else []
    ends = {row["name"]: row.get("completed_at", "") for row in builds}
    for trouble in repeated:
        trouble.ends = ends


def _generalisations(view: View, rows: Sequence[Row]) -> list[Row]:
    """Return the generalisations of failures that are in force."""
    replaced, index = view.reader.superseded(), view.reader.index
    return [
        row
        for row in rows
        if row.get("source") == GENERALISED and row.get("outcome") == "negative" and is_true(row, view.now)
        if "archived_at" not in row and not replaced[index.slot(row["id"])]
    ]


def _enriched(
    view: View,
    generalised: Sequence[Known],
    by_id: Mapping[str, Row],
    met: Sequence[Trouble],
    lessons: Mapping[str, Row],
) -> list[list[Write]]:
    """Return the events that extend generalisations by what to avoid and what to do instead."""
    met_in: dict[str, list[int]] = {}
    for place, trouble in enumerate(met):
        for row in trouble.failed:
            met_in.setdefault(row["id"], []).append(place)
    units = []
    for one in generalised:
        members = [by_id[member] for member in one.row.get("source_event_ids", ()) if member in by_id]
        if one.row.get("is_pinned") or not (members or one.lost):  # otherwise its evidence has only faded
            continue
        said: dict[str, Any] = {"incorrect_approach": None, "correct_approach": None}
        quoted: list[str] = []
        if members:
            here = sorted({place for row in members for place in met_in.get(row["id"], ())})
            mended = [row for place in here for row in met[place].mended if may_quote(row, [one.row])]
            found, quoted = approaches(members, mended, lessons, [one.row])
            said |= found
            kinds = Counter(kind_of(error_text(member)) for member in members)
            said["category"] = f"{max(kinds, key=lambda kind: (kinds[kind], kind))} error"
            is_mended = bool(here) and all(met[place].is_mended for place in here)
            said |= (
                {} if one.row.get("asked") else {"is_solved": (is_mended and bool(said["correct_approach"])) or None}
            )
        before = view.reader.read([one.id])[0]
        event = revision(before, before.model_copy(update={**said, "updated_at": view.now}))
        links = quoting(view, one.id, quoted, view.reader.index.supporting_ids(one.id))
        if event or links:
            units.append([*([event] if event else ()), *links])
    return units


def _lesson(trouble: Trouble, scope: Scope, lessons: Mapping[str, Row], of: Known | None) -> Lesson:
    """Return the anti-pattern of an error; `lessons` are the episodes in which a trial succeeded because of a lesson, by its task."""
    rows = in_order([*trouble.failed, *trouble.mended])
    said, quoted = approaches(trouble.failed, trouble.mended, lessons, rows)
    if trouble.lesson and not any(said.values()):
        said["incorrect_approach"] = f"acting on this lesson alone: “{trouble.lesson}”"
    helper = next((row for row in rows if said["correct_approach"] and row["id"] == quoted[-1]), None)
    fields: dict[str, Any] = {
        **fields_of(rows, scope, SOURCE),
        "content": _content(trouble, said, helper),
        "pattern": trouble.lesson or trouble.name,
        "outcome": "negative",
        "confidence": confidence_of(len(trouble.builds)),
        "category": f"{trouble.kind} error",
        **said,
        "is_solved": True if (trouble.lesson or trouble.is_mended) and said["correct_approach"] else None,
        "tags": shared_tags(rows, "anti-pattern"),
        "failure_fingerprint": trouble.fingerprint,
        "occurred_at": max(trouble.met_at, default=None),
        "reason": "the same error came up again and again",
    }
    key = "\x1f".join(["anti-pattern", scope[0] or "", scope[1] or "", trouble.fingerprint])
    evidence = dict.fromkeys(row["id"] for row in (*trouble.failed, *trouble.mended))
    return Lesson(key, fields, list(evidence), trouble.builds, of, quoted)


def approaches(
    failed: Sequence[Row], mended: Sequence[Row], lessons: Mapping[str, Row], sources: Sequence[Row]
) -> tuple[dict[str, str | None], list[str]]:
    """Return what to avoid and, for the latest failure with a known remedy, what to do instead; and the ids of the sources.

    Parameters
    ----------
    sources : sequence of Row
        The memories whose tier and trust the composed memory has.
    """
    for row in reversed(failed):
        acted_on = lessons.get(what_of(row) or "")
        if acted_on is not None and may_quote(acted_on, sources) and (advice := remedy_of(acted_on)):
            return _said(_in_general(tried_in(row)), row, advice, acted_on)
    last_first = ((_in_general(tried_in(row)), row) for row in reversed([*mended, *failed]))
    tried, last = next(((one, row) for one, row in last_first if one), (None, None))
    remedies = ((_helpful(row), row) for row in reversed(mended))
    helped, by = next(((one, row) for one, row in remedies if one), (None, None))
    return _said(tried, last, helped, by)


def _said(
    tried: str | None, by: Row | None, helped: str | None, helper: Row | None
) -> tuple[dict[str, str | None], list[str]]:
    quoted = [row["id"] for said, row in ((tried, by), (helped, helper)) if said and row]
    return {"incorrect_approach": tried, "correct_approach": helped}, quoted


def _helpful(row: Row) -> str | None:
    """Return what an episode says that helped; what only changed the arguments of a call holds for one case."""
    said = _in_general(remedy_of(row))
    return None if said and _BARE_CALL.fullmatch(said) else said


def _in_general(said: str | None) -> str | None:
    """Remove the arguments of calls: they belong to one case."""
    return said and _CALL.sub(r"`\1(…)`", said)


def is_lesson(trouble: Trouble) -> bool:
    """Return whether anything can be learned from an error.

    It has a message, or a lesson was drawn, or something helped; and it is not over with nobody knowing why: a service that was
    down for a while works again, whatever is done meanwhile.
    """
    is_known = any(map(_helpful, trouble.mended))
    is_over = not is_known and (
        not (trouble.stayed or trouble.faded) or (trouble.is_mended and not trouble.came_back_at)
    )
    return not is_over and (not trouble.is_of_a_task or bool(trouble.lesson or trouble.mended))


def _content(trouble: Trouble, said: Mapping[str, str | None], helper: Row | None) -> str:
    if trouble.lesson:
        return _of_a_lesson(trouble, trouble.lesson, said["correct_approach"])
    text = f"{_came_up(trouble)}{_FAULT[trouble.kind]}"
    if trouble.is_mended and said["correct_approach"]:
        mended = f"{ended(said['correct_approach'])} That mended it{dated({'occurred_at': trouble.mended_at})}: "
        return whole_sentences(f"{mended}{text}", MAX_CONTENT_CHARS)
    helped = f"What helped{dated(helper) if helper else ''}"
    for label, part in ((helped, said["correct_approach"]), ("Seen when", said["incorrect_approach"])):
        known = f" {label}: {ended(part)}" if part and part.strip("“”` .") not in text else ""
        if len(text) + len(known) <= MAX_CONTENT_CHARS:
            text += known
    return whole_sentences(text, MAX_CONTENT_CHARS)


def _came_up(trouble: Trouble) -> str:
    is_tried = all(row.get("source") == "trial" for row in (*trouble.failed, *trouble.mended))
    where = f"{_counted(trouble.builds, 'trial' if is_tried else 'build')}{when(trouble.met_at)}"
    stayed = len(trouble.stayed)
    if trouble.is_of_a_task and stayed == len(trouble.builds):
        return f"The same task failed in {where}: “{whole_sentences(trouble.name, _WHAT_CHARS)}”."
    if stayed == len(trouble.builds):
        then = "" if trouble.came_back_at or trouble.is_mended else ", and stayed each time"
    elif stayed:
        then = f", and stayed in {stayed:,} of them"
    else:
        then = ", and was mended each time"
    return f"“{trouble.name}” came up in {where}{'' if trouble.faded else then}.{_return(trouble)}"


def _return(trouble: Trouble) -> str:
    """Return that an error came back after it had been mended, or after a run had passed, and whether it is over; not where its remedy says so."""
    day, is_known = dated({"occurred_at": trouble.came_back_at or ""}), any(map(_helpful, trouble.mended))
    if trouble.is_mended and is_known:
        return ""
    said = f" It came back after {'it had been mended' if is_known else 'runs that had passed'}{day}." if day else ""
    return f"{said} The run of {in_words(trouble.mended_at)} passed." if trouble.is_mended else said


def _of_a_lesson(trouble: Trouble, lesson: str, remedy: str | None) -> str:
    trials = trouble.stayed | trouble.faded
    what = what_of(trouble.failed[-1])
    at = f" ({whole_sentences(what, _WHAT_CHARS)})" if what else ""
    if remedy:
        text = f"The same task failed in {_counted(trials, 'trial')}{at}. One that went well acted on this: {ended(remedy)}"
    elif trouble.lessons > 1:
        many = _counted(trials, "failed trial")
        text = f"What was learned from {many} at the same task{at} did not help by itself; the last lesson: “{lesson}”"
    else:
        many = _counted(trials, "failed trial")
        text = f"Much the same lesson was drawn from {many}{at}, so it did not help by itself: “{lesson}”"
    return whole_sentences(text, MAX_CONTENT_CHARS)


def _counted(evidence: frozenset[str], unit: str) -> str:
    """Return the count in words: an episode without a build is an episode, and both together are cases."""
    unbuilt = sum(key.startswith("memory ") for key in evidence)
    if unbuilt and unit == "build":
        unit = "episode" if unbuilt == len(evidence) else "case"
    return f"{len(evidence):,} {unit}{'' if len(evidence) == 1 else 's'}"


_RUN = IncrementalRun(ERROR_ANALYSIS, _TYPES, _planned, ErrorAnalysis(), _concluded)
