"""A store that is opened at the first call and kept open."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from memgraph.errors import ClosedError, MemGraphError

if TYPE_CHECKING:
    from memgraph.facade import MemGraph


class Resident:
    """Opens a store when it is first needed. An attempt that fails is made again at a later call. Thread-safe.

    Parameters
    ----------
    open_store : callable
        Opens it, or raises.
    retry_s : float
        How long a failed attempt is remembered, and its error raised again.
    """

    def __init__(self, open_store: Callable[[], MemGraph], *, retry_s: float = 0.0) -> None:
        self._open = open_store
        self._retry_s = retry_s
        self._lock = Lock()
        self._memory: MemGraph | None = None
        self._failed: tuple[float, MemGraphError] | None = None
        self._is_closed = False

    def memory(self) -> MemGraph:
        """Return the store.

        Raises
        ------
        MemGraphError, OSError
            It cannot be opened, or this was closed.
        """
        with self._lock:
            if self._is_closed:
                raise ClosedError("the process that serves the store is shutting down")
            if self._memory is None:
                if self._failed is not None and time.monotonic() < self._failed[0]:
                    raise self._failed[1]
                try:
                    self._memory = self._open()
                except MemGraphError as error:
                    self._failed = time.monotonic() + self._retry_s, error
                    raise
            return self._memory

    @property
    def opened(self) -> MemGraph | None:
        """The store if it is open."""
        return self._memory

    def close(self, *, leaves: bool = False) -> None:
        """Close the store. Idempotent.

        Parameters
        ----------
        leaves : bool
            Leave the store as it is, without closing it: its directory is gone, and closing would write to it.
        """
        with self._lock:
            self._is_closed = True
            memory, self._memory = self._memory, None
        if memory is not None and not leaves:
            memory.close()
