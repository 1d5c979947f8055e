"""Folds events about work orders."""

from __future__ import annotations

from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.distillation import DistilAnswered, DistilRequested, DistilSkipped
from memgraph.model.events.payload import sparse
from memgraph.ports import Row

TABLE = "WorkOrder"


def requested(workspace: Workspace, _event: Event, payload: DistilRequested) -> None:
    """Fold ``distil.requested``: an order that exists is left as it is."""
    workspace.ensure(TABLE, payload.id, {**sparse(payload.model_dump()), "state": "open"})


def answered(workspace: Workspace, _event: Event, payload: DistilAnswered) -> None:
    """Fold ``distil.answered``."""
    row = {
        "state": "answered",
        "closed_at": payload.answered_at,
        "answered_by": payload.answered_by,
        "answer_trust_class": payload.trust_class,
        "new_memory_ids": payload.new_memory_ids,
        "merged_memory_ids": payload.merged_memory_ids,
        "verdict": payload.verdict,
    }
    _close(workspace, payload.id, row)


def skipped(workspace: Workspace, _event: Event, payload: DistilSkipped) -> None:
    """Fold ``distil.skipped``."""
    _close(workspace, payload.id, {"state": "skipped", "closed_at": payload.skipped_at, "skip_reason": payload.reason})


def _close(workspace: Workspace, order_id: str, row: Row) -> None:
    known = workspace.get(TABLE, order_id)
    if known is not None and known["state"] == "open":
        workspace.put(TABLE, order_id, sparse({**known, **row}))
