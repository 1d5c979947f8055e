"""Backups of an open store: made, and listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memgraph.journal.search import events_of
from memgraph.model.base import Callback, checked
from memgraph.model.events.store import BackupMade
from memgraph.model.results.maintenance import BackupResult
from memgraph.ports import Progress
from memgraph.store.projection.projector import Projector
from memgraph.store.query import Reader


class Backups:
    """Makes and lists the backups of a store.

    Parameters
    ----------
    home : Path
        The store's directory.
    """

    def __init__(self, home: Path, projector: Projector, reader: Reader, now: Callable[[], str]) -> None:
        self._home = home
        self._projector = projector
        self._journal = projector.journal
        self._reader = reader
        self._now = now

    def backup(
        self,
        path: str | Path,
        *,
        incremental: bool = False,
        base: str | Path | None = None,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> BackupResult:
        """Write a backup of all events, vectors and settings to one file that only its owner can read.

        Others may write meanwhile: the backup is the state after one commit. Every event is verified before it is copied. It
        never contains keys; without the store's key it can neither be verified nor restored. The backup is recorded as an event.

        Parameters
        ----------
        path : str or Path
            Ends in ``.tar.gz``, or in ``.tar.zst`` with the extra ``zstd``, which is quicker and smaller.
        incremental : bool
            Write only what was recorded since the last backup that the journal records; `memgraph.restore` needs both.
        base : str or Path, optional
            Continue this backup instead.
        replace : bool
            Replace the file if it exists.
        progress : callable, optional
            Called with (done, total) bytes: each is read twice.

        Raises
        ------
        BackupError
            The file exists or cannot be written, or there is nothing to continue. No file is left.
        JournalError
            An event is not what was signed.
        """
        checked(Callback, progress, "progress")
        from memgraph.store.backup.writing import Making

        making = Making(self._home, self._projector, self._now, self.backups, progress)
        return making.run(path, incremental=incremental, base=base, replaces=replace, settle=self._reader.settle)

    def backups(self) -> list[BackupMade]:
        """Return the records of the backups that were made of this store, the last one last."""
        return [made for _, made in self._recorded()]

    def last_backup_at(self) -> str | None:
        """Return when the last backup was recorded; None: none was made."""
        return max((at for at, _ in self._recorded()), default=None)

    def _recorded(self) -> list[tuple[str, BackupMade]]:
        with self._projector.gate.guard:
            self._journal.refresh()
        found = events_of(self._journal, {BackupMade.TYPE: None})
        return [(event.timestamp, event.payload) for event in found if isinstance(event.payload, BackupMade)]
