"""Text of a procedure: trigger, steps, conditions, common errors and their remedies. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

from memgraph.lifecycle.errors.remedies import Trouble, remedy_of, troubles
from memgraph.lifecycle.evidence.evidence import Scope, confidence_of, may_quote, shared_context
from memgraph.lifecycle.procedures.procedure_mining import Way
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.memory import ErrorFix
from memgraph.ports import Row
from memgraph.text.cutting import cut, whole_sentences
from memgraph.text.sentences import ended

_MOST_ERRORS = 5
_MOST_QUOTED = 20
"""Maximum number of episodes linked as sources of an error's name."""
_COMMON = 2
"""Minimum number of builds with an error before it is a common one."""
_MOST_AGENTS = 50
_MOST_SEARCHED = 200
"""Number of latest episodes, and of failures, in whose builds errors are looked for."""


def skill_of(
    way: Way, by_build: Mapping[str, Sequence[Row]], scope: Scope, *, source: str
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the fields of a procedure composed from its evidence, and the ids of memories it quotes besides.

    Parameters
    ----------
    by_build : mapping
        Episodes by build: errors on the way are looked for among them.
    """
    rows = [attempt.row for attempt in way.supporters]
    builds = [build for row in rows for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    trigger = " ".join(way.trigger)
    errors, quoted = _errors(way, by_build)
    agents = dict.fromkeys(agent for row in rows for agent in row.get("agents_involved", ()))
    fields = {
        "content": text_of(trigger, way.steps, errors),
        "trigger_pattern": trigger,
        "steps": list(way.steps),
        "prerequisites": _shared(rows, "prerequisites", "constraints"),
        "exit_criteria": _shared(rows, "exit_criteria"),
        "common_errors": errors,
        "outcome": "positive",
        "confidence": confidence_of(len(way.builds)),
        "success_rate": round(way.succeeded / way.tried, 6),
        "project_id": scope[0],
        "task_id": scope[1],
        **shared_context(rows),
        "agents_involved": list(agents)[:_MOST_AGENTS],
        "tags": [
            "procedure",
            *(tag for tag in _shared(rows, "tags") if tag not in ("procedure", "solution", "recovery")),
        ][:6],
        "evidence_build_ids": list(dict.fromkeys(builds))[-MAX_ITEMS:],
        "source_event_ids": [row["id"] for row in rows][-MAX_ITEMS:],
        "source": source,
        "occurred_at": rows[-1].get("occurred_at"),
        "reason": "the same steps led to success again and again",
    }
    return fields, quoted


def text_of(trigger: str, steps: Sequence[str], errors: Sequence[ErrorFix]) -> str:
    """Return the text of a procedure: trigger, steps, and remedies for as many errors as fit."""
    numbered = "; ".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    text = f"How to go about “{trigger}”: {numbered}."
    for error in errors:
        known = f" If “{cut(error.error, 120)}” comes up: {ended(whole_sentences(error.fix, 160))}"
        if len(text) + len(known) <= MAX_CONTENT_CHARS:
            text += known
    return whole_sentences(text, MAX_CONTENT_CHARS)


def _shared(rows: Sequence[Row], *names: str) -> list[str]:
    """Return the list entries that more than half of the memories have, most frequent first."""
    counts = Counter(value for row in rows for value in {value for name in names for value in row.get(name, ())})
    return [
        value for value, many in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if many * 2 > len(rows)
    ]


def _errors(way: Way, by_build: Mapping[str, Sequence[Row]]) -> tuple[list[ErrorFix], frozenset[str]]:
    """Return the errors met where this way was followed, with remedies, most frequent first; and the ids of their sources."""
    latest = (*way.supporters[-_MOST_SEARCHED:], *way.failures[-_MOST_SEARCHED:])
    gone = {build: None for attempt in latest for build in sorted(attempt.builds)}
    sources = [attempt.row for attempt in way.supporters]
    rows = {
        row["id"]: row
        for build in gone
        for row in by_build.get(build, ())
        if row["type"] == "episodic" and may_quote(row, sources)
    }
    own = {attempt.row["id"] for attempt in way.supporters}
    found = [
        (len(trouble.builds), trouble.name, *fix, trouble)
        for trouble in troubles(sorted(rows.values(), key=lambda row: row["seq"]))
        if len(trouble.builds) >= _COMMON and (fix := _fix(trouble, own))
    ]
    best = sorted(found, key=lambda entry: (-entry[0], entry[1]))[:_MOST_ERRORS]
    quoted = frozenset(
        one
        for _, _, _, by, trouble in best
        for one in (by, *[row["id"] for row in (*trouble.failed, *trouble.mended)][:_MOST_QUOTED])
    )
    return [ErrorFix(error=error, fix=said) for _, error, said, _, _ in best], quoted - own


def _fix(trouble: Trouble, own: Set[str]) -> tuple[str, str] | None:
    """Return the remedy and the id of its source; the procedure's own evidence has it among its steps."""
    return next(
        ((said, row["id"]) for row in trouble.mended if row["id"] not in own and (said := remedy_of(row))), None
    )
