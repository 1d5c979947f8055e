"""A limit on repetitions within one process: what was noted is not due again for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

HOUR_S = 3_600.0
_MANY = 1_000


class Repeats:
    """Remembers for a while what was done. Thread-safe.

    Parameters
    ----------
    between_s : float
        Time after which the same is due again.
    timer : callable
        Returns seconds of a monotonic clock.
    """

    def __init__(self, *, between_s: float = HOUR_S, timer: Callable[[], float] = time.monotonic) -> None:
        self._between_s, self._timer = between_s, timer
        self._lock = threading.Lock()
        self._noted: dict[Hashable, float] = {}

    def is_due(self, key: Hashable) -> bool:
        """Return whether this was not noted within the time."""
        with self._lock:
            noted = self._noted.get(key)
            return noted is None or self._timer() - noted >= self._between_s

    def note(self, key: Hashable) -> bool:
        """Note this; return whether it was due. What was not due is not noted again."""
        with self._lock:
            moment = self._timer()
            noted = self._noted.get(key)
            if noted is not None and moment - noted < self._between_s:
                return False
            if len(self._noted) >= _MANY:
                self._noted.clear()  # so many differ that repeating some is the smaller harm
            self._noted[key] = moment
            return True
