"""The archive of a backup: a compressed tar file, written and read in one pass.

What is read is foreign until it is verified: the reader accepts regular files alone, exactly those that its caller names, in order and
with their sizes, and never takes in more than these sizes allow.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, cast

from memgraph.disk.files import make_own, name_anew, open_regular, sync_folder
from memgraph.errors import BackupError, InvalidInputError, MissingExtraError
from memgraph.store.backup import manifest
from memgraph.store.backup.manifest import BackupFile

ZSTD, GZIP = ".tar.zst", ".tar.gz"
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BLOCK_BYTES = 1 << 20
_TAR_BLOCK_BYTES = 512
_TAR_END_BYTES = 2 * tarfile.RECORDSIZE
"""Most zeros after the last file: tar pads to whole records."""
_MOST_WINDOW_BYTES = 64 << 20
"""Most memory that a zstd frame may ask for; ours need 8 MB."""


def check_name(path: Path) -> None:
    """Refuse a name whose compression is unknown, or whose package is missing.

    Raises
    ------
    InvalidInputError, MissingExtraError
    """
    if path.name.endswith(ZSTD):
        _zstandard()
    elif not path.name.endswith(GZIP):
        raise InvalidInputError(f"must end in {ZSTD} or {GZIP}", field="file", value=str(path))


class ArchiveWriter:
    """Writes an archive as a temporary file, mode 0600; a context manager. Without `publish`, nothing remains.

    Parameters
    ----------
    path : Path
        The name that `publish` gives it.
    replaces : bool
        Whether it may replace a file.

    Raises
    ------
    BackupError
        The system refuses, or the file exists. Any other `OSError` in the block is raised as this one.
    """

    def __init__(self, path: Path, *, replaces: bool) -> None:
        self._path = path
        self._replaces = replaces
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with _refusals(self._path):
            _remove_abandoned(self._path)
            self._file = os.fdopen(make_own(self._temporary), "wb")
        for _ in range(2):  # again, if Ctrl-C comes at the first
            self._stack.callback(self._temporary.unlink, missing_ok=True)
        self._stack.enter_context(self._file)
        self._packed = self._stack.enter_context(_compressed(self._file, self._path))
        self._tar = tarfile.open(fileobj=self._packed, mode="w|", format=tarfile.GNU_FORMAT, bufsize=_BLOCK_BYTES)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with suppress(OSError):
            self._tar.close()
        self._stack.close()
        if isinstance(error, OSError):
            with _refusals(self._path):
                raise error

    def add(self, name: str, size_bytes: int, source: IO[bytes]) -> None:
        """Add a file of exactly this size.

        Raises
        ------
        OSError
            The source ends early, or the system refuses.
        """
        entry = tarfile.TarInfo(name)  # without times and owners: they say nothing about a store
        entry.size, entry.mode = size_bytes, 0o600
        self._tar.addfile(entry, source)

    def finish(self) -> int:
        """Complete and sync the archive, and return its size in bytes."""
        self._tar.close()
        self._packed.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def publish(self) -> None:
        """Give the finished archive its name."""
        if self._replaces:
            self._temporary.replace(self._path)
        else:
            name_anew(self._temporary, self._path)
        sync_folder(self._path.parent)


class ArchiveReader:
    """Reads the files of an archive in their order."""

    def __init__(self, path: Path, stream: _Limited) -> None:
        self._path = path
        self._stream = stream
        stream.allow(manifest.MAX_BYTES)
        with _damage(path):
            self._tar = tarfile.open(fileobj=cast("Any", stream), mode="r|", bufsize=1 << 16)  # noqa: SIM115

    def read_manifest(self) -> bytes:
        """Return the bytes of the manifest, which is the first file."""
        entry = self._next(manifest.NAME)
        if entry.size > manifest.MAX_BYTES:
            raise manifest.damaged(self._path, "its manifest is too large")
        with _damage(self._path):
            return self._content(entry).read(entry.size)

    def expect(self, files: list[BackupFile]) -> None:
        """Allow exactly these files to be read, in this order."""
        padded = (one.size_bytes + 3 * _TAR_BLOCK_BYTES + 1_024 for one in files)  # header, padding, a long name
        self._stream.allow(sum(padded) + _TAR_END_BYTES)

    def copy(self, file: BackupFile, write: Callable[[bytes], object]) -> None:
        """Pass the next file to a function in blocks; it must be this one.

        Raises
        ------
        BackupError
            It is another one, or its bytes are not those of the manifest.
        """
        entry = self._next(stored_name(file))
        if entry.size != file.size_bytes:
            raise manifest.damaged(self._path, f"{file.name} has {entry.size} bytes, not {file.size_bytes}")
        digest, left = hashlib.sha256(), file.size_bytes
        content = self._content(entry)
        while left:
            with _damage(self._path):
                block = content.read(min(_BLOCK_BYTES, left))
            if not block:
                raise manifest.damaged(self._path, f"{file.name} ends early")
            digest.update(block)
            left -= len(block)
            write(block)
        if digest.hexdigest() != file.sha256:
            raise manifest.damaged(self._path, f"{file.name} differs from its SHA-256")

    def end(self) -> None:
        """Check that nothing follows, and that the compressed file is whole."""
        with _damage(self._path):
            if (entry := self._tar.next()) is not None:
                raise manifest.damaged(self._path, f"it contains {entry.name!r}, which its manifest does not name")
            while block := self._stream.read(_BLOCK_BYTES):
                if any(block):
                    raise manifest.damaged(self._path, "something follows its last file")

    def _next(self, name: str) -> tarfile.TarInfo:
        with _damage(self._path):
            entry = self._tar.next()
        if entry is None:
            raise manifest.damaged(self._path, f"it ends before {name}")
        if entry.name != name or not entry.isreg() or entry.sparse is not None:
            raise manifest.damaged(self._path, f"it contains {entry.name!r} where the file {name} is expected")
        return entry

    def _content(self, entry: tarfile.TarInfo) -> IO[bytes]:
        content = self._tar.extractfile(entry)
        assert content is not None, "only regular files get here"  # noqa: S101
        return content


def stored_name(file: BackupFile) -> str:
    """Return a file's name in the archive."""
    return f"{file.name}@{file.offset}" if file.offset else file.name


@contextmanager
def reading(path: Path) -> Iterator[ArchiveReader]:
    """Open an archive; its compression is recognised by its first bytes.

    Raises
    ------
    BackupError
        It cannot be read, or is no such archive.
    MissingExtraError
        The package for its compression is missing.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_regular(path, follows_links=True))
            magic = file.read(4)
            file.seek(0)
        except OSError as error:
            raise BackupError(f"cannot be read: {error.strerror}", path=path) from None
        if magic[:2] == _GZIP_MAGIC:
            stream: Any = gzip.GzipFile(fileobj=file, mode="rb")
        elif magic == _ZSTD_MAGIC:
            unpacking = _zstandard().ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
            stream = unpacking.stream_reader(file, read_across_frames=True)
        else:
            raise BackupError(f"is not a backup: it is neither a {ZSTD} nor a {GZIP} file", path=path)
        yield ArchiveReader(path, _Limited(stream, path))


class _Limited:
    """A stream that gives a limited number of bytes, whatever an archive unpacks to."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._left = 0

    def allow(self, more_bytes: int) -> None:
        """Allow so many more bytes to be read."""
        self._left += more_bytes

    def read(self, size: int) -> bytes:
        """Return up to so many bytes; refuse once the limit is passed."""
        found = self._stream.read(min(size, self._left + 1))
        self._left -= len(found)
        if self._left < 0:
            raise manifest.damaged(self._path, "it unpacks to more than its manifest names")
        return found


@contextmanager
def _compressed(file: BinaryIO, path: Path) -> Iterator[Any]:
    if path.name.endswith(ZSTD):
        compressor = _zstandard().ZstdCompressor(level=3, write_checksum=True)
        packed: Any = compressor.stream_writer(file, closefd=False)
    else:
        packed = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
    try:
        yield packed
    finally:
        with suppress(OSError, ValueError):  # closed by `finish`, unless the archive is given up
            packed.close()


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError(
            f"{ZSTD} files (a backup may also be a {GZIP} file, which needs nothing)", package="zstandard", extra="zstd"
        ) from None
    return zstandard


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Raise what a damaged archive makes its readers raise as a `BackupError`."""
    try:
        yield
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, gzip.BadGzipFile):
            raise BackupError(f"cannot be read: {error.strerror}", path=path) from None
        raise manifest.damaged(path, "it cannot be unpacked") from None
    except _zstd_error():
        raise manifest.damaged(path, "it cannot be unpacked") from None


def _zstd_error() -> type[BaseException]:
    try:
        import zstandard
    except ImportError:
        return zlib.error  # the file is no such archive
    return zstandard.ZstdError


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise BackupError("exists; choose another name, or replace it with --force", path=path) from None
    except OSError as error:
        reason = error.strerror or "the store's files changed"
        raise BackupError(f"cannot be written: {reason}; choose another path or free some space", path=path) from None


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files of earlier backups to this path whose processes have ended."""
    prefix, suffix = f".{path.name}.", ".tmp"
    for left in path.parent.iterdir():
        pid = left.name.removeprefix(prefix).removesuffix(suffix)
        if left.name == f"{prefix}{pid}{suffix}" and pid.isdecimal() and not _is_running(int(pid)):
            left.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
