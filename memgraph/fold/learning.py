"""Folds events about procedures and errors."""

from __future__ import annotations

from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.lifecycle import (
    ERROR_ANALYSIS,
    LEARNING,
    ErrorsAnalysed,
    ProcedureMeasured,
    ProceduresLearned,
)
from memgraph.model.events.payload import sparse

_MEMORY_FIELDS = ("success_rate", "confidence", "override_count")
_USAGE_FIELDS = ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded")


def measured(workspace: Workspace, _event: Event, payload: ProcedureMeasured) -> None:
    """Fold ``procedure.measured``: the counts, and the fields of the procedure's memory derived from them."""
    row = workspace.get("Memory", payload.id)
    if row is None:
        return
    measured_fields = {name: getattr(payload, name) for name in _MEMORY_FIELDS}
    kept = {name: value for name, value in row.items() if name != "success_rate"}
    workspace.put("Memory", payload.id, {**kept, **sparse(measured_fields), "last_validated_at": payload.measured_at})
    counts = {name: getattr(payload, name) for name in _USAGE_FIELDS}
    workspace.put("Practice", payload.id, {"id": payload.id, **counts})


def learned(workspace: Workspace, _event: Event, payload: ProceduresLearned) -> None:
    """Fold ``procedures.learned``."""
    counts = payload.model_dump(exclude={"up_to_seq"})
    row = {"id": LEARNING, "name": "procedures", "seq": payload.up_to_seq, **counts}
    workspace.put("LifecycleRun", LEARNING, row)


def analysed(workspace: Workspace, _event: Event, payload: ErrorsAnalysed) -> None:
    """Fold ``errors.analysed``."""
    counts = payload.model_dump(exclude={"up_to_seq", "internal", "external", "configuration"})
    row = {"id": ERROR_ANALYSIS, "name": "errors", "seq": payload.up_to_seq, **counts}
    workspace.put("LifecycleRun", ERROR_ANALYSIS, row)
