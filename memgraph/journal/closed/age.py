"""The age of the open segment: the time since its first event."""

from __future__ import annotations

from pathlib import Path

import orjson

from memgraph.journal.closed import files
from memgraph.model.timestamps import days_between


class SegmentAge:
    """Tells whether a segment is so old that a new one should be started.

    Parameters
    ----------
    days : float
        Age of its first event, by the journal's clock.
    """

    def __init__(self, folder: Path, days: float) -> None:
        self._folder = folder
        self._days = days
        self._name = ""
        self._since: str | None = None

    def is_over(self, name: str, now: str) -> bool:
        """Return whether a segment's first event was recorded longer ago than that."""
        if name != self._name or self._since is None:  # it may have been empty
            self._name, self._since = name, self._first_time(name)
        return self._since is not None and days_between(self._since, now) > self._days

    def _first_time(self, name: str) -> str | None:
        """Return when a segment's first event was recorded; None if it has none."""
        try:
            with files.opened(self._folder, name) as stream:
                return str(orjson.loads(stream.readline())["head"]["timestamp"])
        except (OSError, ValueError, KeyError, TypeError):  # appending or verifying reports it
            return None
