"""The rows of a baseline: one line of canonical JSON ``[table, key, row]`` each, compressed.

The file is compressed with zstd if the extra ``zstd`` is installed, else with gzip; its name says which.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import make_own, make_private_folder, sync_folder
from memgraph.errors import JournalError, MissingExtraError, StorageError
from memgraph.journal.baseline.header import FOLDER, Baseline, check_rows
from memgraph.journal.envelope import canonical
from memgraph.ports import Key, Row

try:
    import zstandard
except ImportError:  # the extra `zstd` is not installed
    zstandard = None  # type: ignore[assignment]

BaselineRow = tuple[str, Key, Row]
_MODULUS = 1 << 256
_MOST_WINDOW_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """A written file of rows: its name and bytes, the number of rows and the sum of their hashes."""

    file: str
    sha256: str
    size_bytes: int
    rows: int
    rows_sum: str


def write_rows(folder: Path, seq: int, rows: Iterable[BaselineRow]) -> WrittenRows:
    """Write the rows at an event to a new file in the journal's folder, and sync it. Its header makes it count.

    Raises
    ------
    StorageError
        The system refuses; then nothing is left.
    """
    place = folder / FOLDER
    make_private_folder(place)
    suffix = "gz" if zstandard is None else "zst"
    path = place / f"rows-{seq:012d}-{secrets.token_hex(4)}.{suffix}"
    temporary = place / f".{path.name}.{os.getpid()}.tmp"
    count, total = 0, 0
    try:
        with os.fdopen(make_own(temporary), "wb") as file:
            hashing = _Hashing(file)
            with _packed(hashing, suffix) as packed:
                for table, key, row in rows:
                    line = canonical([table, key, row])
                    packed.write(line + b"\n")
                    total += _hash(line)
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(place)
    except OSError as error:
        raise StorageError(
            f"the baseline cannot be written: {error.strerror}; nothing was changed", path=path
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return WrittenRows(path.name, hashing.digest.hexdigest(), hashing.size, count, f"{total % _MODULUS:064x}")


def read_rows(folder: Path, baseline: Baseline) -> list[BaselineRow]:
    """Return the rows of a baseline, in the order in which they were written. The file is verified before it is unpacked.

    Raises
    ------
    JournalError
        It is not what was signed.
    MissingExtraError
        The package for its compression is missing.
    """
    check_rows(folder, baseline)
    path, found, total = baseline.path(folder), [], 0
    try:
        with path.open("rb") as file, _unpacked(file, path) as lines:
            for line in lines:
                table, key, row = orjson.loads(line)
                found.append((table, key if isinstance(key, str) else (key[0], key[1]), row))
                total += _hash(line.rstrip(b"\n"))
    except (OSError, EOFError, ValueError, TypeError, IndexError, zlib.error) as error:
        raise JournalError(f"the baseline's rows in {path} cannot be read: {error}") from None
    if len(found) != baseline.rows or f"{total % _MODULUS:064x}" != baseline.rows_sum:
        raise JournalError(f"the baseline's rows in {path} are not those that its header counts")
    return found


def unused_files(folder: Path, baseline: Baseline | None) -> list[Path]:
    """Return the files of rows that the header does not name: of earlier baselines, and of writes that were cut off."""
    place, kept = folder / FOLDER, baseline.file if baseline else None
    return [path for path in sorted(place.iterdir()) if path.name != kept] if place.exists() else []


def remove_unused(folder: Path, baseline: Baseline | None) -> None:
    """Remove files of rows that the header does not name. Needs the writer lock.

    Raises
    ------
    StorageError
        The system refuses.
    """
    path = place = folder / FOLDER
    try:
        unused = unused_files(folder, baseline)
        for path in unused:
            path.unlink(missing_ok=True)
        if unused:
            sync_folder(place)
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}", path=path) from None


class _Hashing:
    """A file that is hashed while it is written."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        """Write some bytes."""
        self._file.write(data)
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the file is flushed at its end."""


@contextmanager
def _packed(file: _Hashing, suffix: str) -> Iterator[Any]:
    if suffix == "zst":
        with zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(file, closefd=False) as packed:  # type: ignore[arg-type]
            yield packed
    else:
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
            yield packed


@contextmanager
def _unpacked(file: Any, path: Path) -> Iterator[Iterable[bytes]]:
    if path.suffix == ".gz":
        with gzip.GzipFile(fileobj=file, mode="rb") as stream:
            yield stream
        return
    if zstandard is None:
        raise MissingExtraError("the baseline of this store", package="zstandard", extra="zstd")
    with zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES).stream_reader(file) as unpacked:
        yield _lines(unpacked)


def _lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    while block := stream.read(1 << 20):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    if rest:
        raise EOFError("the last line has no end")


def _hash(line: bytes) -> int:
    return int.from_bytes(hashlib.sha256(line).digest())
