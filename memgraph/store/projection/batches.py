"""Batches of writes, after which the graph is compared with what was written and, where it has grown too large, compacted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memgraph.errors import GraphError, MemGraphError
from memgraph.logs import logger_of, timed
from memgraph.model.base import Callback, checked
from memgraph.ports import Progress
from memgraph.store.projection.place import Place
from memgraph.store.projection.projector import Projector

logger = logger_of(__name__)

_LOOK_EVENTS = 100
"""Once in so many events it is looked up whether a comparison is due."""


class Batches:
    """The batches of one store. Thread-safe."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self._here = threading.local()
        self._had_one = False
        self._uncompared_s = 0.0
        self._has_checked = False
        self._look_at_seq = 0
        projector.after_commit = self._after_commit

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Mark a block as one of many writes; at its end the graph is compared with what was written, if that costs little. Nests.

        The first batch is followed by a comparison that takes half a second at most. Later ones pay for it together: it takes at
        most 2 % of their time, unless 50,000 events have come.
        """
        if self._is_inside:
            yield
            return
        self._here.is_inside = True
        began, before = time.monotonic(), self._projector.journal.tail.chain.seq
        try:
            yield
        finally:
            self._here.is_inside = False
            if self._projector.journal.tail.chain.seq != before:
                self._had_one = True
                self._uncompared_s += time.monotonic() - began
        self._end()

    @property
    def _is_inside(self) -> bool:
        """Whether this thread is inside a batch."""
        return getattr(self._here, "is_inside", False)

    def compact(self) -> bool:
        """Make the graph anew if it is more than three times as large as it then would be; tell whether it was."""
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
        """Compare the graph after a batch that was broken off, and compact it after any. What was written stands, so a failure is logged."""
        self._end()
        if self._had_one:
            try:
                self.compact()
            except MemGraphError as error:
                logger.warning("the graph could not be compacted: %s", error.loggable)

    def check(self) -> None:
        """Compare the graph with what was written; one that differs is rebuilt."""
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
        """Compare the graph once in so many commits that are part of no batch, by whichever process they were made."""
        projector = self._projector
        seq = projector.projection.seq
        if seq < self._look_at_seq or self._is_inside:
            return
        if projector.upkeep.read().is_check_due_between(seq=seq, rows=projector.engine.count_rows()):
            self.check()
        self._look_at_seq = seq + _LOOK_EVENTS

    def _end(self) -> None:
        """Compare the graph after a batch, if it is due. What the batch wrote stands, so a failure is logged."""
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
                self.check()
            else:
                projector.upkeep.write(upkeep)


class WritesInBatches:
    """The part of a store that marks batches of writes, and makes the graph anew."""

    _batches: Batches
    _projector: Projector
    _place: Place
    _check_open: Callable[[], None]
    flush: Callable[[], None]

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Mark a block as a batch of many writes. Nests.

        At its end the graph is compared with what was written to it, column by column, if that takes at most 2 % of the time that
        batches have taken since the last comparison, or half a second after the first; a graph that differs is rebuilt. Imports,
        readers, sleep and large inserts are batches of their own. When the store is closed after one, a graph that has grown to
        three times its size is compacted.
        """
        self._check_open()
        with self._batches.batch():
            yield

    def check_graph(self) -> None:
        """Compare every cell of the graph with what was written to it; a graph that differs is made anew.

        Some 7 microseconds a memory. Exports and sleep begin with it, so that nothing is handed on or learned from that was lost.
        """
        self._check_open()
        self.flush()
        self._batches.check()

    def compact(self) -> bool:
        """Make the graph anew if it is more than three times as large as it then would be; tell whether it was. Nothing else changes."""
        self._check_open()
        self._place.check_own()
        self.flush()
        return self._batches.compact()

    def rebuild(self, progress: Progress | None = None) -> None:
        """Replay the verified journal into a new graph and index.

        Raises
        ------
        ReadOnlyError
            The store may not be written.
        """
        checked(Callback, progress, "progress")
        self._check_open()
        self._place.check_own()
        self.flush()
        self._projector.rebuild(progress)
        self._batches.check()
