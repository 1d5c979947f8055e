"""What a journal has recorded, collected while it is verified."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.fold.projection import digest_after
from memgraph.journal.envelope import Event
from memgraph.journal.replay import Committed
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.events.payload import MAX_WHOLE
from memgraph.model.events.store import BackupMade, StoreRestored
from memgraph.ports import Change, Key, Row
from memgraph.store.maintenance.verification import LastBackup


class Recorded:
    """The journal's content for vectors and, if deep, for rows.

    Parameters
    ----------
    until : int
        Number of the last event included in the graph's rows.
    deep : bool
        Fold all rows.
    """

    def __init__(self, *, until: int, deep: bool = False) -> None:
        self.named = NamedRows()
        self._until = until
        self._workspace = Workspace(EmptyRows()) if deep else None

    def take(self, commit: Committed) -> None:
        """Take over the events of a commit."""
        for event in commit.events:
            self.named.take(event.payload)
            if self._workspace is not None and event.seq <= self._until:
                fold(self._workspace, event)

    def changes(self) -> Iterator[Change]:
        """Iterate over the rows that the graph should contain, as changes from an empty one."""
        return self._workspace.changes() if self._workspace else iter(())

    def tables(self) -> dict[str, dict[Key, Row]]:
        """Return the same rows by table and key."""
        rows: dict[str, dict[Key, Row]] = defaultdict(dict)
        for change in self.changes():
            if change.new is not None:
                rows[change.table][change.key] = change.new
        return rows

    def names(self, row: Row) -> bool:
        """Return whether an event has recorded this memory's vector at the place in the row."""
        return self.named.has(row.get("embedding_model", ""), row["vector_row"], row["id"], row.get("vector_sha256"))


class Folded(Recorded):
    """The journal's content up to its end, with the digest, and the rows of some memories, at an earlier event.

    Attributes
    ----------
    digest : int
    sample : dict of str to Row
        Of the memories that existed then.
    began_at : str or None
        Time of the first event.
    backup : LastBackup or None
        The last backup that the journal names.
    """

    def __init__(self, at: int, drawn: frozenset[str]) -> None:
        super().__init__(until=MAX_WHOLE, deep=True)
        self._at = at
        self._drawn = drawn
        self.digest = 0
        self.sample: dict[Key, Row] = {}
        self.began_at: str | None = None
        self.backup: LastBackup | None = None

    def take(self, commit: Committed) -> None:
        """Take over the events of a commit, and note the state if it ends at the event."""
        super().take(commit)
        for event in commit.events:
            self.began_at = self.began_at or event.timestamp
            found = _backup_of(event)
            if found is not None and (self.backup is None or found.at >= self.backup.at):
                self.backup = found
        if commit.after.chain.seq == self._at and self._workspace is not None:
            self.digest = digest_after(0, self._workspace.changes())
            rows = {one: self._workspace.get("Memory", one) for one in self._drawn}
            self.sample = {one: row for one, row in rows.items() if row is not None}


def _backup_of(event: Event) -> LastBackup | None:
    """Return the backup that an event records: one that was made, or the one from which the store was restored."""
    said = event.payload
    if isinstance(said, BackupMade):
        return LastBackup(event.timestamp, said.seq, said.path)
    return LastBackup(said.made_at, said.seq, None) if isinstance(said, StoreRestored) else None
