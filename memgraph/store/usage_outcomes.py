"""Usage outcomes of procedures: effects of a recall's outcome on the procedures that were used or overridden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memgraph.model.events.records import OutcomeRecorded, ProcedureMeasured
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.ports import Row
from memgraph.store.query import Reader

_COUNTS = ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded")
_AT_FIRST = 2
"""Prior successes in the calculation of confidence, so that one override alone does not end a procedure."""


def measured(payload: OutcomeRecorded, reader: Reader) -> list[ProcedureMeasured]:
    """Return an outcome's changes to the procedures that it names, as totals. Call it before the outcome is committed.

    A used procedure has one more use, judged by a good or bad outcome; an overridden one has one more override. An
    earlier outcome of the same recall no longer counts for the memory.
    """
    before = reader.record("Recall", payload.query_id) or {}
    named = dict.fromkeys(payload.used, True) | dict.fromkeys(payload.overridden, False)
    found = []
    for row in reader.rows(list(named)):
        if row["type"] != "procedural":
            continue
        edge = reader.record("RECALLED", (payload.query_id, row["id"])) or {}
        old = _said(edge.get("used"), before.get("outcome"))
        new = _said(named[row["id"]], payload.outcome)
        if old == new:
            continue
        counts = usage_counts(reader, row)
        after = {name: counts[name] + new.get(name, 0) - old.get(name, 0) for name in counts}
        found.append(
            measurement(
                row, after, confidence=row.get("confidence", 1.0) * _moved(counts, after), now=payload.recorded_at
            )
        )
    return found


def usage_counts(reader: Reader, row: Row) -> dict[str, int]:
    """Return a procedure's counts, overrides included; if it was never counted, those implied by its rate and builds."""
    known = reader.record("Practice", row["id"])
    if known is not None:
        counts = {name: known.get(name, 0) for name in _COUNTS}
    else:
        rate = row.get("success_rate", 1.0 if row.get("outcome") == "positive" else None)
        tried = 0 if rate is None else max(1, len(row.get("evidence_build_ids", ())))
        counts = {**dict.fromkeys(_COUNTS, 0), "tried": tried, "succeeded": round(tried * (rate or 0.0))}
    return {**counts, "override_count": row.get("override_count") or 0}


def measurement(row: Mapping[str, Any], counts: Mapping[str, int], *, confidence: float, now: str) -> ProcedureMeasured:
    """Return the event that records these counts."""
    tried = counts["tried"] + counts["uses_judged"]
    went_well = counts["succeeded"] + counts["uses_succeeded"]
    return ProcedureMeasured(
        id=row["id"],
        **counts,
        success_rate=round(went_well / tried, 6) if tried else None,
        confidence=min(1.0, max(0.0, confidence)),
        measured_at=now,
    )


def usage_factor(counts: Mapping[str, int]) -> float:
    """Return the factor of usage in a procedure's confidence, in (0, 1]: failures and overrides lower it, successes raise it."""
    against = counts["uses_judged"] - counts["uses_succeeded"] + counts["override_count"]
    return (_AT_FIRST + counts["uses_succeeded"]) / (_AT_FIRST + counts["uses_succeeded"] + against)


def _moved(before: Mapping[str, int], after: Mapping[str, int]) -> float:
    return usage_factor(after) / usage_factor(before)


def _said(used: bool | None, outcome: str | None) -> dict[str, int]:
    """Return what one recall adds to a procedure's counts."""
    if used is None:
        return {}
    if not used:
        return {"override_count": 1}
    judged = OUTCOME_OF_WORD.get(outcome or "", "unknown")
    is_judged = judged in ("positive", "negative")
    return {"uses": 1, "uses_judged": int(is_judged), "uses_succeeded": int(judged == "positive")}
