"""How procedures do in practice: what an outcome of a recall says of those that were used, and of those that were overridden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memgraph.model.events.lifecycle import ProcedureMeasured
from memgraph.model.events.recalls import OutcomeRecorded
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.ports import Row
from memgraph.store.query import Reader

_COUNTS = ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded")
_AT_FIRST = 2
"""Confidence falls as if so many uses had gone well before anybody counted: one override is not the end of it."""


def measured(payload: OutcomeRecorded, reader: Reader) -> list[ProcedureMeasured]:
    """Return what an outcome changes in the procedures that it names, as totals. Call it before the outcome is committed.

    Used, a procedure has one use more, which a good or bad outcome judges; overridden, one override more. What was said of the
    same memory and recall before counts no longer.
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
        counts = practice_of(reader, row)
        after = {name: counts[name] + new.get(name, 0) - old.get(name, 0) for name in counts}
        found.append(
            measurement(
                row, after, confidence=row.get("confidence", 1.0) * _moved(counts, after), now=payload.recorded_at
            )
        )
    return found


def practice_of(reader: Reader, row: Row) -> dict[str, int]:
    """Return a procedure's counts, overrides included; of one never counted, what its rate and builds of evidence say."""
    known = reader.record("Practice", row["id"])
    if known is not None:
        counts = {name: known.get(name, 0) for name in _COUNTS}
    else:
        rate = row.get("success_rate", 1.0 if row.get("outcome") == "positive" else None)
        tried = 0 if rate is None else max(1, len(row.get("evidence_build_ids", ())))
        counts = {**dict.fromkeys(_COUNTS, 0), "tried": tried, "succeeded": round(tried * (rate or 0.0))}
    return {**counts, "override_count": row.get("override_count") or 0}


def measurement(row: Mapping[str, Any], counts: Mapping[str, int], *, confidence: float, now: str) -> ProcedureMeasured:
    """Return the event that states these counts."""
    tried = counts["tried"] + counts["uses_judged"]
    went_well = counts["succeeded"] + counts["uses_succeeded"]
    return ProcedureMeasured(
        id=row["id"],
        **counts,
        success_rate=round(went_well / tried, 6) if tried else None,
        confidence=min(1.0, max(0.0, confidence)),
        measured_at=now,
    )


def in_practice(counts: Mapping[str, int]) -> float:
    """Return what use has left of a procedure's confidence, in (0, 1]: failures and overrides lower it, successes restore it."""
    against = counts["uses_judged"] - counts["uses_succeeded"] + counts["override_count"]
    return (_AT_FIRST + counts["uses_succeeded"]) / (_AT_FIRST + counts["uses_succeeded"] + against)


def _moved(before: Mapping[str, int], after: Mapping[str, int]) -> float:
    return in_practice(after) / in_practice(before)


def _said(used: bool | None, outcome: str | None) -> dict[str, int]:
    """Return what one recall adds to a procedure's counts."""
    if used is None:
        return {}
    if not used:
        return {"override_count": 1}
    judged = OUTCOME_OF_WORD.get(outcome or "", "unknown")
    is_judged = judged in ("positive", "negative")
    return {"uses": 1, "uses_judged": int(is_judged), "uses_succeeded": int(judged == "positive")}
