"""Edges and nodes that follow from a memory's fields, and so need no event of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memgraph.fold.workspace import Workspace
from memgraph.model.ids import canonical_name, natural_id
from memgraph.ports import Row

FIELDS = frozenset(
    {"project_id", "build_id", "session_id", "task_id", "previous_id", "agents_involved", "tags", "entities"}
    | {"evidence_build_ids"}
)
"""Fields that edges follow from: a change of any other leaves them alone."""


NODE_TABLES = ("Project", "Build", "Session", "Task", "Agent", "Tag", "Entity")
"""Tables of the nodes that memories are attached to."""


class Attachment(NamedTuple):
    """An edge from or to a memory, and the node at its other end (None: another memory)."""

    table: str
    source: str
    target: str
    row: Row | None = None
    node_table: str | None = None
    node: Row | None = None


def attachments(memory: Row) -> Iterator[Attachment]:
    """Yield the edges that a memory's row implies."""
    me, project = memory["id"], memory.get("project_id")
    if project:
        yield _to_node(me, "IN_PROJECT", "Project", natural_id("project", project), {"name": project})
    for build in dict.fromkeys([*filter(None, [memory.get("build_id")]), *memory.get("evidence_build_ids", ())]):
        key = natural_id("build", build, project_id=project)
        yield _to_node(me, "FROM_BUILD", "Build", key, {"name": build, "project_id": project})
    if session := memory.get("session_id"):
        key = natural_id("session", session, project_id=project)
        yield _to_node(me, "IN_SESSION", "Session", key, {"name": session, "project_id": project})
    if task := memory.get("task_id"):
        key = natural_id("task", task, project_id=project)
        yield _to_node(me, "IN_TASK", "Task", key, {"name": task, "project_id": project})
    for agent in memory.get("agents_involved", ()):
        yield _to_node(me, "INVOLVES", "Agent", natural_id("agent", agent), {"name": agent})
    for tag in memory.get("tags", ()):
        yield _to_node(me, "TAGGED", "Tag", natural_id("tag", canonical_name(tag)), {"name": tag})
    for entity in memory.get("entities", ()):
        key = entity_key(entity["kind"], entity["name"], project)
        node = {"name": entity["name"], "kind": entity["kind"], "project_id": project}
        yield _to_node(me, "MENTIONS", "Entity", key, node, about=entity.get("about", False))
    if previous := memory.get("previous_id"):
        yield Attachment("NEXT", previous, me)


def entity_key(kind: str, name: str, project_id: str | None) -> str:
    """Return the id of an entity of a project (or of none)."""
    return natural_id(f"entity:{kind}", canonical_name(name), project_id=project_id)


def attach(workspace: Workspace, memory: Row) -> None:
    """Make the edges, and the nodes they need, that a new memory implies."""
    for edge in attachments(memory):
        if _has_ends(workspace, edge):
            workspace.add(edge.table, (edge.source, edge.target), edge.row or {})


def reattach(workspace: Workspace, old: Row, new: Row) -> None:
    """Bring the edges from what a memory's old row implies to what its new one does."""
    if all(old.get(name) == new.get(name) for name in FIELDS):
        return
    before = {(edge.table, (edge.source, edge.target)): edge for edge in attachments(old)}
    after = {(edge.table, (edge.source, edge.target)): edge for edge in attachments(new)}
    for table, key in before.keys() - after.keys():
        workspace.put(table, key, None)
    for (table, key), edge in after.items():
        if before.get((table, key)) != edge and _has_ends(workspace, edge):
            workspace.put(table, key, edge.row or {})


def _has_ends(workspace: Workspace, edge: Attachment) -> bool:
    """See to it that the edge's other node is there; a predecessor that was deleted is not."""
    if edge.node_table is None:
        return workspace.get("Memory", edge.source) is not None
    workspace.ensure(edge.node_table, edge.target, {"id": edge.target, **(edge.node or {})})
    return True


def chain_of(memory: Row) -> tuple[str, str] | None:
    """Return (table, key) of the node that knows an episode's predecessor: its session, else its project."""
    project = memory.get("project_id")
    if memory["type"] != "episodic":
        return None
    if session := memory.get("session_id"):
        return "Session", natural_id("session", session, project_id=project)
    return ("Project", natural_id("project", project)) if project else None


def _to_node(me: str, table: str, node_table: str, key: str, node: dict[str, object], **row: object) -> Attachment:
    return Attachment(
        table, me, key, row, node_table, {name: value for name, value in node.items() if value is not None}
    )
