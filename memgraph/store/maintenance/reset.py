"""Reset: remove what was learned, or everything, in one commit.

What stays is decided once, under the writer lock, and the event names what goes. Graph and index are then rebuilt from the journal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from memgraph.fold.records import tables_of
from memgraph.fold.tasks import is_pin
from memgraph.index.columns import PROMOTED_SOURCE, SAVED_SOURCES
from memgraph.model.base import checked
from memgraph.model.events.store import StoreReset
from memgraph.model.memory import RECORD_SOURCES
from memgraph.model.results.maintenance import ResetResult, ResetScope
from memgraph.ports import Row
from memgraph.store.query import StorePart

MOST_IDS = 100_000
"""Memories named by one event: a line of the journal is limited to 16 MB."""
_KINDS = {
    "WorkingMemory": "working_memories",
    "ChatContext": "chat_contexts",
    "TransientItem": "transient_items",
    "SessionTasks": "session_tasks",
    "Recall": "recalls",
    "Build": "builds_read",
    "Run": "test_runs",
    "Source": "sources_read",
    "WorkOrder": "work_orders",
    "PinRemoval": "pin_removal_requests",
    "Pin": "pins",
    "Task": "tasks",
    "TaskItem": "task_items",
    "Ledger": "ledgers",
    "Handoff": "handoffs",
    "Agent": "agents",
    "LifecycleRun": "lifecycle_runs",
}
"""What the rows of a table are called."""


class Resetting(StorePart):
    """Resets a store."""

    def reset(self, scope: ResetScope, *, preview: bool = False) -> ResetResult:
        """Remove memories, and what is kept for sessions, from every view, in one commit. Idempotent.

        The journal keeps the history, so one memory can be restored with `undelete`, and everything by a copy of the store's
        directory that was made before.

        Parameters
        ----------
        scope : {"memory", "all"}
            ``memory`` keeps pinned memories, facts that somebody asked to keep (`remember`, observations, pins, promoted texts), and tasks; ``all``
            keeps none of them. The store's id and keys, its settings and the journal's history stay in both cases.
        preview : bool
            Write nothing.

        Notes
        -----
        Graph and index are rebuilt: it costs a replay of the journal, about a second for 3,000 events.
        """
        scope = checked(ResetScope, scope, "scope")
        with self._writer.exclusive():
            self._writer.flush()
            with self._projector.reading():
                events, result = self._planned(scope)
            if preview or not events:
                return result
            recorded = self._writer.commit("system", events, actor="user")
            self._projector.forget()
            return result.model_copy(update={"event": recorded[0].seq})

    def _planned(self, scope: ResetScope) -> tuple[list[StoreReset], ResetResult]:
        """Return the events that record a reset, none if there is nothing to remove, and its result."""
        index, tables = self._projector.index, self._projector.rows
        rows = tables.memories([index.ids.names[slot] for slot in np.flatnonzero(index.column("is_live")).tolist()])
        gone = [row for row in rows if scope == "all" or not is_kept(row)]
        stays = {row["id"] for row in rows} - {row["id"] for row in gone}
        cleared, counts = dict[str, int](), Counter[str](map(_kind, gone))
        kept = Counter[str](_kind(row) for row in rows if row["id"] in stays)
        for table in tables_of("all"):
            going = tables.every(table)
            goes = table in tables_of(scope)
            (counts if goes else kept).update({_KINDS.get(table, ""): len(_counted(table, going))})
            if goes and going:
                cleared[table] = len(going)
        newest_first = [row["id"] for row in sorted(gone, key=lambda row: row["seq"], reverse=True)]
        starts = range(0, len(newest_first), MOST_IDS)
        parts = [newest_first[start : start + MOST_IDS] for start in starts]
        if cleared and not parts:
            parts = [[]]
        events = [StoreReset(scope=scope, removed=ids) for ids in parts[:-1]]
        events += [StoreReset(scope=scope, removed=ids, cleared=cleared) for ids in parts[-1:]]
        return events, ResetResult(scope=scope, removed=_named(counts), kept=_named(kept))


def is_kept(row: Row) -> bool:
    """Return whether a memory is a fact to keep, promoted, pinned, or forgotten: that one stays hidden, so no source brings it back."""
    is_marked = row.get("is_pinned") or row.get("is_suppressed")
    return bool(is_marked) or row.get("source") in {*SAVED_SOURCES, PROMOTED_SOURCE}


def _kind(row: Row) -> str:
    return "records" if row.get("source") in RECORD_SOURCES else str(row["type"])


def _counted(table: str, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the rows that people count: no removed pins."""
    return [row for row in rows if is_pin(row)] if table == "Pin" else rows


def _named(counts: Counter[str]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if name and number}
