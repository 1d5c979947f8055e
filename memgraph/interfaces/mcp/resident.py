"""A store that is opened at the first call and kept open."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from memgraph.errors import ClosedError

if TYPE_CHECKING:
    from memgraph.facade import MemGraph


class Resident:
    """Opens a store when it is first needed. An attempt that fails is made again at the next call.

    Parameters
    ----------
    open_store : callable
        Opens it, or raises.
    """

    def __init__(self, open_store: Callable[[], MemGraph]) -> None:
        self._open = open_store
        self._lock = Lock()
        self._memory: MemGraph | None = None
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
                raise ClosedError("the server is shutting down")
            if self._memory is None:
                self._memory = self._open()
            return self._memory

    def close(self) -> None:
        """Close the store. Idempotent."""
        with self._lock:
            self._is_closed = True
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()
