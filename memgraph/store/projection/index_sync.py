"""Keeps the index in memory, and its snapshot on disk."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from memgraph.disk.seal import Seal
from memgraph.errors import StorageError
from memgraph.fold import Projection
from memgraph.index import snapshot
from memgraph.index.index import Index
from memgraph.logs import logger_of, timed
from memgraph.ports import GraphEngine
from memgraph.store.projection.index_building import index_from

logger = logger_of(__name__)

_SNAPSHOT_SHARE = 50
"""The index is saved once more than one slot in this many has changed."""


class IndexKeeper:
    """The index of one graph.

    Attributes
    ----------
    index : Index or None
        The index in memory, at any state.
    """

    def __init__(self, path: Path, store_id: str, seal: Seal) -> None:
        self._path = path
        self._store_id = store_id
        self._seal = seal
        self.index: Index | None = None

    def loaded(self, projection: Projection) -> Index | None:
        """Return the index if it is in memory and at this state."""
        index = self.index
        return index if index is not None and index.offset.seq == projection.seq else None

    def current(
        self,
        projection: Projection,
        bring_up: Callable[[Index], bool],
        ask: Callable[[Callable[[GraphEngine], Index]], Index],
    ) -> Index:
        """Return the index at this state: loaded and updated, or built from the graph.

        Parameters
        ----------
        bring_up : callable
            Updates an index to this state; returns False if it must be rebuilt.
        ask : callable
            Queries the graph.
        """
        if self.index is None:
            with timed(logger, logging.INFO, "read the index's snapshot") as counts:
                self.index = snapshot.load(self._path, self._store_id, self._seal)
                counts["memories"] = len(self.index or ())
        if self.index is None or not bring_up(self.index):
            with timed(logger, logging.INFO, "built the index"):
                self.index = ask(lambda engine: index_from(engine, projection))
            self.save()
        return self.index

    def save_if_changed(self, projection: Projection, *, at_once: bool = False) -> None:
        """Save the index if it is current and has changed much since the last save, or at all if that is wanted."""
        index = self.loaded(projection)
        if index is not None and index.changed * (len(index) + 1 if at_once else _SNAPSHOT_SHARE) > len(index):
            self.save()

    def save(self) -> None:
        """Save the index."""
        if self.index is None:
            return
        try:
            snapshot.save(self.index, self._path, self._store_id, self._seal)
        except StorageError as error:  # a snapshot only saves time
            logger.warning("%s", error.loggable)
