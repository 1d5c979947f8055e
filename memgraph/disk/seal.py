"""Message authentication codes for memgraph's own files, so that a file written by anything else is not trusted."""

from __future__ import annotations

import hmac
from pathlib import Path

from blake3 import blake3

_BLOCK_BYTES = 4 << 20


class Seal:
    """Makes and checks the codes for one purpose: BLAKE3 with a key of 32 bytes, derived from the store's signing key, in hexadecimal."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def code(self, data: bytes | memoryview) -> str:
        """Return the code of some bytes: 64 hexadecimal digits."""
        return blake3(data, key=self._key).hexdigest()

    def short_code(self, data: bytes) -> int:
        """Return 63 bits of the code of some bytes, as an integer."""
        return int.from_bytes(blake3(data, key=self._key).digest(length=8)) >> 1

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


def seal_of(secret: bytes, purpose: str, store_id: str) -> Seal:
    """Return the seal for a purpose, with a key derived from a store's secret."""
    return Seal(seal_key(secret, purpose, store_id))


def seal_key(secret: bytes, purpose: str, store_id: str) -> bytes:
    """Return the key of the seal for a purpose: 32 bytes."""
    return hmac.digest(secret, f"memgraph seal\x1f{purpose}\x1f{store_id}".encode(), "sha256")


def text_hmac(secret: bytes, text: str) -> str:
    """Return the HMAC-SHA256 of a text in hexadecimal."""
    return hmac.digest(secret, b"memgraph text\x1f" + text.encode("utf-8", "surrogatepass"), "sha256").hex()
