"""What was deleted, as a run of the lifecycle needs to know it: by somebody, or because it had faded."""

from __future__ import annotations

from collections.abc import Iterable

from memgraph.model.events.lifecycle import FADED
from memgraph.ports import Row
from memgraph.store.query import Reader
from memgraph.store.undeletion import Deleted


class Deletions:
    """Reads the journal when it is first asked, once for all that a run asks of the same kind.

    It knows nothing of what is deleted after that: once others have written, a run takes another one.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reasons: dict[str, str | None] | None = None
        self._of: dict[str, list[Deleted]] = {}

    def withdrawn(self, gone: Iterable[str]) -> frozenset[str]:
        """Return those of some memories that are gone that somebody deleted: the others had faded."""
        gone = frozenset(gone)
        if not gone:
            return gone
        if self._reasons is None:
            self._reasons = self._reader.reasons_of_deletion()
        reasons = self._reasons
        return frozenset(one for one in gone if reasons.get(one) != FADED)

    def of(self, source: str) -> list[Deleted]:
        """Return the memories of a source that were deleted, in id order, with the reasons given."""
        if source not in self._of:
            self._of[source] = self._reader.deleted_of(source)
        return self._of[source]

    def rows(self, memory_ids: Iterable[str]) -> dict[str, Row]:
        """Return what some deleted memories were, by id. Reads the journal each time, if any are named."""
        named = sorted(memory_ids)
        return {one.row["id"]: one.row for one in self._reader.deleted(named)} if named else {}
