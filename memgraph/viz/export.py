"""Exports: the memories that may be shown, what they name, and the links between all as GraphML, GEXF, node-link JSON and Parquet; series as Parquet."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from io import BytesIO
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from xml.sax.saxutils import escape

import orjson

from memgraph.errors import MissingExtraError
from memgraph.graph.implied import EDGES, Implied
from memgraph.model.build import event_id
from memgraph.model.ids import canonical_name, natural_id
from memgraph.model.memory import AgentMemory, EpisodicMemory, MemoryFields, ProceduralMemory, SemanticMemory
from memgraph.ports import Row, is_release
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader
from memgraph.text.cutting import preview
from memgraph.text.safe import xml_text
from memgraph.viz.reading import shown_ids
from memgraph.viz.series import Series

Kind = Literal["text", "time", "number", "whole", "flag", "texts", "records"]

_READ_AT_ONCE = 1_000
_COMMIT_CHARS = 12
"""Of its id, in an entity's name."""
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
_XML_TYPES: dict[Kind, str] = {"flag": "boolean", "whole": "long", "number": "double"}
_ENDS = frozenset({"source", "target"})
_XML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">"""


@dataclass(frozen=True)
class Graph:
    """Memories, the most relevant first, then what they name, with those fields of `node_kinds` that are set, and links, sorted, with those of `EDGE_KINDS`."""

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
    named: bool = False,
) -> Graph:
    """Return the part of a store that may be shown (parameters as for `shown_ids`), without what refers to hidden memories.

    With `named` it has a node for each thing that these memories name (see `memgraph.graph.implied`), one for all ways to name it: its
    `type` is what it is (file, commit, person, release, issue, agent, tag, project, build, run, test, session, turn, task, or an entity's
    kind), its `name` what it is called. Of a run are shown the tests that passed, and those of whose failure a memory is shown.
    """
    with store.reader.frozen():
        ranked = shown_ids(store, project_id=project_id, since=since, until=until, include=include, limit=limit)
        ids = frozenset(ranked)
        # in batches: complete memories need much more memory than the rows made from them
        parts = (ranked[start : start + _READ_AT_ONCE] for start in range(0, len(ranked), _READ_AT_ONCE))
        nodes = [_node(memory, ids) for part in parts for memory in store.reader.read(part)]
        links = store.reader.every_link()
        things, to_things = _named(nodes, store.reader) if named else ([], [])
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
    edges += to_things
    edges.sort(key=lambda edge: (edge["source"], edge["relation"], edge["target"]))
    return Graph(nodes + things, edges)


def _named(memories: Iterable[Row], reader: Reader) -> tuple[list[Row], list[Row]]:
    """Return the things that memories and the runs of their builds name, and the edges to them and between them."""
    found, told = Implied(), set[str]()
    for memory in memories:
        found.gather(memory["id"], memory)
        told.update(memory.get("source_event_ids", ()))
    for build in list(found.nodes["Build"].values()):
        key = natural_id("run", build["name"], project_id=build.get("project_id"))
        if run := reader.record("Run", key):
            failed = [one for one in run.get("failed", ()) if event_id(run["name"], one["task"]) in told]
            found.gather(run["id"], {**run, "failed": failed}, source_table="Run")
            found.nodes["Run"][run["id"]] = {name: run[name] for name in ("id", "name", "project_id")}
    nodes: list[Row] = []
    called: dict[tuple[str, str | None, str], str] = {}
    stands: dict[str, str] = {}
    for table in sorted(found.nodes, key=lambda table: _OTHERWISE.get(table, 0)):
        for key, node in found.nodes[table].items():
            kind, project, name = thing = _thing(node.get("kind", table.lower()), node)
            known = called.get(("person", None, name) if kind == "agent" else thing) if table in _OTHERWISE else None
            stands[key] = known or key
            if known is None:
                called.setdefault(thing, key)
                nodes.append(_set({"id": key, "type": kind, "name": node["name"], "project_id": project}))
    edges = {(*(stands.get(end, end) for end in ends), table) for table in EDGES for ends, _ in found.edges(table)}
    return nodes, [{"source": source, "target": target, "relation": relation} for source, target, relation in edges]


_OTHERWISE = {"Entity": 1, "Agent": 2}
"""Tables of what other tables may have a node for: read after them, in this order."""


def _thing(kind: str, node: Row) -> tuple[str, str | None, str]:
    """Return what a node stands for: its kind, its project, and its name in the form in which others name it."""
    if "kind" in node and is_release(kind, node["name"]):
        kind = "release"
    name = canonical_name(node["name"])
    shown = {"commit": name[:_COMMIT_CHARS], "issue": name.removeprefix("#")}.get(kind, name)
    return kind, None if kind == "person" else node.get("project_id"), shown


@cache
def node_kinds() -> dict[str, Kind]:
    """Return the fields of all memory types with the kind of each, and the name of what is no memory."""
    kinds: dict[str, Kind] = {}
    models = (MemoryFields, AgentMemory, EpisodicMemory, SemanticMemory, ProceduralMemory)
    for model in models:
        for name, field in model.model_fields.items():
            if name not in _LEFT_OUT and name not in kinds:
                kinds[name] = "time" if name.endswith(("_at", "_date")) else _kind(field.annotation)
    return {**kinds, "name": "text"}


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


def node_link(graph: Graph) -> bytes:
    """Return a graph as one JSON document, which networkx reads with ``node_link_graph(document, edges="edges")``."""
    edges = [{**edge, "key": edge["relation"]} for edge in graph.edges]
    document = {"directed": True, "multigraph": True, "graph": {}, "nodes": graph.nodes, "edges": edges}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def graphml(graph: Graph) -> bytes:
    """Return a graph as GraphML (for Gephi, yEd, Cytoscape, networkx), with the fields that are set somewhere.

    It has neither lists nor times: lists and records are text in JSON, times text in ISO 8601. A character that XML cannot hold (most
    control characters) is replaced by U+FFFD. The field ``label``, which those programs show, is the beginning of a memory's text, or the
    relation of an edge.
    """
    return "\n".join(_xml_lines(graph)).encode()


def gexf(graph: Graph) -> bytes:
    """Return a graph as GEXF 1.2 (for Gephi), written by networkx. What it cannot hold is as in `graphml`."""
    import networkx as nx

    network: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    graph = _labelled(graph)
    for node in graph.nodes:
        network.add_node(node["id"], **{name: _plain(value) for name, value in node.items() if name != "id"})
    for edge in graph.edges:
        fields = {name: _plain(value) for name, value in edge.items() if name not in _ENDS}
        network.add_edge(edge["source"], edge["target"], **fields)
    return ("\n".join(nx.generate_gexf(network)) + "\n").encode()  # type: ignore[no-untyped-call]


def _plain(value: Any) -> str | bool | int | float:
    if isinstance(value, bool | int | float):
        return value
    return xml_text(value if isinstance(value, str) else orjson.dumps(value).decode())


def _labelled(graph: Graph) -> Graph:
    return Graph(
        [{**node, "label": node["name"] if "name" in node else preview(node["content"])} for node in graph.nodes],
        [{**edge, "label": edge["relation"]} for edge in graph.edges],
    )


def _xml_lines(graph: Graph) -> Iterator[str]:
    graph = _labelled(graph)
    kinds: dict[str, dict[str, Kind]] = {
        "node": {"label": "text", **node_kinds()},
        "edge": {"label": "text", **EDGE_KINDS},
    }
    nodes = _keys("n", graph.nodes, kinds["node"], without=frozenset({"id"}))
    edges = _keys("e", graph.edges, kinds["edge"], without=_ENDS)
    yield _XML_HEAD
    for place, keys in (("node", nodes), ("edge", edges)):
        for name, key in keys.items():
            kind = _XML_TYPES.get(kinds[place][name], "string")
            yield f'  <key id="{key}" for="{place}" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph id="memgraph" edgedefault="directed">'
    for node in graph.nodes:
        yield f'    <node id="{node["id"]}">'
        yield from _data(node, nodes)
        yield "    </node>"
    for number, edge in enumerate(graph.edges):
        yield f'    <edge id="e{number}" source="{edge["source"]}" target="{edge["target"]}">'
        yield from _data(edge, edges)
        yield "    </edge>"
    yield "  </graph>\n</graphml>\n"


def _keys(prefix: str, rows: Iterable[Row], kinds: Mapping[str, Kind], *, without: frozenset[str]) -> dict[str, str]:
    """Return the fields that are set somewhere, in their order, with the short ids that stand for them."""
    there = set().union(*rows) - without
    return {name: f"{prefix}{number}" for number, name in enumerate(name for name in kinds if name in there)}


def _data(row: Row, keys: Mapping[str, str]) -> Iterator[str]:
    for name, key in keys.items():
        if name in row:
            yield f'      <data key="{key}">{_xml(row[name])}</data>'


def _xml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        value = orjson.dumps(value).decode()
    # a reader would make a line feed of a bare carriage return
    return escape(xml_text(value), {"\r": "&#13;"})


def graph_parquet(graph: Graph) -> tuple[bytes, bytes]:
    """Return a graph's nodes and its links, as a Parquet file each.

    All columns are there, whatever is set: times are timestamps in UTC, lists of texts are lists, other records text in JSON.
    """
    return _table(graph.nodes, node_kinds()), _table(graph.edges, EDGE_KINDS)


def series_parquet(series: Sequence[Series]) -> bytes:
    """Return series as one Parquet file in long form, with what each series is in its metadata, under ``definition:<series>``."""
    pa = _arrow()
    rows = [
        (one.name, one.unit, one.bucket, date.fromisoformat(point.at), point.group, point.value, point.count)
        for one in series
        for point in one.points
    ]
    names = ("series", "unit", "bucket", "at", "group", "value", "count")
    types = (pa.string(), pa.string(), pa.string(), pa.date32(), pa.string(), pa.float64(), pa.int64())
    schema = pa.schema(
        list(zip(names, types, strict=True)), {f"definition:{one.name}": one.definition for one in series}
    )
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    return _bytes(pa.Table.from_arrays(columns, schema=schema))


def _table(rows: Sequence[Row], kinds: Mapping[str, Kind]) -> bytes:
    pa = _arrow()
    types = {
        "text": pa.string(),
        "records": pa.string(),
        "texts": pa.list_(pa.string()),
        "time": pa.timestamp("ms", tz="UTC"),
        "number": pa.float64(),
        "whole": pa.int64(),
        "flag": pa.bool_(),
    }
    columns = {
        name: pa.array([_cell(row.get(name), kind) for row in rows], types[kind]) for name, kind in kinds.items()
    }
    return _bytes(pa.table(columns))


def _cell(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "time":
        return datetime.fromisoformat(value)
    return orjson.dumps(value).decode() if kind == "records" else value


def _bytes(table: Any) -> bytes:
    stream = BytesIO()
    _arrow().parquet.write_table(table, stream)
    return stream.getvalue()


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet files", package="pyarrow", extra="parquet") from None
    return pyarrow
