"""What a store answers beyond memories: Cypher, the named queries, and its memories and links as a network."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from memgraph.graph.guard import check_values
from memgraph.graph.queries import named_query
from memgraph.logs import logger_of, timed
from memgraph.model.base import Name, checked
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.results.rows import Rows
from memgraph.store.projection.projector import Projector
from memgraph.store.query import Reader
from memgraph.store.visibility import shown

if TYPE_CHECKING:
    import networkx as nx

logger = logger_of(__name__)

_OF_THE_STORE = frozenset({"id", "seq", "vector_row", "vector_sha256", "embedding_model", "embedded_at"})


class Queries:
    """What analysts ask a store.

    Parameters
    ----------
    check_graph : callable
        Raises where the graph's files are no longer there.
    """

    def __init__(
        self,
        projector: Projector,
        reader: Reader,
        now: Callable[[], str],
        *,
        check_graph: Callable[[], None] = lambda: None,
    ) -> None:
        self._projector = projector
        self._reader = reader
        self._now = now
        self._check_graph = check_graph

    def cypher(self, query: str, /, **params: Any) -> Rows:
        """Run a reading Cypher query over the graph, in a process of its own: what it does there harms nobody.

        It may take 30 s and 2 GB, and give 100,000 rows; `params` are values for exactly the names that it holds as ``$name``. A
        query that has kept others waiting for a second starts again on a copy of the graph as it is then, so that they can go on.

        Returns
        -------
        Rows
            A list of dictionaries; as `Rows` it knows its columns and makes tables for Arrow, Polars and pandas.

        Raises
        ------
        QueryError
            The query is not one plain reading statement, lacks a parameter or has one of no value that the engine takes, fails,
            or takes more than it may.
        InvalidInputError
            It is no text.
        StorageError
            The graph is a view of the past that somebody has removed from the disk.
        """
        check_values(params)
        self._check_graph()
        self._reader.settle()
        projector = self._projector
        with timed(logger, logging.DEBUG, "answered a query") as counts:
            with projector.holding():
                gives_way = projector.gives_way()
                answer = projector.ask(lambda engine: engine.cypher(query, params, gives_way=gives_way))
            rows = answer if isinstance(answer, Rows) else answer()
            counts["rows"] = len(rows)
            return rows

    def query(self, name: str, /, **params: Any) -> Rows:
        """Run one of the named queries; ``memgraph queries`` lists them, and `queries/` holds them.

        Parameters
        ----------
        params : Any
            Values for its parameters; those that are left out have their defaults. A time is an aware datetime or ISO 8601.

        Raises
        ------
        QueryError
            There is no such query, a parameter lacks, or it has none of this name.
        InvalidInputError
            A value is not of its parameter's type, or not one that it may have.
        """
        found = named_query(name)
        return self.cypher(found.text, **found.values(params, now=self._now()))

    def to_networkx(self, *, project_id: str | None = None, include: Collection[str] = ()) -> nx.MultiDiGraph[str]:
        """Return memories and the links between them as a network of networkx.

        A node is a memory's id; its attributes are what the memory says, and its `relevance` now. An edge's key is the relation;
        its attributes are the link's score, reason and created_at, where it has them.

        Parameters
        ----------
        project_id : str, optional
            Of this project only.
        include : collection of str
            Of ``suppressed``, ``archived``, ``sensitive``, ``private``: what is left out unless it is named here (see
            `memgraph.store.visibility`); so is what sleep made of it.

        Raises
        ------
        InvalidInputError
            Something else is to be included.
        """
        import networkx as nx

        checked(Name | None, project_id, "project_id")
        include = checked(str | set[str], include, "include")
        network: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self._reader.settle()
        with self._reader.frozen(links=True):
            index = self._reader.index
            slots = np.flatnonzero(shown(self._reader, project_id=project_id, include=include))
            relevance = dict(zip((index.ids.names[slot] for slot in slots), self._reader.relevance(slots), strict=True))
            for row in self._reader.rows(list(relevance)):
                told = {name: value for name, value in row.items() if name not in _OF_THE_STORE}
                if told.get("previous_id") not in relevance:
                    told.pop("previous_id", None)
                network.add_node(row["id"], **told, relevance=float(relevance[row["id"]]))
            for relation in (*EXPLICIT_RELATIONS, "NEXT"):
                for ends, row in self._projector.ask(lambda engine, relation=relation: list(engine.scan(relation))):  # type: ignore[misc]
                    if ends[0] in relevance and ends[1] in relevance:
                        network.add_edge(*ends, key=relation, **row)
        return network
