"""What is made of a journal, as a whole: Cypher, the named queries and a networkx graph; checking and rebuilding it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from memgraph.errors import ReadOnlyError
from memgraph.graph.guard import check_values
from memgraph.graph.queries import named_query
from memgraph.journal.journal import Sizes
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, Name, checked
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import VECTOR_COLUMNS
from memgraph.model.results.rows import Rows
from memgraph.ports import Progress
from memgraph.store.access.visibility import shown
from memgraph.store.query import StorePart

if TYPE_CHECKING:
    import networkx as nx

logger = logger_of(__name__)

_OF_THE_STORE = VECTOR_COLUMNS | {"id", "seq"}


@dataclass(eq=False)
class Projections(StorePart):
    """Queries on the rows and the graph of a store, their checks and rebuilds."""

    _check_files: Callable[[], None]
    """Raises if the graph's files are missing."""
    _refused: str
    """Why nothing may be rebuilt."""
    on_query: Callable[[], None] = lambda: None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Mark a block as a batch of many writes, after which the graph of a large store is written in the background. Nests."""
        with self._projector.graph.written_after():
            yield

    def check_graph(self) -> None:
        """Compare memories and links with their digest, and rebuild rows that deviate.

        Takes about 10 microseconds per memory and link. Exports and sleep begin with it, so that no lost data is passed on or
        learned from.
        """
        self._writer.flush()
        self._projector.check()

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the verified journal into new rows and a new index."""
        checked(Callback, progress, "progress")
        if self._refused:
            raise ReadOnlyError(self._refused)
        self._writer.flush()
        self._projector.rebuild(progress)
        self._projector.forget()

    def graph_lag(self) -> int | None:
        """Return by how many events the rows were behind the journal when this process first read them; reads them if need be."""
        self._projector.catch_up()
        return self._projector.first_lag

    def sizes(self) -> Sizes:
        """Return the bytes of the journal's parts."""
        return self._projector.journal.sizes()

    def cypher(self, query: str, /, **params: Any) -> Rows:
        """Run a read-only Cypher query on the graph, in a separate process that isolates its failures.

        Limits: 30 s, 2 GB and 100,000 rows; `params` are values for exactly the names that the query contains as
        ``$name``. A query that takes long does not keep the next one waiting, which runs beside it in a second process.

        Returns
        -------
        Rows
            A list of dictionaries that knows its columns and converts to Arrow, Polars and pandas tables.

        Raises
        ------
        QueryError
            The query is not a single read-only statement, has a missing parameter or one with a value unsupported by
            the engine, fails, or exceeds a limit.
        StorageError
            The graph belongs to a view of the past that has been removed from the disk.
        """
        check_values(params)
        self._check_files()
        self._reader.settle()
        with timed(logger, logging.DEBUG, "answered a query") as counts:
            rows = self._projector.graph.query(query, params)
            counts["rows"] = len(rows)
            self.on_query()
            return rows

    def query(self, name: str, /, **params: Any) -> Rows:
        """Run one of the named queries, which are stored in `queries/` and listed by ``memgraph queries``.

        Parameters
        ----------
        params : Any
            Parameter values; omitted parameters have their defaults. A time is an aware datetime or ISO 8601.

        Raises
        ------
        QueryError
            The query does not exist, a parameter is missing, or an unknown one is given.
        InvalidInputError
            A value does not have its parameter's type, or is not allowed.
        """
        found = named_query(name)
        return self.cypher(found.text, **found.values(params, now=self._now()))

    def to_networkx(self, *, project_id: str | None = None, include: Collection[str] = ()) -> nx.MultiDiGraph[str]:
        """Return memories and the links between them as a networkx graph.

        A node is a memory's id; its attributes are the memory's fields and its current `relevance`. An edge's key is
        the relation; its attributes are the link's score, reason and created_at, if set.

        Parameters
        ----------
        project_id : str, optional
            Only memories of this project.
        include : collection of str
            Any of ``suppressed``, ``archived``, ``sensitive``, ``private``: such memories, and memories that sleep
            derived from them, are left out unless named here (see `memgraph.store.access.visibility`).

        Raises
        ------
        InvalidInputError
            `include` has another value.
        """
        import networkx as nx

        checked(Name | None, project_id, "project_id")
        include = checked(str | set[str], include, "include")
        network: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self._reader.settle()
        with self._reader.frozen():
            index = self._reader.index
            slots = np.flatnonzero(shown(self._reader, project_id=project_id, include=include))
            relevance = dict(zip((index.ids.names[slot] for slot in slots), self._reader.relevance(slots), strict=True))
            for row in self._reader.rows(list(relevance)):
                fields = {name: value for name, value in row.items() if name not in _OF_THE_STORE}
                if fields.get("previous_id") not in relevance:
                    fields.pop("previous_id", None)
                network.add_node(row["id"], **fields, relevance=float(relevance[row["id"]]))
            for relation in (*EXPLICIT_RELATIONS, "NEXT"):
                for ends, row in self._projector.rows.scan(relation):
                    if ends[0] in relevance and ends[1] in relevance:
                        network.add_edge(*ends, key=relation, **row)
        return network
