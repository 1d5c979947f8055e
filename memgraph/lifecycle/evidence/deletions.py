"""Deletions as a lifecycle run needs them: by a user or agent, or by collection because the memory had faded."""

from __future__ import annotations

from collections.abc import Iterable

from memgraph.model.events.records import FADED
from memgraph.ports import Row
from memgraph.store.deletions import Deleted
from memgraph.store.query import Reader


class Deletions:
    """Reads the journal on first use, once for all questions of the same kind in a run.

    Later deletions are not seen: once others have written, a run creates a new instance.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reasons: dict[str, str | None] | None = None
        self._of: dict[str, list[Deleted]] = {}

    def deleted_by_user(self, gone: Iterable[str]) -> frozenset[str]:
        """Return which of some missing memories a user or agent deleted; the others were collected after they had faded."""
        gone = frozenset(gone)
        if not gone:
            return gone
        if self._reasons is None:
            self._reasons = self._reader.reasons_of_deletion()
        reasons = self._reasons
        return frozenset(one for one in gone if reasons.get(one) != FADED)

    def of(self, source: str) -> list[Deleted]:
        """Return the deleted memories of a source, in id order, with the reasons given."""
        if source not in self._of:
            self._of[source] = self._reader.deleted_of(source)
        return self._of[source]

    def rows(self, memory_ids: Iterable[str]) -> dict[str, Row]:
        """Return the last state of some deleted memories by id. Reads the journal each time, unless there are none."""
        named = sorted(memory_ids)
        return {one.row["id"]: one.row for one in self._reader.deleted(named)} if named else {}
