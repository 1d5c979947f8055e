"""Folds events about work orders."""

from __future__ import annotations

from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.model.events.payload import sparse
from memgraph.model.events.records import DistilAnswered, DistilAttempted, DistilRequested, DistilSkipped
from memgraph.ports import Row

TABLE = "WorkOrder"


def requested(workspace: Workspace, _event: Event, payload: DistilRequested) -> None:
    """Fold ``distil.requested``: an order that exists is left as it is."""
    workspace.ensure(TABLE, payload.id, {**sparse(payload.model_dump()), "state": "open"})


def answered(workspace: Workspace, _event: Event, payload: DistilAnswered) -> None:
    """Fold ``distil.answered``."""
    if (known := _open(workspace, payload.id)) is not None:
        row = {"state": "answered", "closed_at": payload.answered_at}
        workspace.put(TABLE, payload.id, _with_answer({**known, **row}, payload))


def attempted(workspace: Workspace, _event: Event, payload: DistilAttempted) -> None:
    """Fold ``distil.attempted``: the order stays open."""
    if (known := _open(workspace, payload.id)) is not None:
        row = {"attempts": (known.get("attempts") or 0) + 1}
        workspace.put(TABLE, payload.id, _with_answer({**known, **row}, payload))


def skipped(workspace: Workspace, _event: Event, payload: DistilSkipped) -> None:
    """Fold ``distil.skipped``."""
    if (known := _open(workspace, payload.id)) is not None:
        row = {"state": "skipped", "closed_at": payload.skipped_at, "skip_reason": payload.reason}
        workspace.put(TABLE, payload.id, sparse({**known, **row}))


def _open(workspace: Workspace, order_id: str) -> Row | None:
    known = workspace.get(TABLE, order_id)
    return known if known is not None and known["state"] == "open" else None


def _with_answer(row: Row, payload: DistilAnswered | DistilAttempted) -> Row:
    """Return the row of an order with what an answer added to that of earlier ones."""
    added = {
        name: list(dict.fromkeys([*row.get(name, ()), *getattr(payload, name)]))
        for name in ("new_memory_ids", "merged_memory_ids")
    }
    who = {"answered_by": payload.answered_by, "answer_trust_class": payload.trust_class}
    return sparse({**row, **added, **who, "verdict": payload.verdict or row.get("verdict")})
