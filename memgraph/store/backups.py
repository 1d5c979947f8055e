"""Backups of an open store: the archive, a compressed tar file, and how it is made, listed and read.

A backup holds the journal's events as lines of JSON, the vectors as rows of float32, and the settings; not rows, graph or index, which are made of
these. So it does not depend on the database that the store is in. The manifest is the first file, authenticated with a key derived from the
store's, so that every other file is expected, with its size and SHA-256, before it is read. What is read is foreign until it is verified: the
reader accepts regular files alone, exactly those that its caller names, in order and with their sizes, and never takes in more than these allow.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO, NamedTuple, Self, cast
from uuid import uuid4

import orjson
from pydantic import AfterValidator, Field

from memgraph.disk.files import make_own, name_anew, open_regular, read_own, storage_errors, sync_folder
from memgraph.disk.lock import is_running
from memgraph.disk.seal import Seal
from memgraph.errors import BackupError, BusyError, InvalidInputError, KeyMissingError, MissingExtraError, StorageError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.envelope import ENVELOPE_VERSION, Chain, CommitDraft, canonical
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.keyring import KeyRing, key_place, seal_of
from memgraph.journal.vectors import NamedVectors
from memgraph.logs import logger_of
from memgraph.model.base import Callback, Name, Strict, Timestamp, checked
from memgraph.model.events.payload import Sha256, Whole
from memgraph.model.events.store import BackupMade, KeptVectors
from memgraph.model.ids import MemoryId, stored_form
from memgraph.model.results.maintenance import BackupResult
from memgraph.ports import KeyProvider, Progress
from memgraph.store.opening import release
from memgraph.store.query import StorePart

logger = logger_of(__name__)

SealFor = Callable[[str, str], Seal]
"""Returns the seal for a store's id and the id of its key, or raises the error for one that it does not have."""
FORMAT = 2
MANIFEST = "backup.json"
MAX_BYTES = 8 << 20
PURPOSE = "backup"
"""What the seal of manifests is for: see `Journal.seal`."""
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
ZSTD, GZIP = ".tar.zst", ".tar.gz"
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_BLOCK_BYTES = 1 << 20
_TAR_BLOCK_BYTES = 512
_TAR_END_BYTES = 2 * tarfile.RECORDSIZE
"""Most zeros after the last file: tar pads to whole records."""
_MOST_WINDOW_BYTES = 64 << 20
"""Most memory that a zstd frame may ask for; ours need 8 MB."""
EVENTS = "events.jsonl"
_MOST_TRIES = 3
_LOOK_S = 0.05


def _place(name: str) -> str:
    """Return the name of a file below the store's directory; refuse any that could lie elsewhere."""
    parts = name.split("/")
    if len(parts) > 8 or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError("must be a relative path of plain names")
    return name


class BackupFile(Strict):
    """A file in the archive: `size_bytes` bytes of the store's file `name`, from `offset` on."""

    name: Annotated[str, AfterValidator(_place)]
    offset: Whole
    size_bytes: Whole
    sha256: Sha256


class BackupHead(Strict):
    """The end of the journal in a backup: the last event."""

    seq: Whole
    signature: Sha256
    timestamp: Timestamp


class BackupBase(Strict):
    """The backup that an incremental one continues, and the name that its file had."""

    backup_id: MemoryId
    seq: Whole
    signature: Sha256
    file: Name


class BackupManifest(Strict):
    """A backup's content, in the archive's order: its events from `first_seq` to a commit, the digest of the state there, and all vectors' number."""

    format: Annotated[int, Field(ge=1)]
    backup_id: MemoryId
    store_id: MemoryId
    made_at: Timestamp
    made_by: Name
    first_seq: Whole
    head: BackupHead
    digest: Sha256
    schema_version: Name
    envelope_version: Whole
    key_ids: Annotated[list[Name], Field(max_length=10_000)]
    journal_sha256: Sha256
    vectors: Annotated[list[KeptVectors], Field(max_length=1_000)]
    base: BackupBase | None = None
    files: Annotated[list[BackupFile], Field(max_length=100_000)]


def sealed(manifest: BackupManifest, seal: Seal, key_id: str) -> bytes:
    """Return a manifest with its code, as it stands in the archive."""
    body = manifest.model_dump()
    return canonical({"body": body, "key_id": key_id, "code": seal.code(canonical(body))})


def unsealed(data: bytes, path: Path, seal_for: SealFor) -> BackupManifest:
    """Return the manifest of an archive, verified."""
    try:
        stored = json.loads(data)
        body, key_id, code = stored["body"], stored["key_id"], stored["code"]
        store_id, format_ = body["store_id"], body["format"]
        if stored_form(store_id) != store_id or not isinstance(key_id, str) or type(format_) is not int:
            raise ValueError("is not a manifest")
        written = canonical(body)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "its manifest cannot be read") from None
    if not seal_for(store_id, key_id).fits(code, written):
        raise damaged(path, "its manifest is not what was signed")
    if format_ != FORMAT:
        raise BackupError(f"backup format {format_} is unknown to this release; install a newer memgraph", path=path)
    try:
        return BackupManifest.parse(body)
    except InvalidInputError as error:
        raise damaged(path, f"its manifest does not fit its schema: {error.field}") from None


def seals_of(keys: KeyProvider, keys_home: Path, path: Path) -> SealFor:
    """Return what gives the seals of a provider's keys; it raises a `KeyMissingError` if the store's key is missing, or is another one."""

    def seal_for(store_id: str, key_id: str) -> Seal:
        ring = KeyRing.from_providers(store_id, keys, FileKeys(keys_home))
        key = ring.find(key_id)
        if key is None:
            is_other = f"not the key given, {ring.active.key_id}" if ring.active else "missing"
            shown = re.sub(r"[^0-9A-Za-z:._-]", "?", key_id)[:100]
            raise KeyMissingError(
                f"{path} was made with key {shown} of store {store_id}, which is {is_other}: a backup never contains "
                f"keys; {key_place(keys, store_id).remedy}",
                key_id=key_id,
            )
        return seal_of(key, PURPOSE, store_id)

    return seal_for


def damaged(path: Path, reason: str) -> BackupError:
    """Return the error for a backup that cannot be trusted."""
    return BackupError(f"the backup is damaged: {reason}; use another one", path=path)


def check_name(path: Path) -> None:
    """Refuse a name whose compression is unknown, or whose package is missing."""
    if path.name.endswith(ZSTD):
        _zstandard()
    elif not path.name.endswith(GZIP):
        raise InvalidInputError(f"must end in {ZSTD} or {GZIP}", field="file", value=str(path))


class ArchiveWriter:
    """Writes an archive as a private temporary file, to which `publish` gives the name; without that, nothing remains. Raises a `BackupError`."""

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
        with _refusals(self._path):
            self._stack.close()  # writes what is left of the buffer
            if isinstance(error, OSError):
                raise error

    def add(self, name: str, size_bytes: int, source: IO[bytes]) -> None:
        """Add a file of exactly this size."""
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
        stream.allow(MAX_BYTES)
        with _damage(path):
            self._tar = tarfile.open(fileobj=cast("Any", stream), mode="r|", bufsize=1 << 16)  # noqa: SIM115

    def read_manifest(self) -> bytes:
        """Return the bytes of the manifest, which is the first file."""
        entry = self._next(MANIFEST)
        if entry.size > MAX_BYTES:
            raise damaged(self._path, "its manifest is too large")
        with _damage(self._path):
            return self._content(entry).read(entry.size)

    def expect(self, files: list[BackupFile]) -> None:
        """Allow exactly these files to be read, in this order."""
        padded = (one.size_bytes + 3 * _TAR_BLOCK_BYTES + 1_024 for one in files)  # header, padding, a long name
        self._stream.allow(sum(padded) + _TAR_END_BYTES)

    def copy(self, file: BackupFile, write: Callable[[bytes], object]) -> None:
        """Pass the next file to a function in blocks; it must be this one, with the bytes that the manifest names."""
        entry = self._next(stored_name(file))
        if entry.size != file.size_bytes:
            raise damaged(self._path, f"{file.name} has {entry.size} bytes, not {file.size_bytes}")
        digest, left = hashlib.sha256(), file.size_bytes
        content = self._content(entry)
        while left:
            with _damage(self._path):
                block = content.read(min(_BLOCK_BYTES, left))
            if not block:
                raise damaged(self._path, f"{file.name} ends early")
            digest.update(block)
            left -= len(block)
            write(block)
        if digest.hexdigest() != file.sha256:
            raise damaged(self._path, f"{file.name} differs from its SHA-256")

    def end(self) -> None:
        """Check that nothing follows, and that the compressed file is whole."""
        with _damage(self._path):
            if (entry := self._tar.next()) is not None:
                raise damaged(self._path, f"it contains {entry.name!r}, which its manifest does not name")
            while block := self._stream.read(_BLOCK_BYTES):
                if any(block):
                    raise damaged(self._path, "something follows its last file")

    def _next(self, name: str) -> tarfile.TarInfo:
        with _damage(self._path):
            entry = self._tar.next()
        if entry is None:
            raise damaged(self._path, f"it ends before {name}")
        if entry.name != name or not entry.isreg() or entry.sparse is not None:
            raise damaged(self._path, f"it contains {entry.name!r} where the file {name} is expected")
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
    """Open an archive; its compression is recognised by its first bytes."""
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
            raise damaged(self._path, "it unpacks to more than its manifest names")
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
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, zlib.error, _zstd_error()) as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, gzip.BadGzipFile):
            raise BackupError(f"cannot be read: {error.strerror}", path=path) from None
        raise damaged(path, "it cannot be unpacked") from None


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
        if left.name == f"{prefix}{pid}{suffix}" and pid.isdecimal() and not is_running(int(pid)):
            left.unlink(missing_ok=True)


class Boundary(NamedTuple):
    """The journal's end in a backup, what the events up to there state about vectors, and the digest of the state."""

    chain: Chain
    named: NamedVectors
    digest: str


class Base(NamedTuple):
    """The backup that an incremental one continues."""

    backup_id: str
    path: str
    chain: Chain
    vectors: dict[str, int]


class Part(NamedTuple):
    """A file of a backup: what the manifest says of it, and its bytes."""

    file: BackupFile
    blocks: Callable[[], Iterator[bytes]]


@dataclass(eq=False)
class Backups(StorePart):
    """Makes and lists the backups of a store."""

    _home: Path

    def backup(
        self,
        path: str | Path,
        *,
        incremental: bool = False,
        base: str | Path | None = None,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> BackupResult:
        """Write a backup of all events, vectors and settings to one file that only its owner can read.

        Others may write meanwhile: the backup is the state after one commit. Every event is verified before it is copied. It
        never contains keys; without the store's key it can neither be verified nor restored. The backup is recorded as an event.

        Parameters
        ----------
        path : str or Path
            Ends in ``.tar.gz``, or in ``.tar.zst`` with the extra ``zstd``, which is quicker and smaller.
        incremental : bool
            Write only what was recorded since the last backup that the journal records; `memgraph.restore` needs both.
        base : str or Path, optional
            Continue this backup instead.
        replace : bool
            Replace the file if it exists.
        progress : callable, optional
            Called with (done, total) events.

        Raises
        ------
        BackupError
            The file exists or cannot be written, or there is nothing to continue. No file is left.
        JournalError
            An event is not what was signed.
        """
        checked(Callback, progress, "progress")
        target = _absolute(path)
        check_name(target)
        self._check(target, replaces=replace)
        self._reader.settle()
        started = time.perf_counter()
        for _ in range(_MOST_TRIES):
            boundary = self._boundary()
            found = self._base(boundary, None if base is None else _absolute(base)) if incremental or base else None
            try:
                result = self._write(target, boundary, found, replaces=replace, progress=progress)
            except RewrittenError:
                logger.warning("the journal was rewritten during a backup; it begins again")
                continue
            return result.model_copy(update={"seconds": round(time.perf_counter() - started, 3)})
        raise BackupError(
            f"the journal was rewritten {_MOST_TRIES} times during the backup; try again when no purge runs",
            path=target,
        )

    def backups(self) -> list[BackupMade]:
        """Return the records of the backups that were made of this store, the last one last."""
        return [made for _, made in self._recorded()]

    def last_backup_at(self) -> str | None:
        """Return when the last backup was recorded; None: none was made."""
        return max((at for at, _ in self._recorded()), default=None)

    def _recorded(self) -> list[tuple[str, BackupMade]]:
        with self._projector.guard:
            self._journal.refresh()
        found = self._journal.events_of(BackupMade.TYPE)
        return [(event.timestamp, event.payload) for event in found if isinstance(event.payload, BackupMade)]

    def _check(self, target: Path, *, replaces: bool) -> None:
        if not self._journal.has_key:
            raise KeyMissingError(
                "the signing key of this store is missing, so a backup could not be signed: restore the key"
            )
        if target.resolve().is_relative_to(self._home.resolve()):
            raise BackupError(
                "lies in the store itself, and would be lost with it; choose another directory", path=target
            )
        if target.is_dir():
            raise BackupError("is a directory; name a file in it", path=target)
        if target.exists() and not replaces:
            raise BackupError("exists; choose another name, or replace it with --force", path=target)

    def _boundary(self) -> Boundary:
        """Return the journal's end, once the rows are there, too: another process may be about to write them."""
        timeout_s = self._journal.lock_timeout_s
        until = time.monotonic() + timeout_s
        while time.monotonic() <= until:
            with self._projector.reading():
                rows, tail = self._projector.projection, self._journal.tail
                if (rows.seq, rows.signature) == (tail.seq, tail.signature):
                    return Boundary(tail, self._journal.named, f"{rows.digest:064x}")
            time.sleep(_LOOK_S)
        raise BusyError("the database", pid=None, timeout_s=timeout_s)

    def _base(self, boundary: Boundary, path: Path | None) -> Base:
        if path is not None:
            return self._base_of(path)
        records = [one for one in self.backups() if one.seq <= boundary.chain.seq]
        if not records:
            raise InvalidInputError("needs an earlier backup of this store; make a full one first", field="incremental")
        last = records[-1]
        if not Path(last.path).exists():
            logger.warning(
                "this backup continues %s, which is not there any more: it is needed to restore both", last.path
            )
        chain = Chain(self._journal.store_id, last.seq, last.signature, last.recorded_until)
        vectors = {one.model: one.rows for one in last.vector_files}
        return self._unchanged(Base(last.backup_id, last.path, chain, vectors))

    def _base_of(self, path: Path) -> Base:
        def seal_for(store_id: str, key_id: str) -> Seal:
            if store_id != self._journal.store_id:
                raise BackupError(f"is a backup of another store, {store_id}", path=path)
            seal = self._journal.seal_of(key_id, PURPOSE)
            if seal is None:
                raise KeyMissingError(f"{path} was made with another key, {key_id!r}, which is missing", key_id=key_id)
            return seal

        with reading(path) as archive:
            found = unsealed(archive.read_manifest(), path, seal_for)
        chain = Chain(found.store_id, found.head.seq, found.head.signature, found.head.timestamp)
        return self._unchanged(Base(found.backup_id, str(path), chain, {one.model: one.rows for one in found.vectors}))

    def _unchanged(self, base: Base) -> Base:
        """Check that the journal up to the base is as it was in it."""
        journal, seq = self._journal, base.chain.seq
        if self._is_rewritten(seq, base.chain.signature):
            raise BackupError(
                f"the journal up to event {seq} is no longer as it was in the backup {base.path}, because events were purged or "
                "signed again since, or that backup is of another copy: make a full backup",
                path=journal.path,
            )
        return base

    def _is_rewritten(self, seq: int, signature: str) -> bool:
        """Return whether the events up to one were signed again, or some of them purged, since that one was the last."""
        purges = (purge.seqs() for at, purge in self._journal.purges() if at > seq)
        return any(one <= seq for seqs in purges for one in seqs) or self._journal.signature_of(seq) != signature

    def _write(
        self, target: Path, boundary: Boundary, base: Base | None, *, replaces: bool, progress: Progress | None
    ) -> BackupResult:
        journal = self._journal
        parts, keys = self._parts(boundary, base, progress)
        made = self._manifest(boundary, base, parts, sorted(keys))
        with ArchiveWriter(target, replaces=replaces) as archive:
            first = sealed(made, journal.seal(PURPOSE), journal.signing_key.key_id)
            archive.add(MANIFEST, len(first), io.BytesIO(first))
            for part in parts:
                source = _Hashing(part)
                archive.add(stored_name(part.file), part.file.size_bytes, source)  # type: ignore[arg-type]
                source.check()
            size = archive.finish()
            seq = self._publish(archive, made, target, size)
        return BackupResult(
            file=str(target),
            backup_id=made.backup_id,
            base_id=base.backup_id if base else None,
            first_seq=made.first_seq,
            last_seq=made.head.seq,
            size_bytes=size,
            digest=made.digest,
            recorded_as=seq,
            seconds=0.0,
        )

    def _parts(self, boundary: Boundary, base: Base | None, progress: Progress | None) -> tuple[list[Part], set[str]]:
        """Verify what is copied; return it, the events first, and the ids of the keys that signed it."""
        journal, after, end = self._journal, base.chain.seq if base else 0, boundary.chain.seq
        reached = base.chain if base else journal.start
        for commit in journal.replay(reached, until=end):
            reached = commit.after
            if progress:
                progress(reached.seq, end)
        if (reached.seq, reached.signature) != (end, boundary.chain.signature):
            raise RewrittenError

        def events() -> Iterator[bytes]:
            return (line.data + b"\n" for line in journal.every_line(after, until=end))

        parts = [_part(EVENTS, 0, events)]
        keys = {str(orjson.loads(line.head)["key_id"]) for line in journal.every_line(after, until=end)}
        for model, rows in sorted(boundary.named.rows.items()):
            dimension = boundary.named.dimension_of(model) or 0
            first = base.vectors.get(model, 0) if base else 0
            if rows > first and dimension:
                vectors = journal.vectors(model, dimension)
                parts.append(
                    _part(
                        f"vectors/{vectors.path.name}",
                        first * vectors.row_bytes,
                        lambda vectors=vectors, first=first, rows=rows: vectors.blocks(first, rows),  # type: ignore[misc]
                    )
                )
        config = self._home / "config.toml"
        if config.exists():
            with storage_errors(config, "cannot be read"):
                data = read_own(config)
            parts.append(_part("config.toml", 0, lambda: iter([data])))
        return parts, keys

    def _manifest(self, boundary: Boundary, base: Base | None, parts: list[Part], key_ids: list[str]) -> BackupManifest:
        chain, continued = boundary.chain, None
        if base is not None:
            continued = BackupBase(
                backup_id=base.backup_id, seq=base.chain.seq, signature=base.chain.signature, file=Path(base.path).name
            )
        return BackupManifest(
            format=FORMAT,
            backup_id=str(uuid4()),
            store_id=self._journal.store_id,
            made_at=self._now(),
            made_by=f"memgraph {release()}",
            first_seq=base.chain.seq + 1 if base else 1,
            head=BackupHead(seq=chain.seq, signature=chain.signature, timestamp=chain.timestamp),
            digest=boundary.digest,
            schema_version=SCHEMA_VERSION,
            envelope_version=ENVELOPE_VERSION,
            key_ids=key_ids,
            journal_sha256=parts[0].file.sha256,
            vectors=[
                KeptVectors(model=model, dimension=dimension, rows=rows)
                for model, rows in sorted(boundary.named.rows.items())
                if rows and (dimension := boundary.named.dimension_of(model) or 0)
            ],
            base=continued,
            files=[part.file for part in parts],
        )

    def _publish(self, archive: ArchiveWriter, made: BackupManifest, target: Path, size: int) -> int | None:
        """Give the archive its name and record it; return the number of the record, or None if the store is read-only."""
        if self._journal.is_read_only:
            archive.publish()
            logger.warning("the store is read-only, so the backup is not recorded in it")
            return None
        with self._projector.writing():
            if self._is_rewritten(made.head.seq, made.head.signature):
                raise RewrittenError
            archive.publish()
            record = BackupMade(
                backup_id=made.backup_id,
                path=str(target),
                seq=made.head.seq,
                signature=made.head.signature,
                recorded_until=made.head.timestamp,
                segment=EVENTS,
                offset=0,
                journal_sha256=made.journal_sha256,
                vector_files=made.vectors,
                size_bytes=size,
                base_id=made.base.backup_id if made.base else None,
                made_by=made.made_by,
            )
            try:
                draft = CommitDraft("system", [record], actor="user")
                return self._projector.append([draft], self._now())[-1].seq
            except StorageError as error:
                logger.warning("the backup is whole, but could not be recorded: %s", error.loggable)
                return None


class RewrittenError(Exception):
    """The journal was rewritten while it was copied."""


class _Hashing:
    """The stream of a part, which hashes what is read from it."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._blocks = part.blocks()
        self._rest = b""
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        parts, length = [self._rest], len(self._rest)
        while length < size and (block := next(self._blocks, b"")):
            parts.append(block)
            length += len(block)
        data = b"".join(parts)
        data, self._rest = data[:size], data[size:]
        self._digest.update(data)
        if len(data) < size:
            raise RewrittenError
        return data

    def check(self) -> None:
        """Raise `RewrittenError` unless the bytes are those of the part."""
        if self._digest.hexdigest() != self._part.file.sha256:
            raise RewrittenError


def _part(name: str, offset: int, blocks: Callable[[], Iterator[bytes]]) -> Part:
    digest, size = hashlib.sha256(), 0
    for block in blocks():
        digest.update(block)
        size += len(block)
    return Part(BackupFile(name=name, offset=offset, size_bytes=size, sha256=digest.hexdigest()), blocks)


def _absolute(path: str | Path) -> Path:
    """Return a file's path from the root, because it is recorded."""
    if isinstance(path, str | Path) and Path(path).name and "\0" not in str(path):
        with suppress(ValueError, RuntimeError, OSError):
            str(path).encode()
            return Path(path).expanduser().absolute()
    raise InvalidInputError("must be the path of a file", field="file", value=path)
