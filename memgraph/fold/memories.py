"""Folds and checks events about memories and their links, with the edges and nodes that follow from a memory's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

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
from memgraph.model.ids import canonical_name, natural_id, short_name
from memgraph.model.memory import VECTOR_COLUMNS, Role, fields_with
from memgraph.ports import Row

FIELDS = fields_with(Role.EDGE)
"""Fields from which edges are derived."""


class Node(NamedTuple):
    """A node that memories are attached to."""

    table: str
    key: str
    row: Row


class Attachment(NamedTuple):
    """An edge from or to a memory, and the node at its other end (None: another memory)."""

    table: str
    source: str
    target: str
    row: Row
    node: Node | None

    @property
    def place(self) -> tuple[str, tuple[str, str]]:
        """Table and key of the edge."""
        return self.table, (self.source, self.target)


_STAYS = frozenset({"consolidated_at", "status", "known_at"})
"""Fields of nodes that stay without memories."""
_BARE: Row = {}
"""Row of an edge without properties. Rows are never modified, so all such edges share it."""


def attachments(memory: Row) -> Iterator[Attachment]:
    """Yield the edges that a memory's row implies."""
    me, project = memory["id"], memory.get("project_id")
    if project:
        yield _to_node(me, "IN_PROJECT", node_of("Project", project))
    for build in dict.fromkeys([*filter(None, [memory.get("build_id")]), *memory.get("evidence_build_ids", ())]):
        yield _to_node(me, "FROM_BUILD", node_of("Build", build, project))
    if session := memory.get("session_id"):
        yield _to_node(me, "IN_SESSION", node_of("Session", session, project))
    if task := memory.get("task_id"):
        yield _to_node(me, "IN_TASK", node_of("Task", task))
    for agent in memory.get("agents_involved", ()):
        yield _to_node(me, "INVOLVES", node_of("Agent", agent))
    for tag in memory.get("tags", ()):
        yield _to_node(me, "TAGGED", node_of("Tag", tag))
    for entity in memory.get("entities", ()):
        node = _entity_node(entity["kind"], entity["name"], project)
        yield _to_node(me, "MENTIONS", node, {"about": entity.get("about", False)})
    if previous := memory.get("previous_id"):
        yield Attachment("NEXT", previous, me, _BARE, None)


def bare(node: Row) -> Row:
    """Return the row of a node as memories alone imply it."""
    return {name: node[name] for name in ("id", "name", "project_id") if name in node}


def _to_node(me: str, table: str, node: Node, row: Row = _BARE) -> Attachment:
    return Attachment(table, me, node.key, row, node)


@lru_cache(maxsize=65_536)
def node_of(table: str, name: str, project_id: str | None = None) -> Node:
    """Return the node of a name, as memories are attached to it."""
    known_as = canonical_name(name) if table == "Tag" else name
    key = natural_id(table.lower(), known_as, project_id=project_id)
    row = {"id": key, "name": name, "project_id": project_id}
    return Node(table, key, {field: value for field, value in row.items() if value is not None})


@lru_cache(maxsize=65_536)
def _entity_node(kind: str, name: str, project_id: str | None) -> Node:
    key = natural_id(f"entity:{kind}", canonical_name(name), project_id=project_id)
    row = {"id": key, "name": name, "kind": kind, "project_id": project_id, "short_name": short_name(kind, name)}
    return Node("Entity", key, {field: value for field, value in row.items() if value is not None})


def attach(workspace: Workspace, memory: Row) -> None:
    """Create the edges that a new memory implies, and their nodes."""
    for edge in attachments(memory):
        if _has_ends(workspace, edge):
            workspace.add(*edge.place, edge.row)


def reattach(workspace: Workspace, old: Row, new: Row) -> None:
    """Replace the edges that a memory's old row implies with those of its new row."""
    if all(old.get(name) == new.get(name) for name in FIELDS):
        return
    before, after = ({edge.place: edge for edge in attachments(memory)} for memory in (old, new))
    removed = [before[place] for place in sorted(before.keys() - after.keys())]
    for edge in removed:
        _put(workspace, edge, edge, None)
    for place, edge in after.items():
        if before.get(place) != edge and _has_ends(workspace, edge):
            _put(workspace, edge, before.get(place), edge.row)
    detach(workspace, removed)


def detach(workspace: Workspace, removed: Iterable[Attachment]) -> None:
    """Remove nodes at the ends of removed edges that no memory is attached to any more.

    A consolidated build stays, because its record states what of it has been read; so does a registered task, and an agent with a ledger or handoffs.
    """
    for edge in removed:
        row = workspace.get(edge.node.table, edge.node.key) if edge.node else None
        if edge.node is None or row is None or not _STAYS.isdisjoint(row):
            continue
        if not workspace.is_attached(edge.table, edge.node.key):
            workspace.put(edge.node.table, edge.node.key, None)


def _put(workspace: Workspace, edge: Attachment, old: Attachment | None, row: Row | None) -> None:
    """Set or remove an edge. Exactly the edges that the old row implied exist, except those without a node at the other end."""
    if edge.table == "NEXT":
        workspace.put(*edge.place, row)
    else:
        workspace.replace(*edge.place, None if old is None else old.row, row)


def _has_ends(workspace: Workspace, edge: Attachment) -> bool:
    """Ensure that the edge's other node exists, and return whether it does; a deleted predecessor does not."""
    if edge.node is None:
        return workspace.get("Memory", edge.source) is not None
    workspace.ensure(*edge.node)
    return True


def chain_of(memory: Row) -> tuple[str, str] | None:
    """Return (table, key) of the node that stores the last episode of a chain: the session, else the project."""
    project = memory.get("project_id")
    if memory["type"] != "episodic":
        return None
    if session := memory.get("session_id"):
        return "Session", natural_id("session", session, project_id=project)
    return ("Project", natural_id("project", project)) if project else None


def _added(workspace: Workspace, event: Event, payload: MemoryAdded) -> None:
    row = {**event.content["memory"], "seq": event.seq, **_vector_columns(payload.vector)}
    workspace.add("Memory", row["id"], row)
    attach(workspace, row)
    if chain := chain_of(row):
        _set_last(workspace, chain, row["id"])


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
    """Remove a memory, if it exists, with its edges and the nodes that only it was attached to; its successors follow its predecessor."""
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


def _undeleted(workspace: Workspace, event: Event, payload: MemoryUndeleted) -> None:
    """Restore the memory to its place between its predecessor and its successors.

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
            workspace.put("Memory", effect.id, {**row, **effect.model_dump()})


def _replace(workspace: Workspace, old: Row, new: Row) -> None:
    workspace.put("Memory", new["id"], new)
    reattach(workspace, old, new)


def _set_last(workspace: Workspace, chain: tuple[str, str], memory_id: str | None) -> None:
    node = workspace.get(*chain)
    if node is not None:
        workspace.put(*chain, sparse({**node, "last_memory_id": memory_id}))


def _vector_columns(vector: VectorRef | None) -> Row:
    if vector is None:
        return {}
    return {"embedding_model": vector.model, "vector_row": vector.row, "vector_sha256": vector.sha256}


def check(rows: Workspace, draft: CommitDraft, payload: Payload) -> None:
    """Refuse memories that exist already, do not exist, or belong to another write scope than the commit, as the event requires.

    Of an event that is not refused, what later ones of the call are checked against is put.
    """
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
