"""The memories that may be shown and the links between them, as rows: what every export writes."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from memgraph.model.memory import AgentMemory, EpisodicMemory, MemoryFields, ProceduralMemory, SemanticMemory
from memgraph.store import AgentMemoryStore
from memgraph.viz.shown import shown_ids

Row = dict[str, Any]
Kind = Literal["text", "time", "number", "whole", "flag", "texts", "records"]

_READ_AT_ONCE = 1_000
_LEFT_OUT = frozenset({"embedding", "supporting_memory_ids"})
"""Fields that exports omit: vectors, and supporting memories, which the links express."""
_SCALARS: dict[Any, Kind] = {bool: "flag", int: "whole", float: "number", str: "text"}

EDGE_KINDS: dict[str, Kind] = {
    "source": "text",
    "target": "text",
    "relation": "text",
    "score": "number",
    "reason": "text",
    "created_at": "time",
}
"""The attributes of an edge. A NEXT edge, derived from the order of memories, has only the relation."""


@dataclass(frozen=True)
class Graph:
    """Memories and links.

    Attributes
    ----------
    nodes : list of dict
        One per memory, with those fields of `node_kinds` that are set; the most relevant first.
    edges : list of dict
        One per link, with those fields of `EDGE_KINDS` that are set; sorted by source, relation and target.
    """

    nodes: list[Row]
    edges: list[Row]


def shown_graph(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> Graph:
    """Return the part of a store that may be shown; parameters as for `memgraph.viz.shown.shown_ids`.

    Links and `previous_id` values that refer to hidden memories are omitted.
    """
    with store.reader.frozen():
        ranked = shown_ids(store, project_id=project_id, since=since, until=until, include=include, limit=limit)
        ids = frozenset(ranked)
        nodes = [_node(memory, ids) for part in _parts(ranked) for memory in store.reader.read(part)]
        links = store.reader.every_link()
    edges = [
        _set(
            {**link.model_dump(exclude={"source_id", "target_id"}), "source": link.source_id, "target": link.target_id}
        )
        for link in links
        if link.source_id in ids and link.target_id in ids
    ]
    edges += [
        {"source": node["previous_id"], "target": node["id"], "relation": "NEXT"}
        for node in nodes
        if "previous_id" in node
    ]
    edges.sort(key=lambda edge: (edge["source"], edge["relation"], edge["target"]))
    return Graph(nodes, edges)


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield ids in batches: complete memories need much more memory than the rows made from them."""
    yield from (ids[start : start + _READ_AT_ONCE] for start in range(0, len(ids), _READ_AT_ONCE))


@cache
def node_kinds() -> dict[str, Kind]:
    """Return the fields of all memory types with the kind of each."""
    kinds: dict[str, Kind] = {}
    models = (MemoryFields, AgentMemory, EpisodicMemory, SemanticMemory, ProceduralMemory)
    for model in models:
        for name, field in model.model_fields.items():
            if name not in _LEFT_OUT and name not in kinds:
                kinds[name] = "time" if name.endswith(("_at", "_date")) else _kind(field.annotation)
    return kinds


def _kind(annotation: Any) -> Kind:
    """Return the kind of a field with this annotation, optional or not."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin in {Union, types.UnionType}:
        return _kind(next(part for part in get_args(annotation) if part is not types.NoneType))
    if origin is list:
        return "texts" if _kind(get_args(annotation)[0]) == "text" else "records"
    return "text" if origin is Literal else _SCALARS.get(annotation, "records")


def _node(memory: AgentMemory, ids: Collection[str]) -> Row:
    """Return the exported fields of a memory; `previous_id` only if that memory is shown, too."""
    left_out = _LEFT_OUT if memory.previous_id in ids else _LEFT_OUT | {"previous_id"}
    return _set(memory.model_dump(mode="json", exclude=set(left_out)))


def _set(fields: Row) -> Row:
    """Return the fields that are set: neither None nor an empty list."""
    return {name: value for name, value in fields.items() if value is not None and value != []}
