"""Folds events about retrievals, builds, sources, lifecycle runs and work orders, and the reset of a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.fold.memories import remove
from memgraph.fold.tasks import retrieval_rejected
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events import records as events
from memgraph.model.events.payload import sparse
from memgraph.model.events.store import StoreReset
from memgraph.model.ids import natural_id
from memgraph.model.results.maintenance import ResetScope
from memgraph.ports import Row

_MEMORY_FIELDS = ("success_rate", "confidence", "override_count")
_TESTS = {"git_commit", "passed", "failed"}
_OF_RUN = {"project_id", "outcome", "started_at", "completed_at"}
_USAGE_FIELDS = ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded")


def _retrieved(workspace: Workspace, event: Event, payload: events.RetrievalRecorded) -> None:
    """One Recall, and RECALLED to each memory it returned."""
    fields = {name: value for name, value in event.content.items() if name not in ("query_id", "results")}
    # a new recall has no edges yet: a look-up for each would cost more than everything else
    put = workspace.add if workspace.get("Recall", payload.query_id) is None else workspace.put
    workspace.put("Recall", payload.query_id, {"id": payload.query_id, **fields})
    for rank, item in enumerate(payload.results, start=1):
        if workspace.has("Memory", item.id):
            row = {"rank": rank, "score": item.score, "tokens": item.tokens}
            put("RECALLED", (payload.query_id, item.id), row)


def _outcome(workspace: Workspace, _event: Event, payload: events.OutcomeRecorded) -> None:
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


def _consolidated(workspace: Workspace, event: Event, payload: events.BuildConsolidated) -> None:
    key = natural_id("build", payload.build_id, project_id=payload.project_id)
    if not workspace.has("Build", key):
        run = workspace.get("LifecycleRun", events.COMPRESSION) or {"id": events.COMPRESSION, "name": "compression"}
        workspace.put("LifecycleRun", events.COMPRESSION, {**run, "builds_since": run.get("builds_since", 0) + 1})
    fields = sparse(payload.model_dump(exclude={"build_id", "complete", *_TESTS}))
    workspace.put("Build", key, {"id": key, "name": payload.build_id, "is_complete": payload.complete, **fields})
    key = natural_id("run", payload.build_id, project_id=payload.project_id)
    if payload.passed or payload.failed:
        fields = sparse(payload.model_dump(include=_OF_RUN | _TESTS))
        workspace.put("Run", key, {"id": key, "name": payload.build_id, "seq": event.seq, **fields})
    elif workspace.has("Run", key):
        workspace.put("Run", key, None)


def _source_read(workspace: Workspace, _event: Event, payload: events.SourceRead) -> None:
    key = natural_id("source", payload.source_id)
    fields = sparse(payload.model_dump(exclude={"source_id"}))
    workspace.put("Source", key, {"id": key, "name": payload.source_id, **fields})


def _ran(workspace: Workspace, key: str, name: str, fields: Row) -> None:
    """Keep of a run of the lifecycle what is known of the last one, instead of the one before."""
    workspace.put("LifecycleRun", key, {"id": key, "name": name, **fields})


def _compressed(workspace: Workspace, event: Event, payload: events.CompressionApplied) -> None:
    seq = event.seq if payload.up_to_seq is None else payload.up_to_seq
    counts = payload.model_dump(exclude={"up_to_seq", "builds_left"})
    _ran(workspace, events.COMPRESSION, "compression", {"seq": seq, "builds_since": payload.builds_left, **counts})


def _sought(workspace: Workspace, _event: Event, payload: events.ContradictionsSought) -> None:
    """Keep in `seq` the event up to which memories have been compared."""
    counts = {"created": payload.found, "superseded": payload.superseded, "applied_at": payload.sought_at}
    _ran(workspace, events.CONTRADICTIONS, "contradictions", {"seq": payload.through_seq, **counts})


def _slept(workspace: Workspace, event: Event, payload: events.SleepAdvanced) -> None:
    """Keep the run's remaining phases and, for a completed phase, the event up to which it has looked."""
    left = {"started_at": payload.started_at, "phases_left": payload.left} if payload.left else {}
    _ran(workspace, events.SLEEP, "sleep", {"seq": event.seq, "applied_at": payload.advanced_at, **left})
    if payload.complete:
        fields = {"seq": payload.through_seq, "applied_at": payload.advanced_at}
        _ran(workspace, events.phase_key(payload.phase), f"sleep: {payload.phase}", fields)


def _sleep_failed(workspace: Workspace, _event: Event, payload: events.SleepFailed) -> None:
    """Keep the failure until the next progress of a sleep."""
    run = workspace.get("LifecycleRun", events.SLEEP) or {"id": events.SLEEP, "name": "sleep"}
    failure = {"failed_at": payload.failed_at, "failed_phase": payload.phase, "error": payload.error}
    workspace.put("LifecycleRun", events.SLEEP, {**run, **failure})


def _measured(workspace: Workspace, _event: Event, payload: events.ProcedureMeasured) -> None:
    """Set the counts, and the fields of the procedure's memory derived from them."""
    row = workspace.get("Memory", payload.id)
    if row is None:
        return
    measured_fields = {name: getattr(payload, name) for name in _MEMORY_FIELDS}
    kept = {name: value for name, value in row.items() if name != "success_rate"}
    workspace.put("Memory", payload.id, {**kept, **sparse(measured_fields), "last_validated_at": payload.measured_at})
    counts = {name: getattr(payload, name) for name in _USAGE_FIELDS}
    workspace.put("Practice", payload.id, {"id": payload.id, **counts})


def _learned(workspace: Workspace, _event: Event, payload: events.ProceduresLearned) -> None:
    counts = payload.model_dump(exclude={"up_to_seq"})
    _ran(workspace, events.LEARNING, "procedures", {"seq": payload.up_to_seq, **counts})


def _analysed(workspace: Workspace, _event: Event, payload: events.ErrorsAnalysed) -> None:
    counts = payload.model_dump(exclude={"up_to_seq", "internal", "external", "configuration"})
    _ran(workspace, events.ERROR_ANALYSIS, "errors", {"seq": payload.up_to_seq, **counts})


WORK_ORDER = "WorkOrder"


def _requested(workspace: Workspace, _event: Event, payload: events.DistilRequested) -> None:
    """Add an order unless it exists."""
    workspace.ensure(WORK_ORDER, payload.id, {**sparse(payload.model_dump()), "state": "open"})


def _settled(
    workspace: Workspace, _event: Event, payload: events.DistilAnswered | events.DistilAttempted | events.DistilSkipped
) -> None:
    """Close an open order or, after an attempt, leave it open; what an answer added comes to that of earlier ones."""
    known = workspace.get(WORK_ORDER, payload.id)
    if known is None or known["state"] != "open":
        return
    if isinstance(payload, events.DistilSkipped):
        new: Row = {"state": "skipped", "closed_at": payload.skipped_at, "skip_reason": payload.reason}
    else:
        new = {"answered_by": payload.answered_by, "answer_trust_class": payload.trust_class}
        new |= {"verdict": payload.verdict or known.get("verdict")}
        for name in ("new_memory_ids", "merged_memory_ids"):
            new[name] = list(dict.fromkeys([*known.get(name, ()), *getattr(payload, name)]))
        if isinstance(payload, events.DistilAnswered):
            new |= {"state": "answered", "closed_at": payload.answered_at}
        else:
            new["attempts"] = (known.get("attempts") or 0) + 1
    workspace.put(WORK_ORDER, payload.id, sparse({**known, **new}))


CLEARED: dict[str, ResetScope] = {
    **dict.fromkeys("WorkingMemory ChatContext TransientItem SessionTasks Recall RECALLED".split(), "memory"),
    **dict.fromkeys("Build Run Source WorkOrder PinRemoval".split(), "memory"),
    **dict.fromkeys("Pin Task TaskItem HAS_ITEM LINKED Ledger Handoff Agent".split(), "all"),
    **dict.fromkeys("KEPT_BY WORKS_ON COMPLETED_BY LEARNED_BY".split(), "all"),
    **dict.fromkeys("HANDS_OVER HANDED_BY HANDED_TO ACCEPTED_BY CARRIED_BY".split(), "all"),
    "LifecycleRun": "all",
}
"""The tables that are cleared: by every reset ("memory"), or only by one that keeps nothing ("all"). Rows of others go with their memories."""


def tables_of(scope: ResetScope) -> list[str]:
    """Return the tables that a reset clears."""
    return [table for table, least in CLEARED.items() if least == "memory" or scope == "all"]


def _reset(workspace: Workspace, _event: Event, payload: StoreReset) -> None:
    """Clear what the event names."""
    for memory_id in payload.removed:
        remove(workspace, memory_id)
        for table in ("Practice", "Pin"):
            if workspace.get(table, memory_id) is not None:
                workspace.put(table, memory_id, None)
    for table in payload.cleared:
        for key in workspace.keys(table):
            workspace.put(table, key, None)


HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    events.RetrievalRecorded.TYPE: _retrieved,
    events.OutcomeRecorded.TYPE: _outcome,
    events.BuildConsolidated.TYPE: _consolidated,
    events.SourceRead.TYPE: _source_read,
    events.CompressionApplied.TYPE: _compressed,
    events.ContradictionsSought.TYPE: _sought,
    events.SleepAdvanced.TYPE: _slept,
    events.SleepFailed.TYPE: _sleep_failed,
    events.ProcedureMeasured.TYPE: _measured,
    events.ProceduresLearned.TYPE: _learned,
    events.ErrorsAnalysed.TYPE: _analysed,
    events.DistilRequested.TYPE: _requested,
    events.DistilAnswered.TYPE: _settled,
    events.DistilAttempted.TYPE: _settled,
    events.DistilSkipped.TYPE: _settled,
    StoreReset.TYPE: _reset,
}
