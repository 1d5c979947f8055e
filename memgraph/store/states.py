"""State transitions of memories (suppress, archive, invalidate, supersede, unlink, delete, and their reversals), and the reset of a store.

A memory is visible to `get_memory`, lists, recall, deduplication and statistics if *every* state that it is in allows
it (✓ visible to):

============ === ==== ====== ===== =====
state        get list recall dedup stats
============ === ==== ====== ===== =====
suppressed    ✓   ✗     ✗      ✗     ✓
archived      ✓   ✗     ✗      ✗     ✗
invalidated   ✓   ✗     ✗      ✗     ✓
superseded    ✓   ✓     ✗      ✗     ✓
deleted       ✗   ✗     ✗      ✗     ✗
============ === ==== ====== ===== =====

Pinning overrides none of them. A memory is superseded while a memory that replaces it, directly or through others, is
in force: if the newer one is forgotten, the older one counts again. Each transition is one commit in the memory's own
write scope, and a transition to the current state records nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.fold.records import tables_of
from memgraph.fold.tasks import is_pin
from memgraph.index.columns import PROMOTED_SOURCE, SAVED_SOURCES
from memgraph.model.base import checked
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked, MemoryUnlinked
from memgraph.model.events.payload import Actor
from memgraph.model.events.store import StoreReset
from memgraph.model.ids import stored_form
from memgraph.model.link import REPLACED, Link, oriented
from memgraph.model.memory import RECORD_SOURCES, StoredMemory
from memgraph.model.results.maintenance import ResetResult, ResetScope
from memgraph.model.timestamps import to_iso
from memgraph.ports import Row
from memgraph.store.commit.records import Write, scope_of
from memgraph.store.deletions import deleted_ids, reached, undeletions
from memgraph.store.listing import only_id
from memgraph.store.query import StorePart

_BOTH_HOLD = "neither replaces the other"


Changes = Callable[[Row, str], Mapping[str, Any]]
"""Returns the new values of a memory's fields, given its row and the time."""


@dataclass(eq=False)
class Transitions(StorePart):
    """Changes the states of memories, and links them."""

    _actor: Actor = "agent"

    def update_memory(self, id: str, /, **updates: Any) -> StoredMemory:
        """Change fields of a memory; new content is embedded again. Return the memory after the change.

        New content that plainly concerns health, money or identity numbers makes the memory's privacy tier stricter.
        """
        self._writer.update(id, updates, actor=self._actor)
        return self._reader.known(id)

    def suppress(self, id: str) -> StoredMemory:
        """Forget a memory: it is kept, but neither listed nor recalled."""
        return self._set(id, lambda _row, _now: {"is_suppressed": True})

    def unsuppress(self, id: str) -> StoredMemory:
        """Undo `suppress`."""
        return self._set(id, lambda _row, _now: {"is_suppressed": False})

    def archive(self, id: str, *, reason: str | None = None, summary: str | None = None) -> StoredMemory:
        """Archive a memory. If it is archived already, a given reason or summary replaces the old one."""
        return self._set(id, archiving(reason=reason, summary=summary))

    def unarchive(self, id: str) -> StoredMemory:
        """Undo `archive`, and clear its reason and summary."""
        return self._set(id, lambda _row, _now: {"archived_at": None})

    def invalidate(self, id: str, *, reason: str | None = None, at: str | None = None) -> StoredMemory:
        """Mark a memory as no longer true.

        Parameters
        ----------
        at : str, optional
            The time from which it is invalid, ISO 8601; it stays valid until a time in the future. Default: now, or the
            time at which it already became invalid.
        """
        return self._set(id, invalidating(reason=reason, at=at))

    def revalidate(self, id: str) -> StoredMemory:
        """Undo `invalidate`, and clear its reason."""
        return self._set(id, lambda _row, _now: {"invalid_at": None})

    def supersede(self, older_id: str, *, by: str, reason: str | None = None, score: float | None = None) -> Link:
        """Replace a memory with a newer one, which takes its place at recall; `unsupersede` undoes it."""
        with self._writer.exclusive():
            event = self.supersession(older_id, by=by, reason=reason, score=score)
            known = self._reader.record("SUPERSEDES", (event.source_id, event.target_id))
            if known is None or known != {**known, **_given(reason=reason, score=score)}:
                self._writer.append_about(event.source_id, lambda _row, _now: event, actor=self._actor)
        return Link.parse(event.model_dump())

    def supersession(
        self, older_id: str, *, by: str, reason: str | None = None, score: float | None = None
    ) -> MemoryLinked:
        """Return the event that `supersede` would commit, for a commit with other events. Raises the same errors."""
        older, newer = self._reader.known(older_id).id, self._reader.known(by).id
        if older == newer:
            raise InvalidInputError("is the memory itself", field="target_id", value=older_id)
        self.check_order(newer, [older], field="by")
        known = self._reader.record("SUPERSEDES", (newer, older)) or {"created_at": self._now()}
        said = {**known, **_given(reason=reason, score=score)}
        return MemoryLinked.parse({**said, "source_id": newer, "relation": "SUPERSEDES", "target_id": older})

    def unsupersede(self, older_id: str, *, by: str | None = None) -> list[str]:
        """Undo `supersede` by one memory or (None) by all; return the ids of those that no longer replace it.

        A memory that sleep or a search found replaced, and that was therefore invalid, is valid again. It is linked as
        RELATED_TO the memory that replaced it: so the pair is not compared again.
        """
        with self._writer.exclusive():
            older = self._reader.known(older_id)
            newer = self._superseding(older.id)
            if by is not None:
                wanted = self._reader.known(by).id
                newer = [one for one in newer if one == wanted]
            if newer:
                self._writer.commit(
                    scope_of(older), self._unsuperseding(older, newer), task_id=older.task_id, actor=self._actor
                )
            return newer

    def _unsuperseding(self, older: StoredMemory, newer: Sequence[str]) -> list[Write]:
        writes: list[Write] = [
            MemoryUnlinked(source_id=one, relation="SUPERSEDES", target_id=older.id) for one in newer
        ]
        if older.invalidation_reason == REPLACED and set(newer) == set(self._superseding(older.id)):
            writes.append(self._writer.revision(older.id, {"invalid_at": None}))
            now = self._now()
            writes += [
                MemoryLinked(
                    source_id=one, relation="RELATED_TO", target_id=older.id, reason=_BOTH_HOLD, created_at=now
                )
                for one in newer
            ]
        return writes

    def link(self, /, source_id: str, relation: str, target_id: str, **properties: Any) -> Link:
        """Link two memories, or change an existing link's properties (`score`, `reason`)."""
        source, name, target = oriented(source_id, relation, target_id)
        link = Link.parse(
            {"created_at": self._now(), **properties, "source_id": source, "relation": name, "target_id": target}
        )
        if link.source_id == link.target_id:
            raise InvalidInputError("is the memory itself", field="target_id", value=target_id)
        fields = link.model_dump()
        self._writer.append_about(link.source_id, lambda _row, _now: MemoryLinked(**fields), actor=self._actor)
        return link

    def unlink(self, source_id: str, relation: str, target_id: str) -> bool:
        """Remove a link made by `link`, `supersede` or a derivation, and return whether it existed."""
        source, name, target = oriented(source_id, relation, target_id)
        with self._writer.exclusive():
            source, target = self._reader.known(source).id, self._reader.known(target).id
            if self._reader.record(name, (source, target)) is None:
                return False
            gone = MemoryUnlinked.parse({"source_id": source, "relation": name, "target_id": target})
            self._writer.append_about(source, lambda _row, _now: gone, actor=self._actor)
        return True

    def delete_memory(self, id: str, *, reason: str | None = None) -> bool:
        """Remove a memory and its links from every view, and return whether it existed. Its history stays: see `undelete`."""
        checked(str, id, "id")
        try:
            self._writer.append_about(
                id, lambda row, _now: MemoryDeleted(id=row["id"], reason=reason), actor=self._actor
            )
        except NotFoundError:
            return False
        return True

    def undelete(self, id: str) -> StoredMemory:
        """Restore a deleted memory with its vector, its place among the others, and its links to existing memories.

        A damaged vector is not restored: the memory awaits a new one.
        """
        memory_id = stored_form(id)
        with self._writer.exclusive():
            if not self._is_there(memory_id):
                ((back, links),) = undeletions(self._journal, [memory_id], self._is_there, model=self._writer.model)
                self._writer.commit(
                    scope_of(back.memory), [back, *links], task_id=back.memory.task_id, actor=self._actor
                )
        return self._reader.known(memory_id)

    def find_id(self, beginning: str, *, deleted: bool = False) -> str:
        """Return the id with this prefix: a complete id unchanged, otherwise the only match.

        Parameters
        ----------
        deleted : bool
            Search deleted memories.
        """
        if deleted:
            return only_id(beginning, self._deleted_from)
        return only_id(beginning, self._reader.ids_from)

    def _deleted_from(self, beginning: str) -> list[str]:
        with self._reader.frozen():
            return [one for one in deleted_ids(self._journal, beginning) if not self._is_there(one)]

    def _set(self, id: str, changes: Changes) -> StoredMemory:
        """Change the fields that differ, if any."""
        with self._writer.exclusive():
            known = self._reader.known(id)
            row = self._reader.record("Memory", known.id) or {}
            wanted = changes(row, self._now())
            updates = {name: value for name, value in wanted.items() if getattr(known, name) != value}
            if updates:
                self._writer.update(known.id, updates, actor=self._actor)
        return self._reader.known(id)

    def check_order(self, newer_id: str, older_ids: Sequence[str], *, field: str = "keep") -> None:
        """Refuse to let a memory supersede others if one of them supersedes it, directly or through others."""
        newer = reached([newer_id], self._superseding)
        if found := sorted(newer.keys() & set(older_ids) - {newer_id}):
            problem = f"is itself superseded by {found[0]}; undo that first"
            raise InvalidInputError(problem, field=field, value=newer_id)

    def _superseding(self, memory_id: str) -> list[str]:
        links = self._reader.links(memory_id)
        return [link.source_id for link in links if link.relation == "SUPERSEDES" and link.target_id == memory_id]

    def _is_there(self, memory_id: str) -> bool:
        return self._reader.record("Memory", memory_id) is not None


def archiving(*, reason: str | None = None, summary: str | None = None) -> Changes:
    """Return the change that archives a memory."""
    said = _given(archive_reason=reason, archive_summary=summary)
    return lambda row, now: {"archived_at": row.get("archived_at", now), **said}


def invalidating(*, reason: str | None = None, at: str | None = None) -> Changes:
    """Return the change that marks a memory as no longer true from a time: by default now, or since it became invalid."""
    said, since = _given(invalidation_reason=reason), None if at is None else _time(at, "at")
    return lambda row, now: {"invalid_at": since or min(now, row.get("invalid_at", now)), **said}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _time(text: str, field: str) -> str:
    try:
        return to_iso(text)
    except ValueError:
        raise InvalidInputError("is not an ISO 8601 time", field=field, value=text) from None


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
