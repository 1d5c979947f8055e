"""The files of segments: plain ones, and closed ones that were compressed.

A segment is known by the name of its plain file (``000000000001.jsonl``), and positions in it count uncompressed bytes. Its compressed
file (``000000000001.jsonl.zst``) is one zstd frame that states the size of its content. Where both exist, the plain one counts. Segments may
also lie in the folder ``archive`` in the journal's.
"""

from __future__ import annotations

import errno
import hashlib
import io
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from memgraph.disk.files import make_own, open_regular, sync_folder, write_private
from memgraph.errors import DamagedJournalError, MissingExtraError, StorageError
from memgraph.journal.closed.digest import Extent

ARCHIVE = "archive"
"""The folder, in the journal's, of segments that are kept but no longer needed."""
PLAIN, PACKED = ".jsonl", ".jsonl.zst"
_HEADER_BYTES = 18
"""Most bytes of the header of a zstd frame."""
_MOST_WINDOW_BYTES = 64 << 20
"""Most memory that a frame may ask for; ours need 2 MB."""
_BLOCK_BYTES = 1 << 20
_PIECE_BYTES = 1 << 17
"""Bytes in a block of a zstd frame."""
_LEVEL = 3


class FileState(NamedTuple):
    """What changes if a segment's file is replaced by another: the path's name and the number of the file."""

    name: str
    inode: int


def names_in(folder: Path) -> list[str]:
    """Return the names of a journal's segments in order, plain, compressed and archived ones alike."""
    return sorted({name_of(path) for place in _places(folder) for path in files_in(place)})


def is_segment(path: Path) -> bool:
    """Return whether a path is that of a segment, plain or compressed; not a temporary file of one."""
    return path.name.endswith((PLAIN, PACKED)) and not path.name.startswith(".")


def name_of(path: Path) -> str:
    """Return the name of the segment whose file this is."""
    return path.name.removesuffix(".zst")


def first_seq_of(name: str) -> int:
    """Return the number of a segment's first event, which its name states."""
    return int(name.partition(".")[0])


def plain_path(folder: Path, name: str) -> Path:
    """Return the path of a segment's plain file."""
    return folder / name


def packed_path(folder: Path, name: str) -> Path:
    """Return the path of a segment's compressed file."""
    return folder / f"{name}.zst"


def file_of(folder: Path, name: str) -> Path:
    """Return the file that holds a segment, also an archived one; the path of its plain file if there is none."""
    return next((path for path in _candidates(folder, name) if path.exists()), plain_path(folder, name))


def _places(folder: Path) -> tuple[Path, Path]:
    return folder, folder / ARCHIVE


def _candidates(folder: Path, name: str) -> list[Path]:
    """Return the paths that a segment may have: the first that exists counts."""
    return [path for place in _places(folder) for path in (plain_path(place, name), packed_path(place, name))]


def files_in(folder: Path) -> list[Path]:
    """Return all files of segments in a folder itself in order, also two of one segment."""
    return sorted(path for path in folder.iterdir() if is_segment(path)) if folder.is_dir() else []


def states_in(folder: Path) -> list[FileState]:
    """Return what changes if any segment is replaced, compressed or unpacked."""
    found = []
    for path in files_in(folder):
        with suppress(FileNotFoundError):
            found.append(FileState(path.name, path.stat().st_ino))
    return found


def size_of(folder: Path, name: str) -> int:
    """Return a segment's number of bytes, uncompressed. A compressed file states it; reading checks it.

    Raises
    ------
    OSError
        There is no file, or it cannot be read.
    DamagedJournalError
        A compressed file does not begin as one.
    """
    for path in _candidates(folder, name) * 2:  # it may be compressed, unpacked or moved between the looks
        with suppress(FileNotFoundError):
            if path.name == name:
                return path.stat().st_size
            with open_regular(path) as file:
                return _stated_size(file, path)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(plain_path(folder, name)))


@contextmanager
def opened(folder: Path, name: str, offset: int = 0) -> Iterator[IO[bytes]]:
    """Give a segment's bytes from an offset on, uncompressed, as a buffered stream.

    Raises
    ------
    OSError
        There is no file, or it cannot be read.
    DamagedJournalError
        A compressed file is not whole. Raised while the stream is read, too.
    MissingExtraError
        The segment is compressed, and the package for that is missing.
    """
    with _opened(folder, name) as stream:
        buffered = io.BufferedReader(stream, _BLOCK_BYTES) if isinstance(stream, _Unpacked) else stream
        skip(buffered, offset)
        yield buffered


def skip(stream: IO[bytes], count: int) -> None:
    """Skip bytes of a stream that `opened` gives."""
    if stream.seekable():
        stream.seek(count, os.SEEK_CUR)
        return
    left = count
    while left and (block := stream.read(min(_BLOCK_BYTES, left))):
        left -= len(block)


def _opened(folder: Path, name: str) -> IO[bytes] | _Unpacked:
    for path in _candidates(folder, name) * 2:
        with suppress(FileNotFoundError):
            return path.open("rb") if path.name == name else _Unpacked(open_regular(path), path)
    return plain_path(folder, name).open("rb")


@contextmanager
def held(folder: Path, name: str) -> Iterator[mmap.mmap | bytes]:
    """Give all bytes of a segment for a block that searches them: mapped, or unpacked into memory."""
    with opened(folder, name) as stream:
        if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, _Unpacked):
            yield stream.read()
        elif not os.fstat(stream.fileno()).st_size:
            yield b""
        else:
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                yield mapped


def replace(folder: Path, name: str, data: bytes) -> None:
    """Replace a segment's content atomically, in the form that it has: plain or compressed.

    Raises
    ------
    StorageError
        The system refuses.
    """
    path = file_of(folder, name)
    if path.name == name:
        write_private(path, data)
        packed_path(path.parent, name).unlink(missing_ok=True)
        return
    write_private(path, _zstandard().ZstdCompressor(level=_LEVEL, write_checksum=True).compress(data))


def write_packed(plain: Path, temporary: Path) -> None:
    """Write the compressed form of a segment's plain file to a temporary file, mode 0600, and sync it.

    Raises
    ------
    OSError
        The system refuses.
    MissingExtraError
        The package for it is missing.
    """
    compressor = _zstandard().ZstdCompressor(level=_LEVEL, write_checksum=True)
    descriptor = make_own(temporary)
    with os.fdopen(descriptor, "wb") as target, plain.open("rb") as source:
        compressor.copy_stream(source, target, size=os.fstat(source.fileno()).st_size)
        target.flush()
        os.fsync(descriptor)


def unpack(folder: Path, name: str, size: int | None = None) -> None:
    """Turn a compressed segment, or its first bytes, into a plain one. Nothing to do for a plain one.

    Raises
    ------
    OSError
        The system refuses.
    DamagedJournalError
        The compressed file is not whole as far as it is needed.
    """
    plain, packed = plain_path(folder, name), packed_path(folder, name)
    if not plain.exists() and packed.exists():
        temporary = plain.with_name(f".{name}.{os.getpid()}.tmp")
        try:
            descriptor = make_own(temporary)
            with os.fdopen(descriptor, "wb") as target, opened(folder, name) as source:
                left = size
                while block := source.read(_BLOCK_BYTES if left is None else min(_BLOCK_BYTES, left)):
                    target.write(block)
                    left = None if left is None else left - len(block)
                target.flush()
                os.fsync(descriptor)
            temporary.replace(plain)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(folder)
    packed.unlink(missing_ok=True)


def remove(folder: Path, name: str) -> None:
    """Remove a segment in all its forms. Raise `OSError` if the system refuses."""
    for path in reversed(_candidates(folder, name)):
        path.unlink(missing_ok=True)


def remove_shadowed(folder: Path) -> None:
    """Remove the files of segments that do not count because another file of the same segment does.

    Only a killed compression or a foreign hand leaves such a file. Nothing reads it, so it may hold what the one that counts no longer has.

    Raises
    ------
    StorageError
        The system refuses.
    """
    for name in names_in(folder):
        for path in [path for path in _candidates(folder, name) if path.exists()][1:]:
            try:
                path.unlink()
            except OSError as error:
                raise StorageError(f"cannot be removed: {error.strerror}", path=path) from None


def can_pack() -> bool:
    """Return whether the package for compressed segments is installed."""
    try:
        _zstandard()
    except MissingExtraError:
        return False
    return True


class _Unpacked(io.RawIOBase):
    """The content of a compressed segment, limited to the size that its header states."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        super().__init__()
        self._file = file
        self._path = path
        try:
            self._size = _stated_size(file, path)
            file.seek(0)
            self._stream: Any = _zstandard().ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES).stream_reader(file)
        except BaseException:
            file.close()
            raise
        self._done = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        try:  # in small pieces: what comes before damage is read
            count = cast("int", self._stream.readinto(memoryview(buffer)[:_PIECE_BYTES]))
        except _zstandard().ZstdError:
            raise self._damaged("it cannot be unpacked") from None
        self._done += count
        if self._done > self._size or (not count and self._done < self._size and len(buffer)):
            raise self._damaged(f"it unpacks to another size than the {self._size} bytes that it states")
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _damaged(self, reason: str) -> DamagedJournalError:
        return DamagedJournalError(reason, path=self._path, offset=self._done)


def _stated_size(file: BinaryIO, path: Path) -> int:
    """Return the size that the header of a compressed segment states."""
    zstandard = _zstandard()
    try:
        size = zstandard.get_frame_parameters(file.read(_HEADER_BYTES)).content_size
    except zstandard.ZstdError:
        raise DamagedJournalError("it is not a compressed segment", path=path, offset=0) from None
    if not 0 <= size < zstandard.CONTENTSIZE_ERROR:
        raise DamagedJournalError("its header does not state its size", path=path, offset=0)
    return cast("int", size)


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("compressed segments of the journal", package="zstandard", extra="zstd") from None
    return zstandard


def extent_in(folder: Path, name: str) -> Extent:
    """Return size and SHA-256 of a segment's content, uncompressed; raises the errors of `opened`."""
    with opened(folder, name) as stream:
        return _hashed(stream)


def content_of(packed: Path) -> Extent:
    """Return size and SHA-256 of what a compressed file contains, whatever its name; raises the errors of `opened`."""
    with io.BufferedReader(_Unpacked(open_regular(packed), packed), _BLOCK_BYTES) as stream:
        return _hashed(stream)


def _hashed(stream: IO[bytes]) -> Extent:
    digest, size = hashlib.sha256(), 0
    while block := stream.read(_BLOCK_BYTES):
        digest.update(block)
        size += len(block)
    return Extent(size, digest.hexdigest())


def read_all(folder: Path, name: str) -> bytes:
    """Return all bytes of a segment, uncompressed.

    Raises
    ------
    StorageError
        The file cannot be read.
    DamagedJournalError
        A compressed file is not whole.
    """
    try:
        with opened(folder, name) as stream:
            return stream.read()
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=file_of(folder, name)) from None
