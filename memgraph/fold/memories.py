"""Folds and checks events about memories and their links. What a memory's other fields imply is not stored: see `memgraph.graph.implied`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.errors import DuplicateIdError, NotFoundError, ScopeError
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import CommitDraft, Event
from memgraph.journal.vectors import vectors_named
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryReembedded,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    VectorRef,
)
from memgraph.model.events.payload import Payload, sparse
from memgraph.model.events.records import AccessRecorded
from memgraph.model.events.store import MemoryPurged
from memgraph.model.ids import natural_id
from memgraph.model.memory import RECORD_SOURCES, VECTOR_COLUMNS
from memgraph.ports import Key, Row


def chain_of(memory: Row) -> tuple[str, str] | None:
    """Return (table, key) of the node that stores the last episode of a chain: the session, else the project."""
    project = memory.get("project_id")
    if memory["type"] != "episodic" or memory.get("source") in RECORD_SOURCES:
        return None
    if session := memory.get("session_id"):
        return "Session", natural_id("session", session, project_id=project)
    return ("Project", natural_id("project", project)) if project else None


def _added(workspace: Workspace, event: Event, payload: MemoryAdded) -> None:
    row = {**event.content["memory"], "seq": event.seq, **_vector_columns(payload.vector)}
    workspace.add("Memory", row["id"], row)
    _follow(workspace, row, workspace.add)
    _set_last(workspace, row, row["id"])


def _revised(workspace: Workspace, _event: Event, payload: MemoryRevised | MemoryMerged) -> None:
    row = workspace.get("Memory", payload.id)
    if row is not None:
        new = {**payload.row_after(row), **_vector_columns(payload.vector)}
        if payload.vector is None and new["content"] != row["content"]:
            new = {name: value for name, value in new.items() if name not in VECTOR_COLUMNS}  # the old text's vector
        _replace(workspace, row, new)


def _reembedded(workspace: Workspace, _event: Event, payload: MemoryReembedded) -> None:
    for memory_id, vector in vectors_named(payload):
        row = workspace.get("Memory", memory_id)
        if row is not None:
            new = {**row, "embedded_at": payload.embedded_at, **_vector_columns(vector)}
            workspace.put("Memory", memory_id, new)


def _deleted(workspace: Workspace, _event: Event, payload: MemoryDeleted) -> None:
    remove(workspace, payload.id)


def remove(workspace: Workspace, memory_id: str) -> None:
    """Remove a memory, if it exists, with its edges; its successors follow its predecessor."""
    row = workspace.get("Memory", memory_id)
    if row is None:
        return
    previous_id = row.get("previous_id")
    for table, key, _ in list(workspace.edges_at(memory_id)):
        follower = workspace.get("Memory", key[1]) if table == "NEXT" and key[0] == memory_id else None
        if follower is not None:
            _replace(workspace, follower, sparse({**follower, "previous_id": previous_id}))
        workspace.put(table, key, None)
    workspace.put("Memory", memory_id, None)
    if _last(workspace, row) == memory_id:
        _set_last(workspace, row, previous_id)


def _undeleted(workspace: Workspace, event: Event, payload: MemoryUndeleted) -> None:
    """Restore the memory to its place between its predecessor and successors; one that exists is restated, and keeps its edges."""
    row = {**event.content["memory"], "seq": payload.added_seq, **_vector_columns(payload.vector)}
    known = workspace.get("Memory", row["id"])
    if known is None:
        workspace.add("Memory", row["id"], row)
        _follow(workspace, row, workspace.add)
    else:
        _replace(workspace, known, row)
    for follower_id in payload.follower_ids:
        follower = workspace.get("Memory", follower_id)
        if follower is not None:
            _replace(workspace, follower, {**follower, "previous_id": row["id"]})
            workspace.put("NEXT", (row["id"], follower_id), {})  # the follower may have named it all along
    for recall in payload.recalls:
        if workspace.get("Recall", recall.query_id) is not None:
            edge = sparse(recall.model_dump(exclude={"query_id"}))
            workspace.put("RECALLED", (recall.query_id, row["id"]), edge)
    if _last(workspace, row) == row.get("previous_id"):
        _set_last(workspace, row, row["id"])


def _purged(workspace: Workspace, _event: Event, payload: MemoryPurged) -> None:
    """Remove the memories, as when they are deleted; their successors follow who is left."""
    for memory_id in payload.purged_ids():
        remove(workspace, memory_id)
    for follower in payload.followers:
        row = workspace.get("Memory", follower.id)
        if row is not None:
            _replace(workspace, row, sparse({**row, "previous_id": follower.previous_id}))


def _linked(workspace: Workspace, _event: Event, payload: MemoryLinked) -> None:
    ends = (payload.source_id, payload.target_id)
    if all(workspace.has("Memory", end) for end in ends):
        # an empty reason counts as none
        properties = {"score": payload.score, "reason": payload.reason or None, "created_at": payload.created_at}
        workspace.put(payload.relation, ends, sparse(properties))


def _unlinked(workspace: Workspace, _event: Event, payload: MemoryUnlinked) -> None:
    workspace.put(payload.relation, (payload.source_id, payload.target_id), None)


def _derived(workspace: Workspace, _event: Event, payload: MemoryDerived) -> None:
    """DERIVED_FROM to each source, SUPPORTS back."""
    properties: Row = {"created_at": payload.created_at}
    put = workspace.add if workspace.is_new("Memory", payload.id) else workspace.put  # a new memory had no links
    for source_id in payload.source_ids:
        if all(workspace.has("Memory", end) for end in (payload.id, source_id)):
            put("DERIVED_FROM", (payload.id, source_id), properties)
            put("SUPPORTS", (source_id, payload.id), properties)


def _accessed(workspace: Workspace, _event: Event, payload: AccessRecorded) -> None:
    for effect in payload.accesses:
        row = workspace.get("Memory", effect.id)
        if row is not None:
            workspace.put("Memory", effect.id, {**row, **vars(effect)})


def _replace(workspace: Workspace, old: Row, new: Row) -> None:
    workspace.put("Memory", new["id"], new)
    if old.get("previous_id") != new.get("previous_id"):
        if "previous_id" in old:
            workspace.put("NEXT", (old["previous_id"], new["id"]), None)
        _follow(workspace, new, workspace.put)


def _follow(workspace: Workspace, memory: Row, put: Callable[[str, Key, Row], None]) -> None:
    """Put a memory after its predecessor, unless that was deleted."""
    previous = memory.get("previous_id")
    if previous and workspace.has("Memory", previous):
        put("NEXT", (previous, memory["id"]), {})


def _last(workspace: Workspace, memory: Row) -> str | None:
    """Return the last episode of a memory's chain; "" if it has none."""
    chain = chain_of(memory)
    return (workspace.get(*chain) or {}).get("last_memory_id") if chain else ""


def _set_last(workspace: Workspace, memory: Row, last_id: str | None) -> None:
    """Set the last episode of a memory's chain. The node has a row of its own only while it states one."""
    if chain := chain_of(memory):
        table, key = chain
        named = {"id": key, "name": memory[f"{table.lower()}_id"], "last_memory_id": last_id}
        project_id = memory.get("project_id") if table == "Session" else None
        workspace.put(table, key, sparse({**named, "project_id": project_id}) if last_id else None)


def _vector_columns(vector: VectorRef | None) -> Row:
    if vector is None:
        return {}
    return {"embedding_model": vector.model, "vector_row": vector.row, "vector_sha256": vector.sha256}


def check(rows: Workspace, draft: CommitDraft, payload: Payload) -> None:
    """Refuse memories that exist already, do not exist, or belong to another write scope than the commit; put those that are accepted."""
    if isinstance(payload, MemoryAdded | MemoryUndeleted):
        memory_id = payload.memory.id
        if payload.memory.task_id != draft.task_id:
            raise ScopeError(
                f"memory {memory_id} belongs to task {payload.memory.task_id!r}, the commit to {draft.task_id!r}: one commit "
                "has one write scope; commit each task's memories separately"
            )
        if rows.is_new("Memory", memory_id):
            raise DuplicateIdError(memory_id, where="in this call")
        if rows.has("Memory", memory_id):
            raise DuplicateIdError(memory_id)
        memory = payload.memory
        rows.add("Memory", memory_id, {"id": memory_id, "task_id": memory.task_id, "is_pinned": memory.is_pinned})
    elif isinstance(payload, MemoryRevised | MemoryMerged | MemoryDeleted):
        row = rows.get("Memory", payload.id)
        if row is None:
            raise NotFoundError("memory", payload.id)
        if row.get("task_id") != draft.task_id:
            raise ScopeError(
                f"memory {payload.id} belongs to task {row.get('task_id')!r}, the commit to {draft.task_id!r}: one commit "
                "has one write scope"
            )
        if isinstance(payload, MemoryDeleted):
            rows.put("Memory", payload.id, None)
    else:
        for memory_id in payload.memory_ids():
            if not rows.has("Memory", memory_id):
                raise NotFoundError("memory", memory_id)


HANDLERS: dict[str, Callable[[Workspace, Event, Any], None]] = {
    MemoryAdded.TYPE: _added,
    MemoryRevised.TYPE: _revised,
    MemoryMerged.TYPE: _revised,
    MemoryReembedded.TYPE: _reembedded,
    MemoryDeleted.TYPE: _deleted,
    MemoryUndeleted.TYPE: _undeleted,
    MemoryPurged.TYPE: _purged,
    MemoryLinked.TYPE: _linked,
    MemoryUnlinked.TYPE: _unlinked,
    MemoryDerived.TYPE: _derived,
    AccessRecorded.TYPE: _accessed,
}
