"""Condensed segments: ``condensed.json`` in the journal's folder proves the content of each, because their lines are not signed.

A segment is condensed when all of its events are older than the retention days: they lose their signatures, and the texts of deleted memories (see
`memgraph.journal.retention`). The document names the SHA-256 of each such segment and is authenticated by the store's key.
While a segment is being replaced it names the content before and after, so a kill leaves one that is proven. It does not concern a segment
whose lines are signed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from memgraph.disk.files import read_own, write_private
from memgraph.errors import DamagedJournalError, StorageError
from memgraph.journal.closed import files
from memgraph.journal.closed.closing import Find
from memgraph.journal.closed.digest import Extent
from memgraph.journal.closed.signed import document_of, fits, parts_of
from memgraph.journal.envelope import BEGINNING_BYTES, is_unsigned
from memgraph.ports import SigningKey

NAME = "condensed.json"
FORMAT = 1
_PURPOSE = "condensed"
MAX_BYTES = 64 << 20
UNPROVEN = "it has no signature, and condensed.json does not prove the content of its segment"
ADVICE = "put this file and the archived segments of the same copy of the store back, or run `memgraph repair --from-backup FILE`"

Contents = Mapping[str, tuple[Extent, ...]]
"""What the segment of each name may contain: two contents while one replaces the other."""
_State = tuple[int, int, int]


class Done(NamedTuple):
    """A retention that was carried out to its end: its last event, and the SHA-256 of the ids of the memories whose words it removed."""

    through: int
    memories: str


class _Document(NamedTuple):
    """What a document says, and the keys that signed it."""

    contents: Contents
    done: Done | None
    signers: tuple[SigningKey, ...]


_NOTHING = _Document({}, None, ())


class CondensedSegments:
    """The condensed segments of a journal. The document is read again whenever it has changed.

    Parameters
    ----------
    find : callable or None
        Returns the key of an id. If None, the document is not verified (``dev`` alone, read-only).
    is_current : callable
        Returns whether a key is the one that signs the journal: no other one proves anything, because an earlier one may have leaked.
    """

    def __init__(
        self,
        folder: Path,
        store_id: str,
        find: Find | None,
        is_current: Callable[[SigningKey], bool] = lambda _key: True,
    ) -> None:
        self.path = folder / NAME
        self._folder = folder
        self._store_id = store_id
        self._find = find
        self._is_current = is_current
        self._state: _State | None = None
        self._document = _NOTHING

    def contents(self) -> Contents:
        """Return the proven contents by the segments' names; nothing if there is no document.

        Raises
        ------
        DamagedJournalError
            The document is not what the key in use signed, or of a later release.
        StorageError
            It cannot be read.
        """
        return self._read().contents

    def names(self, name: str) -> bool:
        """Return whether a segment is condensed, or about to be: the document is always written before the file."""
        return name in self.contents()

    def proves(self, name: str, content: bytes) -> bool:
        """Return whether a segment's content is proven."""
        return extent_of(content) in self.contents().get(name, ())

    def check(self, name: str, content: bytes) -> None:
        """Refuse a content whose lines are unsigned and not proven.

        Raises
        ------
        DamagedJournalError
        """
        if is_unsigned(content[:BEGINNING_BYTES]) and not self.proves(name, content):
            raise DamagedJournalError(UNPROVEN, path=files.file_of(self._folder, name), offset=0)

    def replace(self, name: str, before: bytes, after: bytes, keys: Iterable[SigningKey]) -> None:
        """Replace a segment's content by unsigned lines, which are proven from now on. Needs the writer lock. A kill leaves either content.

        Parameters
        ----------
        before : bytes
            The content from which the new one was made: it must be proven if it is unsigned, else the caller has verified it.

        Raises
        ------
        DamagedJournalError
            The former content is not proven, or the document cannot be trusted. Nothing is changed.
        StorageError
            The system refuses.
        """
        keys = list(keys)
        self.check(name, before)
        known = self.contents()
        self._write({**known, name: (*known.get(name, ()), extent_of(after))}, None, keys)
        files.replace(self._folder, name, after)
        self._write({**known, name: (extent_of(after),)}, None, keys)

    def is_done(self, done: Done) -> bool:
        """Return whether this retention was carried out to its end, and nothing was replaced since."""
        return self._read().done == done

    def finish(self, done: Done, keys: Iterable[SigningKey]) -> None:
        """Note that a retention was carried out to its end. Needs the writer lock."""
        self._write(self.contents(), done, keys)

    def sign_again(self, keys: Iterable[SigningKey]) -> None:
        """Let each of these keys verify the document, if there is one. Needs the writer lock."""
        known = self._read()
        if known.contents:
            self._write(known.contents, known.done, keys)

    def signed_with(self, key: SigningKey) -> bytes | None:
        """Return the document signed with one key, as it is written; None if there is none."""
        known = self._read()
        return self._signed(known.contents, known.done, [key]) if known.contents else None

    def _signed(self, contents: Contents, done: Done | None, keys: Iterable[SigningKey]) -> bytes:
        body = {
            "format": FORMAT,
            "store_id": self._store_id,
            "segments": {name: [list(one) for one in found] for name, found in sorted(contents.items())},
            "done": list(done) if done else None,
        }
        return document_of(body, keys, _PURPOSE)

    def _write(self, contents: Contents, done: Done | None, keys: Iterable[SigningKey]) -> None:
        write_private(self.path, self._signed(contents, done, keys))

    def _read(self) -> _Document:
        state = self._present_state()
        if state is None:
            self._state, self._document = None, _NOTHING
        elif state != self._state:
            try:
                data = read_own(self.path, MAX_BYTES + 1)
            except OSError as error:
                raise StorageError(f"cannot be read: {error.strerror}", path=self.path) from None
            self._document, self._state = self._parsed(data), state
        if self._document.signers and not any(map(self._is_current, self._document.signers)):
            raise self._damaged("it is not signed with the key that signs the journal")
        return self._document

    def _present_state(self) -> _State | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror}", path=self.path) from None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _parsed(self, data: bytes) -> _Document:
        try:
            body, codes = parts_of(data)
            if len(data) > MAX_BYTES or body["store_id"] != self._store_id:
                raise ValueError("is another store's")
            known: list[tuple[SigningKey, str]] = []
            if self._find is not None:
                known = [(key, code) for key_id, code in codes if (key := self._find(key_id)) is not None]
                if not known or not all(fits(key, code, body, _PURPOSE) for key, code in known):
                    raise ValueError("is not what was signed")
            if type(body["format"]) is not int or body["format"] > FORMAT:
                raise self._damaged(
                    f"its format {body['format']!r} is unknown to this release; install a newer memgraph"
                )
            segments = body["segments"].items()
            contents = {name: tuple(Extent(int(size), str(sha256)) for size, sha256 in of) for name, of in segments}
            done = Done(int(body["done"][0]), str(body["done"][1])) if body["done"] else None
            return _Document(contents, done, tuple(key for key, _ in known))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise self._damaged("it is not what this store's key signed") from None

    def _damaged(self, reason: str) -> DamagedJournalError:
        return DamagedJournalError(reason, path=self.path, offset=0, advice=ADVICE)


def extent_of(content: bytes) -> Extent:
    """Return size and SHA-256 of a content."""
    return Extent(len(content), hashlib.sha256(content).hexdigest())
