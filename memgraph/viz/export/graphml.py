"""GraphML, for Gephi, yEd, Cytoscape and networkx. It has neither lists nor times: those are text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape

import orjson

from memgraph.text.cutting import preview
from memgraph.text.safe import xml_text
from memgraph.viz.export.graph import EDGE_KINDS, Graph, Kind, Row, node_kinds

_TYPES: dict[Kind, str] = {"flag": "boolean", "whole": "long", "number": "double"}
_ENDS = frozenset({"source", "target"})
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">"""


def graphml(graph: Graph) -> bytes:
    """Return a graph as GraphML, with the fields that are set somewhere.

    Lists and records are text in JSON, times text in ISO 8601. A character that XML cannot hold (most control characters) is
    replaced by U+FFFD. The field ``label``, which those programs show, is the beginning of a memory's text, or the relation of an edge.
    """
    return "\n".join(_lines(graph)).encode()


def _lines(graph: Graph) -> Iterator[str]:
    graph = Graph(
        [{**node, "label": preview(node["content"])} for node in graph.nodes],
        [{**edge, "label": edge["relation"]} for edge in graph.edges],
    )
    kinds: dict[str, dict[str, Kind]] = {
        "node": {"label": "text", **node_kinds()},
        "edge": {"label": "text", **EDGE_KINDS},
    }
    nodes = _keys("n", graph.nodes, kinds["node"], without=frozenset({"id"}))
    edges = _keys("e", graph.edges, kinds["edge"], without=_ENDS)
    yield _HEAD
    for place, keys in (("node", nodes), ("edge", edges)):
        for name, key in keys.items():
            kind = _TYPES.get(kinds[place][name], "string")
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
            yield f'      <data key="{key}">{_text(row[name])}</data>'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        value = orjson.dumps(value).decode()
    # a reader would make a line feed of a bare carriage return
    return escape(xml_text(value), {"\r": "&#13;"})
