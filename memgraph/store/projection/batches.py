"""Batches of writes: afterwards the graph is verified against what was written and, if it has grown too large, compacted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memgraph.errors import GraphError, MemGraphError, ReadOnlyError
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, checked
from memgraph.ports import Progress
from memgraph.store.projection.projector import Projector

logger = logger_of(__name__)

_LOOK_EVENTS = 100
"""Events between two checks whether a comparison is due."""


class Batches:
    """The batches of one store, and operations on its graph as a whole. Thread-safe.

    Parameters
    ----------
    projector : Projector
    flush : callable
        Commits pending uses.
    refused : str
        Why graph and index may not be rebuilt; empty if they may.
    """

    def __init__(self, projector: Projector, *, flush: Callable[[], None], refused: str = "") -> None:
        self._projector = projector
        self._flush = flush
        self._refused = refused
        self._here = threading.local()
        self._had_one = False
        self._uncompared_s = 0.0
        self._has_checked = False
        self._look_at_seq = 0
        projector.after_commit = self._after_commit

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Mark a block as a batch of many writes. Nests.

        At its end the graph is compared with what was written to it, column by column, if that takes at most 2 % of the
        time that batches have taken since the last comparison, or half a second after the first; a deviating graph is
        rebuilt. After 50,000 events it is compared in any case. Imports, readers, sleep and large inserts are batches
        of their own. When the store is closed after a batch, a graph that has grown to three times its size is
        compacted.
        """
        if self._is_inside:
            yield
            return
        self._here.is_inside = True
        began, before = time.monotonic(), self._projector.journal.tail.seq
        try:
            yield
        finally:
            self._here.is_inside = False
            if self._projector.journal.tail.seq != before:
                self._had_one = True
                self._uncompared_s += time.monotonic() - began
        self._end()

    @property
    def _is_inside(self) -> bool:
        """Whether this thread is inside a batch."""
        return getattr(self._here, "is_inside", False)

    def check_graph(self) -> None:
        """Compare every cell of the graph with what was written to it, and rebuild a deviating graph.

        Takes about 6 microseconds per memory and 1 per edge. Exports and sleep begin with it, so that no lost data is passed on or
        learned from.
        """
        self._flush()
        self._check()

    def compact(self) -> bool:
        """Compress closed segments of the journal, and rebuild the graph if it is more than three times its fresh size.

        Returns
        -------
        bool
            Whether the graph was rebuilt. Nothing that is remembered changes.
        """
        self._check_own()
        self._flush()
        return self._compact()

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the verified journal into a new graph and index.

        Raises
        ------
        ReadOnlyError
            The store is read-only.
        """
        checked(Callback, progress, "progress")
        self._check_own()
        self._flush()
        self._projector.rebuild(progress)
        self._check()

    def _check_own(self) -> None:
        if self._refused:
            raise ReadOnlyError(self._refused)

    def _compress(self) -> None:
        """Compress closed segments, with the writer lock held for one at a time. A failure is only logged: plain ones serve as well."""
        projector, began, names = self._projector, time.monotonic(), list[str]()
        try:
            while True:
                with projector.writing(needs_graph=False):
                    name = projector.journal.pack_next()
                if name is None:
                    break
                names.append(name)
        except MemGraphError as error:
            logger.warning("the journal's closed segments could not be compressed: %s", error.loggable)
        if names:
            logger.info("compressed %d segments of the journal in %.1f s", len(names), time.monotonic() - began)

    def _compact(self) -> bool:
        self._had_one = False
        projector = self._projector
        with projector.holding():
            size, rows = projector.engine.size_bytes(), projector.engine.count_rows()
        if not projector.upkeep.read().is_bloated(size=size, rows=rows):
            return False
        with timed(logger, logging.INFO, "compacted the graph") as counts:
            projector.rebuild()
            counts |= {"bytes_before": size, "bytes": projector.engine.size_bytes()}
        return True

    def close(self) -> None:
        """Compare the graph after an aborted batch, and compact it after any batch. Failures are only logged: the writes stand."""
        self._end()
        if self._had_one:
            try:
                self._compact()
            except MemGraphError as error:
                logger.warning("the graph could not be compacted: %s", error.loggable)

    def _check(self) -> None:
        projector = self._projector
        with projector.holding():
            began = time.monotonic()
            if lost := projector.ask(lambda engine: engine.lost()):
                projector.restore(GraphError(f"it lost writes: {'; '.join(lost)}"))
            upkeep = projector.upkeep.read()
            seconds = time.monotonic() - began
            upkeep.checked(seq=projector.projection.seq, rows=projector.engine.count_rows(), seconds=seconds)
            projector.upkeep.write(upkeep)
            self._has_checked = True

    def _after_commit(self) -> None:
        """Compare the graph periodically for commits outside of batches, by any process."""
        projector = self._projector
        seq = projector.projection.seq
        if seq < self._look_at_seq or self._is_inside:
            return
        if projector.upkeep.read().is_check_due_between(seq=seq, rows=projector.engine.count_rows()):
            self._check()
        self._look_at_seq = seq + _LOOK_EVENTS

    def _end(self) -> None:
        """Compare the graph after a batch, if it is due. Failures are only logged: the batch's writes stand."""
        if not self._uncompared_s:
            return
        try:
            self._compare_if_due()
        except MemGraphError as error:
            logger.warning("the graph could not be compared with what was written: %s", error.loggable)

    def _compare_if_due(self) -> None:
        projector = self._projector
        with projector.holding():
            upkeep = projector.upkeep.read()
            upkeep.unchecked_s += self._uncompared_s
            self._uncompared_s = 0.0
            seq, rows = projector.projection.seq, projector.engine.count_rows()
            if upkeep.is_check_due(seq=seq, rows=rows, is_first=not self._has_checked):
                self._check()
            else:
                projector.upkeep.write(upkeep)
