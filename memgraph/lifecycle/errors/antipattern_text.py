"""The text of an anti-pattern: what failed how often, the class of the error, and what prevents it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.lifecycle.errors.remedies import Trouble, remedy_of, tried_in, what_of
from memgraph.lifecycle.evidence.evidence import Scope, confidence_of, in_order, may_quote, shared_context
from memgraph.lifecycle.generalisation.extractive_text import dated, when
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.results.learning import ErrorKind
from memgraph.ports import Row
from memgraph.text import lazy_re as re
from memgraph.text.calendar import in_words
from memgraph.text.cutting import whole_sentences
from memgraph.text.sentences import ended

_FAULT: dict[ErrorKind, str] = {
    "internal": "",
    "external": " The fault is not one's own: network, rate limit or service.",
    "configuration": " A matter of the surroundings: a file, setting, permission or version.",
}
_WHAT_CHARS = 160
_CALL = re.compile(r"`([A-Za-z_][\w.]{1,80})\([^`]*`")
_BARE_CALL = re.compile(r"`[\w.]+\(…\)`")


def caution_of(
    trouble: Trouble, scope: Scope, lessons: Mapping[str, Row], *, source: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the text of an anti-pattern as fields of its memory, and the ids of the memories it quotes.

    Parameters
    ----------
    lessons : mapping
        Episodes in which a trial succeeded because of a lesson, by the trial's task.
    """
    rows = in_order([*trouble.failed, *trouble.mended])
    said, quoted = approaches(trouble.failed, trouble.mended, lessons, rows)
    if trouble.lesson and not any(said.values()):
        said["incorrect_approach"] = f"acting on this lesson alone: “{trouble.lesson}”"
    helper = next((row for row in rows if said["correct_approach"] and row["id"] == quoted[-1]), None)
    tags = Counter(tag for row in rows for tag in set(row.get("tags", ())))
    shared = [tag for tag, many in sorted(tags.items(), key=lambda item: (-item[1], item[0])) if many * 2 > len(rows)]
    builds = [build for row in rows for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    fields = {
        "content": _content(trouble, said, helper),
        "pattern": trouble.lesson or trouble.name,
        "outcome": "negative",
        "confidence": confidence_of(len(trouble.builds)),
        "category": f"{trouble.kind} error",
        **said,
        "is_solved": True if trouble.lesson and said["correct_approach"] else None,
        "project_id": scope[0],
        "task_id": scope[1],
        **shared_context(rows),
        "tags": list(dict.fromkeys(["anti-pattern", *shared]))[:6],
        "failure_fingerprint": trouble.fingerprint,
        "evidence_build_ids": list(dict.fromkeys(builds))[-MAX_ITEMS:],
        "source_event_ids": [row["id"] for row in rows][-MAX_ITEMS:],
        "source": source,
        "occurred_at": max(trouble.met_at, default=None),
        "reason": "the same error came up again and again",
    }
    return fields, quoted


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
        not (trouble.stayed or trouble.faded) or (trouble.is_closed and not trouble.came_back_at)
    )
    return not is_over and (not trouble.is_of_a_task or bool(trouble.lesson or trouble.mended))


def _content(trouble: Trouble, said: Mapping[str, str | None], helper: Row | None) -> str:
    if trouble.lesson:
        return _of_a_lesson(trouble, trouble.lesson, said["correct_approach"])
    text = f"{_came_up(trouble)}{_FAULT[trouble.kind]}"
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
        then = "" if trouble.came_back_at else ", and stayed each time"
    elif stayed:
        then = f", and stayed in {stayed:,} of them"
    else:
        then = ", and was mended each time"
    return f"“{trouble.name}” came up in {where}{'' if trouble.faded else then}.{_return(trouble)}"


def _return(trouble: Trouble) -> str:
    """Return that an error came back after it had been mended, or after a run had passed, and whether it is over."""
    said, day = "", dated({"occurred_at": trouble.came_back_at or ""})
    if day:
        over = "it had been mended" if trouble.mended else "runs that had passed"
        said = f" It came back after {over}{day}."
    return f"{said} The run of {in_words(trouble.passed[-1])} passed." if trouble.is_closed else said


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
