"""Node-link JSON: what networkx reads with ``node_link_graph(document, edges="edges")``."""

from __future__ import annotations

import orjson

from memgraph.viz.export.graph import Graph


def node_link(graph: Graph) -> bytes:
    """Return a graph as one JSON document: a directed multigraph whose edges have their relation as key.

    Every field is as JSON holds it; what is not set is absent.
    """
    edges = [{**edge, "key": edge["relation"]} for edge in graph.edges]
    document = {"directed": True, "multigraph": True, "graph": {}, "nodes": graph.nodes, "edges": edges}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
