"""Edges and nodes that are derived from a memory's fields and therefore need no events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from memgraph.fold.workspace import Workspace
from memgraph.model.ids import canonical_name, natural_id, short_name
from memgraph.model.memory import Role, fields_with
from memgraph.ports import Row

FIELDS = fields_with(Role.EDGE)
NODE_TABLES = ("Project", "Build", "Session", "Task", "Agent", "Tag", "Entity")
"""Tables of the nodes that memories are attached to."""


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


Place = tuple[str, tuple[str, str]]
"""Table and key of an edge."""
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
            workspace.add(edge.table, (edge.source, edge.target), edge.row)


def reattach(workspace: Workspace, old: Row, new: Row) -> None:
    """Replace the edges that a memory's old row implies with those of its new row."""
    if all(old.get(name) == new.get(name) for name in FIELDS):
        return
    before = {(edge.table, (edge.source, edge.target)): edge for edge in attachments(old)}
    after = {(edge.table, (edge.source, edge.target)): edge for edge in attachments(new)}
    for table, key in sorted(before.keys() - after.keys()):
        _put(workspace, table, key, before, None)
    for (table, key), edge in after.items():
        if before.get((table, key)) != edge and _has_ends(workspace, edge):
            _put(workspace, table, key, before, edge.row)
    detach(workspace, (before[place] for place in sorted(before.keys() - after.keys())))


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


def _put(
    workspace: Workspace, table: str, key: tuple[str, str], before: Mapping[Place, Attachment], row: Row | None
) -> None:
    """Set or remove an edge. Exactly the edges that the old row implied exist, except those without a node at the other end."""
    if table == "NEXT":
        workspace.put(table, key, row)
    else:
        known = before.get((table, key))
        workspace.replace(table, key, None if known is None else known.row, row)


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
