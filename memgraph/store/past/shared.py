"""Open views that several threads read together: each view is open once in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from memgraph.disk.views import Lease
from memgraph.journal.excerpt import Excerpt
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
    """A view, its users, and the lock of the thread that opens it."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    view: OpenView | None = None
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
        """Return a view, and the function to call after use; calling it again does nothing.

        One thread opens a view while others that want the same one wait. If it cannot be opened, the next of them tries.
        """
        with self._lock:
            if self._latest != key:
                self._keep(key)
            shared = self._open.setdefault(key, _Shared())
            shared.users += 1
        is_used = True

        def leave() -> None:
            nonlocal is_used
            with self._lock:
                if is_used:
                    is_used = False
                    shared.users -= 1
                    self._close_unused(key)

        try:
            with shared.opening:
                if shared.view is None:
                    shared.view = make()
                return shared.view, leave
        except BaseException:
            leave()
            raise

    def close(self) -> None:
        """Close the view that nobody uses, and each other one when its last user leaves it. Idempotent."""
        with self._lock:
            self._keep(None)

    def _keep(self, key: str | None) -> None:
        before, self._latest = self._latest, key
        if before is not None:
            self._close_unused(before)

    def _close_unused(self, key: str) -> None:
        shared = self._open.get(key)
        if shared is not None and not shared.users and (key != self._latest or shared.view is None):
            del self._open[key]
            if shared.view is not None:
                shared.view.close()
