"""Folds events about memories and their links."""

from __future__ import annotations

from memgraph.fold.edges import attach, attachments, chain_of, detach, reattach
from memgraph.fold.workspace import Workspace
from memgraph.journal.envelope import Event
from memgraph.journal.vectors.vector_file import vectors_named
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
from memgraph.model.events.payload import sparse
from memgraph.model.events.records import AccessRecorded
from memgraph.model.events.store import MemoryPurged
from memgraph.model.memory import VECTOR_COLUMNS
from memgraph.ports import Row


def added(workspace: Workspace, event: Event, payload: MemoryAdded) -> None:
    """Fold ``memory.added``."""
    row = {**event.content["memory"], "seq": event.seq, **_vector_columns(payload.vector)}
    workspace.add("Memory", row["id"], row)
    attach(workspace, row)
    if chain := chain_of(row):
        _set_last(workspace, chain, row["id"])


def revised(workspace: Workspace, _event: Event, payload: MemoryRevised | MemoryMerged) -> None:
    """Fold ``memory.revised`` and ``memory.merged``."""
    row = workspace.get("Memory", payload.id)
    if row is not None:
        new = {**payload.row_after(row), **_vector_columns(payload.vector)}
        if payload.vector is None and new["content"] != row["content"]:
            new = {name: value for name, value in new.items() if name not in VECTOR_COLUMNS}  # the old text's vector
        _replace(workspace, row, new)


def reembedded(workspace: Workspace, _event: Event, payload: MemoryReembedded) -> None:
    """Fold ``memory.reembedded``."""
    for memory_id, vector in vectors_named(payload):
        row = workspace.get("Memory", memory_id)
        if row is not None:
            new = {**row, "embedded_at": payload.embedded_at, **_vector_columns(vector)}
            workspace.put("Memory", memory_id, new)


def deleted(workspace: Workspace, _event: Event, payload: MemoryDeleted) -> None:
    """Fold ``memory.deleted``: remove the memory, its edges, and nodes that only it was attached to.

    Its successors follow its predecessor.
    """
    remove(workspace, payload.id)


def remove(workspace: Workspace, memory_id: str) -> None:
    """Remove a memory, if it exists, with its edges and the nodes that only it was attached to."""
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
    chain = chain_of(row)
    node = workspace.get(*chain) if chain else None
    if chain and node and node.get("last_memory_id") == memory_id:
        _set_last(workspace, chain, previous_id)
    detach(workspace, attachments(row))


def undeleted(workspace: Workspace, event: Event, payload: MemoryUndeleted) -> None:
    """Fold ``memory.undeleted``: restore the memory to its place between its predecessor and its successors.

    A memory that exists is restated: it has the row of the event, and keeps its edges.
    """
    row = {**event.content["memory"], "seq": payload.added_seq, **_vector_columns(payload.vector)}
    known = workspace.get("Memory", row["id"])
    if known is None:
        workspace.add("Memory", row["id"], row)
        attach(workspace, row)
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
    chain = chain_of(row)
    node = workspace.get(*chain) if chain else None
    if chain and node and node.get("last_memory_id") == row.get("previous_id"):
        _set_last(workspace, chain, row["id"])


def purged(workspace: Workspace, _event: Event, payload: MemoryPurged) -> None:
    """Fold ``memory.purged``: the memories go, as when they are deleted, and their successors follow who is left."""
    for memory_id in payload.purged_ids():
        remove(workspace, memory_id)
    for follower in payload.followers:
        row = workspace.get("Memory", follower.id)
        if row is not None:
            _replace(workspace, row, sparse({**row, "previous_id": follower.previous_id}))


def linked(workspace: Workspace, _event: Event, payload: MemoryLinked) -> None:
    """Fold ``memory.linked``."""
    # an empty reason counts as none
    properties = {"score": payload.score, "reason": payload.reason or None, "created_at": payload.created_at}
    _link(workspace, payload.relation, payload.source_id, payload.target_id, sparse(properties))


def unlinked(workspace: Workspace, _event: Event, payload: MemoryUnlinked) -> None:
    """Fold ``memory.unlinked``."""
    workspace.put(payload.relation, (payload.source_id, payload.target_id), None)


def derived(workspace: Workspace, _event: Event, payload: MemoryDerived) -> None:
    """Fold ``memory.derived``: DERIVED_FROM to each source, SUPPORTS back."""
    properties: Row = {"created_at": payload.created_at}
    put = workspace.add if workspace.is_new("Memory", payload.id) else workspace.put  # a new memory had no links
    for source_id in payload.source_ids:
        if all(workspace.has("Memory", end) for end in (payload.id, source_id)):
            put("DERIVED_FROM", (payload.id, source_id), properties)
            put("SUPPORTS", (source_id, payload.id), properties)


def accessed(workspace: Workspace, _event: Event, payload: AccessRecorded) -> None:
    """Fold ``access.recorded``."""
    for effect in payload.accesses:
        row = workspace.get("Memory", effect.id)
        if row is not None:
            workspace.put("Memory", effect.id, {**row, **effect.model_dump()})


def _replace(workspace: Workspace, old: Row, new: Row) -> None:
    workspace.put("Memory", new["id"], new)
    reattach(workspace, old, new)


def _link(workspace: Workspace, relation: str, source_id: str, target_id: str, properties: Row) -> None:
    ends = (source_id, target_id)
    if all(workspace.has("Memory", end) for end in ends):
        workspace.put(relation, ends, properties)


def _set_last(workspace: Workspace, chain: tuple[str, str], memory_id: str | None) -> None:
    node = workspace.get(*chain)
    if node is not None:
        workspace.put(*chain, sparse({**node, "last_memory_id": memory_id}))


def _vector_columns(vector: VectorRef | None) -> Row:
    if vector is None:
        return {}
    return {"embedding_model": vector.model, "vector_row": vector.row, "vector_sha256": vector.sha256}
