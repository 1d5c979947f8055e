"""Folds events about retrievals, builds, sources, lifecycle runs and work orders, and the reset of a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.fold.memories import bare, remove
from memgraph.fold.tasks import retrieval_rejected
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.payload import sparse
from memgraph.model.events.records import (
    COMPRESSION,
    CONTRADICTIONS,
    ERROR_ANALYSIS,
    LEARNING,
    SLEEP,
    BuildConsolidated,
    CompressionApplied,
    ContradictionsSought,
    DistilAnswered,
    DistilAttempted,
    DistilRequested,
    DistilSkipped,
    ErrorsAnalysed,
    OutcomeRecorded,
    ProcedureMeasured,
    ProceduresLearned,
    RetrievalRecorded,
    SleepAdvanced,
    SleepFailed,
    SourceRead,
    phase_key,
)
from memgraph.model.events.store import StoreReset
from memgraph.model.ids import natural_id
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.results.maintenance import ResetScope
from memgraph.ports import Row

_MEMORY_FIELDS = ("success_rate", "confidence", "override_count")
_USAGE_FIELDS = ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded")


def _retrieved(workspace: Workspace, _event: Event, payload: RetrievalRecorded) -> None:
    """One Recall, and RECALLED to each memory it returned."""
    fields = sparse(payload.model_dump(exclude={"query_id", "results"}))
    # a new recall has no edges yet: a look-up for each would cost more than everything else
    put = workspace.add if workspace.get("Recall", payload.query_id) is None else workspace.put
    workspace.put("Recall", payload.query_id, {"id": payload.query_id, **fields})
    for rank, item in enumerate(payload.results, start=1):
        if workspace.get("Memory", item.id) is not None:
            row = {"rank": rank, "score": item.score, "tokens": item.tokens}
            put("RECALLED", (payload.query_id, item.id), row)


def _outcome(workspace: Workspace, _event: Event, payload: OutcomeRecorded) -> None:
    """Keep the outcome of a Recall, and which of its memories were used or overridden."""
    recall = workspace.get("Recall", payload.query_id)
    if recall is None:
        return
    workspace.put("Recall", payload.query_id, {**recall, "outcome": payload.outcome, "outcome_at": payload.recorded_at})
    if payload.overridden and recall.get("session_id"):
        retrieval_rejected(workspace, recall["session_id"], payload.query_id, payload.recorded_at)
    for used, memory_ids in ((True, payload.used), (False, payload.overridden)):
        for memory_id in memory_ids:
            key = (payload.query_id, memory_id)
            edge = workspace.get("RECALLED", key)
            if edge is not None:
                workspace.put("RECALLED", key, {**edge, "used": used})


def _consolidated(workspace: Workspace, _event: Event, payload: BuildConsolidated) -> None:
    key = natural_id("build", payload.build_id, project_id=payload.project_id)
    if "consolidated_at" not in (
        workspace.get("Build", key) or {}
    ):  # until then the build is only the origin of memories
        run = workspace.get("LifecycleRun", COMPRESSION) or {"id": COMPRESSION, "name": "compression"}
        workspace.put("LifecycleRun", COMPRESSION, {**run, "builds_since": run.get("builds_since", 0) + 1})
    fields = sparse(payload.model_dump(exclude={"build_id", "complete"}))
    workspace.put("Build", key, {"id": key, "name": payload.build_id, "is_complete": payload.complete, **fields})


def _source_read(workspace: Workspace, _event: Event, payload: SourceRead) -> None:
    key = natural_id("source", payload.source_id)
    fields = sparse(payload.model_dump(exclude={"source_id"}))
    workspace.put("Source", key, {"id": key, "name": payload.source_id, **fields})


def _compressed(workspace: Workspace, event: Event, payload: CompressionApplied) -> None:
    row = {"id": COMPRESSION, "name": "compression", "seq": event.seq, "builds_since": 0}
    workspace.put("LifecycleRun", COMPRESSION, {**row, **payload.model_dump()})


def _sought(workspace: Workspace, _event: Event, payload: ContradictionsSought) -> None:
    """Keep in `seq` the event up to which memories have been compared."""
    counts = {"created": payload.found, "superseded": payload.superseded, "applied_at": payload.sought_at}
    row = {"id": CONTRADICTIONS, "name": "contradictions", "seq": payload.through_seq}
    workspace.put("LifecycleRun", CONTRADICTIONS, {**row, **counts})


def _slept(workspace: Workspace, event: Event, payload: SleepAdvanced) -> None:
    """Keep the run's remaining phases and, for a completed phase, the event up to which it has looked."""
    run = {"id": SLEEP, "name": "sleep", "seq": event.seq, "applied_at": payload.advanced_at}
    left = {"started_at": payload.started_at, "phases_left": payload.left} if payload.left else {}
    workspace.put("LifecycleRun", SLEEP, {**run, **left})
    if payload.complete:
        key = phase_key(payload.phase)
        row = {"id": key, "name": f"sleep: {payload.phase}", "seq": payload.through_seq}
        workspace.put("LifecycleRun", key, {**row, "applied_at": payload.advanced_at})


def _sleep_failed(workspace: Workspace, _event: Event, payload: SleepFailed) -> None:
    """Keep the failure until the next progress of a sleep."""
    run = workspace.get("LifecycleRun", SLEEP) or {"id": SLEEP, "name": "sleep"}
    failure = {"failed_at": payload.failed_at, "failed_phase": payload.phase, "error": payload.error}
    workspace.put("LifecycleRun", SLEEP, {**run, **failure})


def _measured(workspace: Workspace, _event: Event, payload: ProcedureMeasured) -> None:
    """Set the counts, and the fields of the procedure's memory derived from them."""
    row = workspace.get("Memory", payload.id)
    if row is None:
        return
    measured_fields = {name: getattr(payload, name) for name in _MEMORY_FIELDS}
    kept = {name: value for name, value in row.items() if name != "success_rate"}
    workspace.put("Memory", payload.id, {**kept, **sparse(measured_fields), "last_validated_at": payload.measured_at})
    counts = {name: getattr(payload, name) for name in _USAGE_FIELDS}
    workspace.put("Practice", payload.id, {"id": payload.id, **counts})


def _learned(workspace: Workspace, _event: Event, payload: ProceduresLearned) -> None:
    counts = payload.model_dump(exclude={"up_to_seq"})
    row = {"id": LEARNING, "name": "procedures", "seq": payload.up_to_seq, **counts}
    workspace.put("LifecycleRun", LEARNING, row)


def _analysed(workspace: Workspace, _event: Event, payload: ErrorsAnalysed) -> None:
    counts = payload.model_dump(exclude={"up_to_seq", "internal", "external", "configuration"})
    row = {"id": ERROR_ANALYSIS, "name": "errors", "seq": payload.up_to_seq, **counts}
    workspace.put("LifecycleRun", ERROR_ANALYSIS, row)


WORK_ORDER = "WorkOrder"


def _requested(workspace: Workspace, _event: Event, payload: DistilRequested) -> None:
    """Add an order unless it exists."""
    workspace.ensure(WORK_ORDER, payload.id, {**sparse(payload.model_dump()), "state": "open"})


def _answered(workspace: Workspace, _event: Event, payload: DistilAnswered) -> None:
    if (known := _open(workspace, payload.id)) is not None:
        row = {"state": "answered", "closed_at": payload.answered_at}
        workspace.put(WORK_ORDER, payload.id, _with_answer({**known, **row}, payload))


def _attempted(workspace: Workspace, _event: Event, payload: DistilAttempted) -> None:
    """Add what an answer brought to an order, which stays open."""
    if (known := _open(workspace, payload.id)) is not None:
        row = {"attempts": (known.get("attempts") or 0) + 1}
        workspace.put(WORK_ORDER, payload.id, _with_answer({**known, **row}, payload))


def _skipped(workspace: Workspace, _event: Event, payload: DistilSkipped) -> None:
    if (known := _open(workspace, payload.id)) is not None:
        row = {"state": "skipped", "closed_at": payload.skipped_at, "skip_reason": payload.reason}
        workspace.put(WORK_ORDER, payload.id, sparse({**known, **row}))


def _open(workspace: Workspace, order_id: str) -> Row | None:
    known = workspace.get(WORK_ORDER, order_id)
    return known if known is not None and known["state"] == "open" else None


def _with_answer(row: Row, payload: DistilAnswered | DistilAttempted) -> Row:
    """Return the row of an order with what an answer added to that of earlier ones."""
    added = {
        name: list(dict.fromkeys([*row.get(name, ()), *getattr(payload, name)]))
        for name in ("new_memory_ids", "merged_memory_ids")
    }
    who = {"answered_by": payload.answered_by, "answer_trust_class": payload.trust_class}
    return sparse({**row, **added, **who, "verdict": payload.verdict or row.get("verdict")})


CLEARED: dict[str, ResetScope] = {
    "WorkingMemory": "memory",
    "ChatContext": "memory",
    "TransientItem": "memory",
    "SessionTasks": "memory",
    "Recall": "memory",
    "RECALLED": "memory",
    "Build": "memory",
    "Source": "memory",
    "WorkOrder": "memory",
    "PinRemoval": "memory",
    "Pin": "all",
    "Task": "all",
    "TaskItem": "all",
    "HAS_ITEM": "all",
    "LINKED": "all",
    "Ledger": "all",
    "Handoff": "all",
    "Agent": "all",
    **dict.fromkeys(("KEPT_BY", "WORKS_ON", "COMPLETED_BY", "LEARNED_BY"), "all"),
    **dict.fromkeys(("HANDS_OVER", "HANDED_BY", "HANDED_TO", "ACCEPTED_BY", "CARRIED_BY"), "all"),
    "LifecycleRun": "all",
}
"""The tables that are cleared: by every reset ("memory"), or only by one that keeps nothing ("all")."""
OF_MEMORIES = frozenset(
    {
        "Memory",
        "Practice",
        "Project",
        "Session",
        "Tag",
        "Entity",
        "NEXT",
        "TAGGED",
        "MENTIONS",
        "INVOLVES",
        "IN_PROJECT",
        "FROM_BUILD",
        "IN_SESSION",
        "IN_TASK",
        *EXPLICIT_RELATIONS,
    }
)
"""Tables whose rows go with the memories that they belong to."""
_UNDER_ITS_ID = ("Practice", "Pin")


def tables_of(scope: ResetScope) -> list[str]:
    """Return the tables that a reset clears."""
    return [table for table, least in CLEARED.items() if least == "memory" or scope == "all"]


def _reset(workspace: Workspace, _event: Event, payload: StoreReset) -> None:
    """Clear what the event names; a build that a kept memory names stays, as one that was never read."""
    for memory_id in payload.removed:
        remove(workspace, memory_id)
        for table in _UNDER_ITS_ID:
            if workspace.get(table, memory_id) is not None:
                workspace.put(table, memory_id, None)
    for table in payload.cleared:
        for key in workspace.keys(table):
            is_named = table == "Build" and workspace.is_attached("FROM_BUILD", str(key))
            workspace.put(table, key, bare(workspace.get(table, key) or {}) if is_named else None)


HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    RetrievalRecorded.TYPE: _retrieved,
    OutcomeRecorded.TYPE: _outcome,
    BuildConsolidated.TYPE: _consolidated,
    SourceRead.TYPE: _source_read,
    CompressionApplied.TYPE: _compressed,
    ContradictionsSought.TYPE: _sought,
    SleepAdvanced.TYPE: _slept,
    SleepFailed.TYPE: _sleep_failed,
    ProcedureMeasured.TYPE: _measured,
    ProceduresLearned.TYPE: _learned,
    ErrorsAnalysed.TYPE: _analysed,
    DistilRequested.TYPE: _requested,
    DistilAnswered.TYPE: _answered,
    DistilAttempted.TYPE: _attempted,
    DistilSkipped.TYPE: _skipped,
    StoreReset.TYPE: _reset,
}
