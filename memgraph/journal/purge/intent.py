"""The note that a purge is under way: whoever opens the store while it is there completes the purge.

It is written before the ``memory.purged`` event and removed when everything is done. The event says what is to be removed; the note only
says that there may be such an event, and holds the hashes of the files as they were.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from memgraph.disk.files import read_own, sync_folder, write_private
from memgraph.disk.seal import Seal
from memgraph.errors import StorageError
from memgraph.journal.purge.purged import PurgedSeqs

_FILE = "purging.json"
_PURPOSE = "purge intent"
Hashes = dict[str, tuple[int, str]]
"""Size and SHA-256 of files, by their path relative to the store's directory."""


class Noted(NamedTuple):
    """What a note says for the receipt.

    Attributes
    ----------
    files : dict
        The files as they were.
    remaining : list of dict or None
        Where words are that cannot be removed; None if it is not known.
    """

    files: Hashes
    remaining: list[dict[str, Any]] | None


class Sealing(Protocol):
    """What a note needs of the journal: its folder, and seals of the present and of former keys."""

    folder: Path

    @property
    def key_id(self) -> str:
        """The id of the key that signs."""

    def seal(self, purpose: str) -> Seal:
        """Return the seal of the key that signs."""

    def seal_of(self, key_id: str, purpose: str) -> Seal | None:
        """Return the seal of a key; None if it is missing."""


class Intent:
    """``journal/purging.json``, sealed with the key that signs when the purge begins; that may be rotated before it is complete."""

    def __init__(self, journal: Sealing) -> None:
        self._journal = journal
        self._path = journal.folder / _FILE

    @property
    def is_there(self) -> bool:
        """Whether a purge was begun and not completed."""
        return self._path.exists()

    def write(self, hashes: Hashes, remaining: list[dict[str, Any]] | None = None) -> None:
        """Note that a purge begins.

        Raises
        ------
        StorageError
            The system refuses.
        """
        said = {"files": hashes, "remaining": remaining}
        code = self._journal.seal(_PURPOSE).code(orjson.dumps(said))
        write_private(self._path, orjson.dumps({"said": said, "key_id": self._journal.key_id, "code": code}))

    def read(self) -> Noted:
        """Return what the note says; nothing if it is missing or damaged."""
        try:
            stored = orjson.loads(read_own(self._path))
            said, seal = stored["said"], self._journal.seal_of(str(stored["key_id"]), _PURPOSE)
            if seal is not None and seal.fits(stored["code"], orjson.dumps(said)):
                files = {path: (int(size), str(sha256)) for path, (size, sha256) in said["files"].items()}
                return Noted(files, said["remaining"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return Noted({}, None)

    def remove(self) -> None:
        """Note that the purge is complete.

        Raises
        ------
        StorageError
            The system refuses.
        """
        try:
            self._path.unlink(missing_ok=True)
            sync_folder(self._path.parent)
        except OSError as error:
            raise StorageError(f"cannot be removed: {error.strerror}", path=self._path) from None


def check_no_purge(folder: Path, purged: PurgedSeqs, *, after: int) -> None:
    """Refuse to copy what a journal says while a purge removes a part of it.

    Parameters
    ----------
    after : int
        The last event that is copied.

    Raises
    ------
    StorageError
        A purge is under way, or has been made after that event.
    """
    if (folder / _FILE).exists() or any(event.seq > after for event in purged.events()):
        raise StorageError("memories are being purged; try again when that is done", path=folder)
