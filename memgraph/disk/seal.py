"""Message authentication codes for memgraph's own files and rows, so that what anything else wrote is not trusted."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from blake3 import blake3

_BLOCK_BYTES = 4 << 20


class SealKey(NamedTuple):
    """A key of 32 bytes, and what names it in the documents that it seals."""

    secret: bytes
    name: str = ""


class ReplacedKeyError(ValueError):
    """A document was sealed with another key than the one that seals now. It is no damage: it is made again."""


class Seal:
    """Makes and checks the codes for one purpose: keyed BLAKE3, in hexadecimal. A key that may be rotated is asked for at each use."""

    def __init__(self, key: bytes | Callable[[], SealKey]) -> None:
        self._live = key if callable(key) else lambda: SealKey(key)
        self._here = threading.local()

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep to the key of now in a block of this thread, also if another thread learns meanwhile that it was rotated."""
        self._here.key = self._live()
        try:
            yield
        finally:
            self._here.key = None

    def _current(self) -> SealKey:
        return getattr(self._here, "key", None) or self._live()

    @property
    def name(self) -> str:
        """The name of the key. Who stores codes stores it, too, to tell a replaced key from damage."""
        return self._current().name

    @property
    def _key(self) -> bytes:
        return self._current().secret

    def sealed(self, said: Any) -> bytes:
        """Return a JSON document that says something, with its code and the name of the key."""
        key = self._current()
        return orjson.dumps({"said": said, "key": key.name, "code": _code(key.secret, orjson.dumps(said))})

    def unsealed(self, document: bytes | str) -> Any:
        """Return what a document says. Raises `ReplacedKeyError` if it names another key, `ValueError` if this key did not seal it."""
        try:
            stored, current = orjson.loads(document), self._current()
            said, name, code = stored["said"], stored["key"], stored["code"]
        except (KeyError, TypeError):
            raise ValueError("is no sealed document") from None
        if name != current.name:
            raise ReplacedKeyError("was sealed with another key than the one that signs now")
        if not self.fits(code, orjson.dumps(said)):
            raise ValueError("has no valid code")
        return said

    def code(self, data: bytes | memoryview) -> str:
        """Return the code of some bytes: 64 hexadecimal digits."""
        return _code(self._key, data)

    def short_coder(self) -> Callable[[bytes], int]:
        """Return a function that gives 63 bits of the code of some bytes, as an integer, by the key of now."""
        key = self._key
        return lambda data: int.from_bytes(blake3(data, key=key).digest(length=8)) >> 1

    def code_of_file(self, path: Path) -> str:
        """Return the code of a file's bytes. Reads about 5 GB per second and core."""
        hasher = blake3(key=self._key)  # in one thread: a thread pool would not survive a fork
        buffer = bytearray(_BLOCK_BYTES)
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                hasher.update(memoryview(buffer)[:count])
        return hasher.hexdigest()

    def fits(self, code: object, data: bytes | memoryview) -> bool:
        """Return whether a code matches these bytes."""
        return isinstance(code, str) and hmac.compare_digest(code.encode(), self.code(data).encode())


def _code(key: bytes, data: bytes | memoryview) -> str:
    return blake3(data, key=key).hexdigest()
