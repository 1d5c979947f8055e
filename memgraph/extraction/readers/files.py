"""Opening of files: decompress gzip, reject binary files, and limit the length of lines."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from memgraph.disk.files import open_regular
from memgraph.errors import SourceError
from memgraph.text import lazy_re as re

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_UNPACKED_BYTES = 8 * 1024 * 1024 * 1024
"""Maximum unpacked size, against decompression bombs."""
_MAX_UTF16_BYTES = 256 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 8192
_GZIP = b"\x1f\x8b"
_UNREADABLE = re.compile("[\ufffd\x00-\x08\x0e-\x1a\x1c-\x1f]")


class Unpacked(io.RawIOBase):
    """The content of a gzip stream. A truncated stream ends early; `problem` then says so.

    Parameters
    ----------
    packed : binary file
        Closed with this.
    limit : int
        Maximum number of bytes.
    """

    def __init__(self, packed: BinaryIO, limit: int = MAX_UNPACKED_BYTES) -> None:
        packed.seek(0)
        self._packed = packed
        self._file = gzip.GzipFile(fileobj=packed, mode="rb")
        self._limit = limit
        self.problem: str | None = None

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def seekable(self) -> bool:
        """Whether it can be sought: by reading."""
        return True

    def tell(self) -> int:
        """Return the position in the unpacked bytes."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position from the start, at most to the end."""
        target = offset if whence == io.SEEK_SET else self.tell() + offset
        if target < self.tell():
            self._file.rewind()
            self.problem = None
        while self.tell() < target and self._next(min(_CHUNK_BYTES, target - self.tell())):
            pass
        return self.tell()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return 0 at the end."""
        data = self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the packed file, too."""
        self._packed.close()
        super().close()

    def _next(self, size: int) -> bytes:
        if self.problem or not size:
            return b""
        if self.tell() >= self._limit:
            self.problem = f"unpacks to more than {self._limit:,} bytes; the rest was not read"
            return b""
        try:
            return self._file.read1(size)
        except EOFError:
            self.problem = "the gzip data is truncated; everything before that was read"
        except (OSError, zlib.error):
            self.problem = "the gzip data is damaged; the rest was not read"
        return b""


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Callable[[], str | None]]]:
    """Open a text file, gzipped or not, for a block; UTF-16 is read as UTF-8.

    Yields
    ------
    (binary file, function)
        The seekable bytes; and a function that says, after reading, why they ended too early, if they did.

    Raises
    ------
    SourceError
        The file does not exist, is unreadable, or is not text.
    """
    try:
        raw = open_regular(path, follows_links=True)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None
    unpacked: Unpacked | None = None
    try:
        if raw.read(2) == _GZIP:
            unpacked = Unpacked(raw)
            raw = io.BufferedReader(unpacked, _CHUNK_BYTES)
        raw.seek(0)
        if (data := raw.read(2)) in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
            data += raw.read(_MAX_UTF16_BYTES)
            if len(data) > _MAX_UTF16_BYTES:
                raise SourceError("is in UTF-16 and too large for that; convert it to UTF-8", path=path)
            raw.close()
            raw = io.BytesIO(data.decode("utf-16", "replace").encode())
        raw.seek(0)
        if _is_binary(raw.read(_HEAD_BYTES)):
            raise SourceError("contains binary data, not UTF-8 text", path=path)
        raw.seek(0)
        yield raw, lambda: unpacked.problem if unpacked else None
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}", path=path) from None
    finally:
        raw.close()


def _is_binary(head: bytes) -> bool:
    text = head.decode("utf-8", errors="replace")
    return len(_UNREADABLE.findall(text)) * 5 > len(text)


def lines(stream: BinaryIO, limit: int = MAX_LINE_BYTES, offset: int = 0) -> Iterator[tuple[int, bytes, bool]]:
    r"""Yield (offset after it, line, whether it ended in \n); of an over-long line only slightly more than `limit`."""
    while line := stream.readline(limit + 2):
        offset += len(line)
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(_CHUNK_BYTES)):
            offset += len(rest)
        terminated = rest.endswith(b"\n")
        yield offset, line.removesuffix(b"\n").removesuffix(b"\r"), terminated


def text_lines(stream: BinaryIO, limit: int = 64 * 1024) -> Iterator[str]:
    """Yield each line as text with invalid UTF-8 replaced; lines over `limit` bytes are truncated."""
    for _, line, _ in lines(stream, limit):
        yield line[:limit].decode("utf-8-sig", errors="replace")


def ending(path: Path) -> str:
    """Return a file name's last suffix in lower case, ignoring that of gzip."""
    name = path.name.lower().removesuffix(".gz")
    return name[name.rfind(".") :] if "." in name else ""


def files_below(folder: Path, endings: frozenset[str], *, hidden: bool = False) -> list[Path]:
    """Return the files below a directory that end in one of `endings` (gzipped ones, too), in sorted order.

    Symbolic links are not followed: they may lead anywhere, and in circles. Hidden files and directories are skipped by
    default; an unreadable directory counts as empty.
    """
    found: list[Path] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(place, name)
            if ending(path) in endings and (hidden or not name.startswith(".")) and not path.is_symlink():
                found.append(path)
    return sorted(found)
