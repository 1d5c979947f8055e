"""Condensed segments: ``condensed.json`` in the journal's folder proves the content of each, because their lines are not signed.

A segment is condensed when it has been in the archive for the retention days: its events lose their signatures, and the texts of memories that
no longer exist (see `memgraph.journal.retention`). The document names the SHA-256 of each such segment and is authenticated by the store's key.
While a segment is being replaced it names the content before and after, so a kill leaves one that is proven. It does not concern a segment
whose lines are signed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from memgraph.disk.files import read_own, write_private
from memgraph.errors import DamagedJournalError, StorageError
from memgraph.journal.closed import files
from memgraph.journal.closed.digest import Extent
from memgraph.journal.envelope import canonical
from memgraph.ports import SigningKey

NAME = "condensed.json"
FORMAT = 1
MAX_BYTES = 64 << 20
ADVICE = "put the segments and this file back together, or run `memgraph repair --from-backup FILE`"

Find = Callable[[str], SigningKey | None]
Contents = Mapping[str, tuple[Extent, ...]]
"""What the segment of each name may contain: two contents while one replaces the other."""
_State = tuple[int, int, int]


class CondensedSegments:
    """The condensed segments of a journal. The document is read again whenever it has changed.

    Parameters
    ----------
    find : callable or None
        Returns the key of an id. If None, the document is not verified (``dev`` alone, read-only).
    """

    def __init__(self, folder: Path, store_id: str, find: Find | None) -> None:
        self.path = folder / NAME
        self._folder = folder
        self._store_id = store_id
        self._find = find
        self._state: _State | None = None
        self._contents: Contents = {}
        self._signers: tuple[str, ...] = ()

    def contents(self) -> Contents:
        """Return the proven contents by the segments' names; nothing if there is no document.

        Raises
        ------
        DamagedJournalError
            The document is not what a key of this store signed, or of a later release.
        StorageError
            It cannot be read.
        """
        state = self._present_state()
        if state is None:
            self._state, self._contents, self._signers = None, {}, ()
        elif state != self._state:
            try:
                data = read_own(self.path, MAX_BYTES + 1)
            except OSError as error:
                raise StorageError(f"cannot be read: {error.strerror}", path=self.path) from None
            self._contents, self._signers = self._parsed(data)
            self._state = state
        return self._contents

    def names(self, name: str) -> bool:
        """Return whether a segment is condensed, or about to be. Ask after opening its file: the document is always written first."""
        return name in self.contents()

    def proves(self, name: str, content: Extent) -> bool:
        """Return whether a segment's content is proven."""
        return content in self.contents().get(name, ())

    def check_signer(self, current: SigningKey | None) -> None:
        """Refuse a document that the key in use at the journal's end has not signed.

        Raises
        ------
        DamagedJournalError
            Only an earlier key has signed it.
        """
        if self.contents() and current is not None and self._find is not None:
            keys = filter(None, map(self._find, self._signers))
            if all(key.secret != current.secret for key in keys):
                raise self._damaged(f"it is not signed with the key that signs the journal, {current.key_id}")

    def replace(self, name: str, data: bytes, keys: Iterable[SigningKey]) -> None:
        """Replace a segment's content by unsigned lines, which are proven from now on. Needs the writer lock. A kill leaves either content.

        Raises
        ------
        DamagedJournalError
            The document cannot be trusted.
        StorageError
            The system refuses.
        """
        keys, known = list(keys), self.contents()
        new = Extent(len(data), hashlib.sha256(data).hexdigest())
        self._write({**known, name: (*known.get(name, ()), new)}, keys)
        files.replace(self._folder, name, data)
        self._write({**self.contents(), name: (new,)}, keys)

    def sign_again(self, keys: Iterable[SigningKey]) -> None:
        """Let each of these keys verify the document, if there is one. Needs the writer lock."""
        if known := self.contents():
            self._write(known, keys)

    def document(self, contents: Contents, keys: Iterable[SigningKey]) -> bytes:
        """Return the document that proves some contents, as it is written."""
        keys = list(keys)
        segments = {name: [list(one) for one in found] for name, found in sorted(contents.items())}
        body = {
            "format": FORMAT,
            "store_id": self._store_id,
            "signers": [key.key_id for key in keys],
            "segments": segments,
        }
        return json.dumps({"body": body, "codes": [_code(key, body) for key in keys]}).encode()

    def _write(self, contents: Contents, keys: Iterable[SigningKey]) -> None:
        write_private(self.path, self.document(contents, keys))

    def _present_state(self) -> _State | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror}", path=self.path) from None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _parsed(self, data: bytes) -> tuple[Contents, tuple[str, ...]]:
        try:
            stored = json.loads(data)
            body = stored["body"]
            codes = list(zip(body["signers"], stored["codes"], strict=True))
            if len(data) > MAX_BYTES or data != json.dumps(stored).encode() or body["store_id"] != self._store_id:
                raise ValueError("has another form")
            if self._find is not None:
                known = [(key, code) for key_id, code in codes if (key := self._find(key_id)) is not None]
                if not known or not all(hmac.compare_digest(_code(key, body), code) for key, code in known):
                    raise ValueError("is not what was signed")
            if body["format"] != FORMAT:
                raise self._damaged(
                    f"its format {body['format']!r} is unknown to this release; install a newer memgraph"
                )
            found = {
                name: tuple(Extent(int(size), str(sha256)) for size, sha256 in of)
                for name, of in body["segments"].items()
            }
            return found, tuple(body["signers"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise self._damaged("it is not what this store's key signed") from None

    def _damaged(self, reason: str) -> DamagedJournalError:
        return DamagedJournalError(reason, path=self.path, offset=0, advice=ADVICE)


def _code(key: SigningKey, body: Mapping[str, object]) -> str:
    return hmac.digest(key.secret, b"memgraph condensed\x1f" + canonical(body), "sha256").hex()
