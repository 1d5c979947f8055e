"""Whether the journal of an open store was replaced, so that the store must be opened again."""

from __future__ import annotations

from memgraph.errors import JournalError
from memgraph.journal.swap import ReplacedJournalError
from memgraph.store.projection.projector import Projector


class Replacement:
    """Notices that another process has replaced the journal. Thread-safe."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self._origin = projector.journal.segments.origin()

    def is_replaced(self) -> bool:
        """Return whether the journal was resealed, or restored from a backup, since the store was opened.

        Every use that needs the journal is refused then, until the store is opened again. Usually this costs two looks at the file
        system. While another thread holds the graph the answer may be late: False.
        """
        journal = self._projector.journal
        origin = journal.segments.origin()
        if origin == self._origin or not self._projector.gate.guard.acquire(0.0):
            return False
        try:
            journal.refresh()
        except ReplacedJournalError:
            return True
        except JournalError:
            return False  # the next use of the store raises it
        finally:
            self._projector.gate.guard.release()
        self._origin = origin  # a purge has rewritten its beginning, which stays valid
        return False
