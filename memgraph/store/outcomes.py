"""Uses of memories, retrievals, and their outcomes, with their effects on the procedures that were used or overridden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memgraph.diagnostics.records import Duration, Ranking
from memgraph.diagnostics.reports import RecallWatch
from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.model.base import checked, checked_list
from memgraph.model.events.records import OutcomeRecorded, ProcedureMeasured, RetrievalRecorded
from memgraph.model.memory import OUTCOME_OF_WORD, RECORD_SOURCES, StoredMemory
from memgraph.ports import Row
from memgraph.store.commit.access import Use
from memgraph.store.query import Reader, StorePart

_COUNTS = ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded")
_AT_FIRST = 2
"""Prior successes in the calculation of confidence, so that one override alone does not end a procedure."""


@dataclass(eq=False)
class Usage(StorePart):
    """Records uses of memories, retrievals, and their outcomes."""

    _watch: RecallWatch

    def close(self) -> None:
        """Report the retrievals since the last record. Idempotent."""
        self._watch.close()

    def record_access(self, id: str) -> StoredMemory:
        """Count a use of a memory and reinforce it. Visible at once; durable within a second."""
        with self._reader.frozen():
            known = self._reader.known(id)
            self._writer.note_uses([Use(known.id, self._now())])
            return self._reader.known(id)

    def record_retrieval(
        self,
        record: RetrievalRecorded,
        memories: Sequence[StoredMemory],
        *,
        ranking: Ranking | None = None,
        duration_ms: float = 0.0,
    ) -> None:
        """Record a retrieval: every use is counted, and a memory is reinforced at most once a day.

        Parameters
        ----------
        ranking : Ranking, optional
            What it was ranked by, for the diagnostics, with its duration in milliseconds. None: the diagnostics do not count it.
        """
        ranking, duration_ms = (
            checked(Ranking | None, ranking, "ranking"),
            checked(Duration, duration_ms, "duration_ms"),
        )
        record, memories = RetrievalRecorded.parse(record), checked_list(StoredMemory, memories, "memories")
        now = self._now()
        used = [Use(memory.id, now, by_retrieval=True) for memory in memories]
        self._writer.note_retrieval(record, used)
        if ranking is not None:
            self._watch.note(
                ranking,
                query_id=record.query_id,
                results=len(record.results),
                tokens=record.total_tokens,
                duration_ms=duration_ms,
            )

    def record_outcome(
        self, query_id: str, outcome: str, *, used: Sequence[str] = (), overridden: Sequence[str] = ()
    ) -> None:
        """Record the outcome of a retrieval, the memories that were used, and those that were overridden.

        A use counts and reinforces as in `record_access`, whatever the outcome. Repeating an outcome records nothing; a
        different one replaces it, counting only newly used memories and keeping earlier counts.
        """
        used, overridden = checked(list[str], used, "used"), checked(list[str], overridden, "overridden")
        self._writer.flush()
        with self._writer.exclusive():
            payload = OutcomeRecorded(
                query_id=query_id, outcome=outcome, used=used, overridden=overridden, recorded_at=self._now()
            )
            self._check(payload)
            if not self._is_recorded(payload):
                # a repeated outcome counts only those that the last one did not name
                named = dict.fromkeys(payload.used)
                new = [one for one in named if self._said_of(payload.query_id, one) is not True]
                self._writer.commit("system", [payload, *measured(payload, self._reader)])
                self._writer.note_uses([Use(memory_id, payload.recorded_at) for memory_id in new])
            if OUTCOME_OF_WORD[outcome] == "positive":
                for row in self._reader.rows(payload.used):  # a record that helped becomes a memory
                    if row.get("source") in RECORD_SOURCES:
                        self._writer.update(row["id"], {"reason": "a record that was used for what went well"})

    def _check(self, payload: OutcomeRecorded) -> None:
        """Reject an unknown outcome, an unknown retrieval, or memories not among its results: they would be lost silently."""
        if payload.outcome not in OUTCOME_OF_WORD:
            raise InvalidInputError(
                f"must be one of {', '.join(OUTCOME_OF_WORD)}", field="outcome", value=payload.outcome
            )
        if self._reader.record("Recall", payload.query_id) is None:
            raise NotFoundError("retrieval", payload.query_id, listed_by="memgraph recall TASK --explain")
        if both := sorted(set(payload.used) & set(payload.overridden)):
            raise InvalidInputError("is said to be used as well", field="overridden", value=both[0])
        for field in ("used", "overridden"):
            for memory_id in getattr(payload, field):
                if self._reader.record("RECALLED", (payload.query_id, memory_id)) is None:
                    raise InvalidInputError("was not among the results of that retrieval", field=field, value=memory_id)

    def _is_recorded(self, payload: OutcomeRecorded) -> bool:
        """Return whether all of it has been recorded before."""
        recall = self._reader.record("Recall", payload.query_id) or {}
        said = dict.fromkeys(payload.used, True) | dict.fromkeys(payload.overridden, False)
        return recall.get("outcome") == payload.outcome and all(
            self._said_of(payload.query_id, memory_id) is used for memory_id, used in said.items()
        )

    def _said_of(self, query_id: str, memory_id: str) -> bool | None:
        return (self._reader.record("RECALLED", (query_id, memory_id)) or {}).get("used")


def measured(payload: OutcomeRecorded, reader: Reader) -> list[ProcedureMeasured]:
    """Return an outcome's changes to the procedures that it names, as totals: in place of what the recall's earlier outcome gave. For before its commit."""
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
                row,
                after,
                # the quotient first: another order is rounded otherwise
                confidence=row.get("confidence", 1.0) * (usage_factor(after) / usage_factor(counts)),
                now=payload.recorded_at,
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


def _said(used: bool | None, outcome: str | None) -> dict[str, int]:
    if used is None:
        return {}
    if not used:
        return {"override_count": 1}
    judged = OUTCOME_OF_WORD.get(outcome or "", "unknown")
    is_judged = judged in ("positive", "negative")
    return {"uses": 1, "uses_judged": int(is_judged), "uses_succeeded": int(judged == "positive")}
