"""Whether the journal of an open store was replaced, so that the store must be opened again."""

from __future__ import annotations

from pathlib import Path

from memgraph.errors import JournalError
from memgraph.journal.closed.files import file_of
from memgraph.journal.swap import ReplacedJournalError
from memgraph.store.projection.projector import Projector


class Replacement:
    """Notices that another process has replaced the journal. Thread-safe."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self._first = self._find_first()

    def is_replaced(self) -> bool:
        """Return whether the journal was resealed, or restored from a backup, since the store was opened.

        Every use that needs the journal is refused then, until it is opened again. Usually this costs one look at the file
        system. While a thread holds the graph the answer may be late: False.
        """
        path, number = self._first
        if number is not None and _number(path) == number:
            return False
        journal, gate, first = self._projector.journal, self._projector.gate, self._find_first()
        if first == self._first or gate.is_reading or not gate.guard.acquire(0.0):
            return False
        try:
            if self._projector.has_graph or journal.holds_lock:
                return False  # this thread is in the middle of a use
            journal.refresh()
        except ReplacedJournalError:
            return True
        except JournalError:
            return False  # the next use of the store raises it
        finally:
            gate.guard.release()
        self._first = first  # a purge has rewritten the first segment, or it was compressed: the journal stays valid
        return False

    def _find_first(self) -> tuple[Path, int | None]:
        """Return the file of the first segment, and its number in the file system; None if it is not there."""
        segments = self._projector.journal.segments
        path = file_of(segments.folder, segments.first().segment)
        return path, _number(path)


def _number(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None
