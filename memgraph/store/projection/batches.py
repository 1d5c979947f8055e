"""Batches of writes, and operations on the projections as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memgraph.errors import ReadOnlyError
from memgraph.model.base import Callback, checked
from memgraph.ports import Progress
from memgraph.store.projection.projector import Projector


class Batches:
    """The batches of one store, and operations on its projections as a whole. Thread-safe.

    Parameters
    ----------
    flush : callable
        Commits pending uses.
    refused : str
        Why rows and index may not be rebuilt; empty if they may.
    """

    def __init__(self, projector: Projector, *, flush: Callable[[], None], refused: str = "") -> None:
        self._projector = projector
        self._flush = flush
        self._refused = refused

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Mark a block as a batch of many writes, after which the graph is written in the background if a query would take long to write it.

        Nests. Imports, readers, sleep and large inserts are batches of their own.
        """
        with self._projector.graph.written_after():
            yield

    def check_graph(self) -> None:
        """Compare memories and links with their digest, and rebuild rows that deviate.

        Takes about 10 microseconds per memory and link. Exports and sleep begin with it, so that no lost data is passed on or
        learned from.
        """
        self._flush()
        self._projector.check()

    def compact(self) -> bool:
        """Compress closed segments of the journal.

        Returns
        -------
        bool
            False: a graph needs no compaction. Nothing that is remembered changes.
        """
        self._check_own()
        self._flush()
        return False

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the verified journal into new rows and a new index.

        Raises
        ------
        ReadOnlyError
            The store is read-only.
        """
        checked(Callback, progress, "progress")
        self._check_own()
        self._flush()
        self._projector.rebuild(progress)
        self._projector.forget()

    def _check_own(self) -> None:
        if self._refused:
            raise ReadOnlyError(self._refused)
