"""Open views that several threads read together: each view is open once in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from memgraph.journal.excerpt import Excerpt
from memgraph.store.past.views import Lease
from memgraph.store.projection.projector import Projector


@dataclass(frozen=True, slots=True)
class OpenView:
    """Journal, graph and index of a view, in use until `close`."""

    lease: Lease
    projector: Projector
    journal: Excerpt

    def close(self) -> None:
        """Close graph and index, and allow the view's directory to be removed."""
        try:
            self.projector.close()
        finally:
            self.lease.release()


@dataclass(slots=True)
class _Shared:
    view: OpenView
    users: int = 0


class SharedViews:
    """The open views of a store, by key. Thread-safe.

    The latest one stays open while nobody uses it, so that the next reader need not open it; there is at most one such.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Shared] = {}
        self._latest: str | None = None

    def take(self, key: str, make: Callable[[], OpenView]) -> tuple[OpenView, Callable[[], None]]:
        """Return a view, opened by one thread while the others wait, and the function to call after use; calling it again does nothing."""
        with self._lock:
            if self._latest != key:
                self._keep(key)
            shared = self._open.get(key)
            if shared is None:
                shared = self._open[key] = _Shared(make())
            shared.users += 1
        return shared.view, cache(lambda: self._leave(key, shared))

    def close(self) -> None:
        """Close the view that nobody uses, and each other one when its last user leaves it. Idempotent."""
        with self._lock:
            self._keep(None)

    def _leave(self, key: str, shared: _Shared) -> None:
        with self._lock:
            shared.users -= 1
            self._close_unused(key)

    def _keep(self, key: str | None) -> None:
        before, self._latest = self._latest, key
        if before is not None:
            self._close_unused(before)

    def _close_unused(self, key: str) -> None:
        shared = self._open.get(key)
        if shared is not None and not shared.users and key != self._latest:
            del self._open[key]
            shared.view.close()
