"""SHA-256 of each segment, as far as a journal was verified."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Extent(NamedTuple):
    """The bytes of a segment that were verified: their number and their SHA-256."""

    size_bytes: int
    sha256: str


class JournalDigest:
    """Hashes a journal as it is verified: each segment, and from these the whole.

    The digest of the whole is over the names and the hashes of the segments, so it can be computed without reading a segment whose hash is
    known.

    Attributes
    ----------
    name : str
        The segment that was added to last.

    Parameters
    ----------
    partial : str
        A segment of which only the end is added: it belongs to the digest, but its own hash is not known.
    """

    def __init__(self, partial: str = "") -> None:
        self._partial = partial
        self._closed: dict[str, Extent] = {}
        self.name = ""
        self._size = 0
        self._hash = hashlib.sha256()

    def add(self, name: str, data: bytes) -> None:
        """Add the next bytes of a segment."""
        self._begin(name)
        self._hash.update(data)
        self._size += len(data)

    def add_known(self, name: str, extent: Extent) -> None:
        """Add a whole segment whose hash is known."""
        self._begin("")
        self._closed[name] = extent

    def closed(self) -> dict[str, Extent]:
        """Return the whole segments before the last one that was added."""
        return {name: extent for name, extent in self._closed.items() if name != self._partial}

    def extents(self) -> dict[str, Extent]:
        """Return the segments as far as they were added, without one of which only the end was."""
        last = {self.name: Extent(self._size, self._hash.hexdigest())} if self.name not in ("", self._partial) else {}
        return {**self.closed(), **last}

    @property
    def first(self) -> str:
        """The first segment that was added; "" if none was."""
        return next(iter(self._closed), self.name)

    def hexdigest(self) -> str:
        """Return the digest of all bytes that were added."""
        whole = hashlib.sha256()
        for name, extent in self._closed.items():
            whole.update(f"{name} {extent.sha256}\n".encode())
        if self.name:
            whole.update(f"{self.name} {self._hash.hexdigest()}\n".encode())
        return whole.hexdigest()

    def _begin(self, name: str) -> None:
        if name != self.name:
            if self.name:
                self._closed[self.name] = Extent(self._size, self._hash.hexdigest())
            self.name, self._size, self._hash = name, 0, hashlib.sha256()
