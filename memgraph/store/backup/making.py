"""Backups of an open store: made, and listed."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from uuid import uuid4

from memgraph.disk.files import open_regular, read_own
from memgraph.disk.seal import Seal, seal_of
from memgraph.errors import BackupError, InvalidInputError, JournalError, KeyMissingError, StorageError
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.baseline.header import FOLDER, HEADER, parse_header
from memgraph.journal.closed.files import file_of, is_segment, names_in, opened
from memgraph.journal.closed.manifest import NAME as MANIFEST
from memgraph.journal.envelope import ENVELOPE_VERSION, Chain, CommitDraft
from memgraph.journal.journal import Journal
from memgraph.journal.keys.use import key_id_in
from memgraph.journal.opening import FORMAT as JOURNAL_FORMAT
from memgraph.journal.replay import Offset
from memgraph.journal.search import events_of
from memgraph.journal.segments import Position
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.logs import logger_of
from memgraph.model.base import Callback, checked
from memgraph.model.events.store import BackupMade, KeptVectors
from memgraph.model.results.maintenance import BackupResult
from memgraph.ports import Progress
from memgraph.store.backup import manifest
from memgraph.store.backup.archive import ArchiveWriter, check_name, reading, stored_name
from memgraph.store.backup.manifest import BackupBase, BackupFile, BackupHead, BackupManifest
from memgraph.store.opening import release
from memgraph.store.projection.projector import Projector
from memgraph.store.query import Reader

Advance = Callable[[int], None]
"""Called with the number of bytes that were read since the last call."""
_ELSEWHERE = {"verified.json", MANIFEST, HEADER}
"""Small files that are not merely copied: the restored store makes its checkpoint and manifest anew; the baseline's header goes with its rows."""
_BLOCK_BYTES = 1 << 20
logger = logger_of(__name__)

_MOST_TRIES = 3


class Backups:
    """Makes and lists the backups of a store.

    Parameters
    ----------
    home : Path
        The store's directory.
    """

    def __init__(self, home: Path, projector: Projector, reader: Reader, now: Callable[[], str]) -> None:
        self._home = home
        self._projector = projector
        self._journal = projector.journal
        self._reader = reader
        self._now = now

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
            Called with (done, total) bytes: each is read twice.

        Raises
        ------
        BackupError
            The file exists or cannot be written, or there is nothing to continue. No file is left.
        JournalError
            An event is not what was signed.
        """
        checked(Callback, progress, "progress")

        making = Making(self._home, self._projector, self._now, self.backups, progress)
        return making.run(path, incremental=incremental, base=base, replaces=replace, settle=self._reader.settle)

    def backups(self) -> list[BackupMade]:
        """Return the records of the backups that were made of this store, the last one last."""
        return [made for _, made in self._recorded()]

    def last_backup_at(self) -> str | None:
        """Return when the last backup was recorded; None: none was made."""
        return max((at for at, _ in self._recorded()), default=None)

    def _recorded(self) -> list[tuple[str, BackupMade]]:
        with self._projector.guard:
            self._journal.refresh()
        found = events_of(self._journal, {BackupMade.TYPE: None})
        return [(event.timestamp, event.payload) for event in found if isinstance(event.payload, BackupMade)]


class Making:
    """One backup of a store.

    Parameters
    ----------
    home : Path
        The store's directory.
    records : callable
        Returns the records of the backups that were made before.
    """

    def __init__(
        self,
        home: Path,
        projector: Projector,
        now: Callable[[], str],
        records: Callable[[], list[BackupMade]],
        progress: Progress | None,
    ) -> None:
        self._home = home
        self._projector = projector
        self._journal = projector.journal
        self._now = now
        self._records = records
        self._progress = progress

    def run(
        self,
        path: str | Path,
        *,
        incremental: bool,
        base: str | Path | None,
        replaces: bool,
        settle: Callable[[], None],
    ) -> BackupResult:
        """Make the backup; again, if the journal was rewritten meanwhile."""
        target = _absolute(path)
        check_name(target)
        self._check(target, replaces=replaces)
        settle()
        started = time.perf_counter()
        for _ in range(_MOST_TRIES):
            try:
                boundary = self._boundary()
                found = self._base(boundary, None if base is None else _absolute(base)) if incremental or base else None
                result = self._write(target, boundary, found, replaces=replaces)
            except RewrittenError:
                logger.warning("the journal was rewritten during a backup; it begins again")
                continue
            return result.model_copy(update={"seconds": round(time.perf_counter() - started, 3)})
        raise BackupError(
            f"the journal was rewritten {_MOST_TRIES} times during the backup; try again when no purge runs",
            path=target,
        )

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
        """Return the journal's end, and the state there."""
        with self._projector.reading():
            state, tail = self._projector.projection, self._journal.tail
            if state.seq != tail.chain.seq:
                raise JournalError("the graph could not be brought to the journal's end; run `memgraph rebuild`")
            return Boundary(tail, self._journal.named, f"{state.digest:064x}")

    def _base(self, boundary: Boundary, path: Path | None) -> Base:
        if path is not None:
            return self._base_of(path)
        records = [one for one in self._records() if one.seq <= boundary.seq]
        if not records:
            raise InvalidInputError("needs an earlier backup of this store; make a full one first", field="incremental")
        last = records[-1]
        if not Path(last.path).exists():
            logger.warning(
                "this backup continues %s, which is not there any more: it is needed to restore both", last.path
            )
        return Base(
            backup_id=last.backup_id,
            path=last.path,
            offset=offset_of(
                self._journal.store_id,
                seq=last.seq,
                signature=last.signature,
                timestamp=last.recorded_until,
                segment=last.segment,
                position=last.offset,
            ),
            journal_sha256=last.journal_sha256,
            vectors={one.model: one.rows for one in last.vector_files},
        )

    def _base_of(self, path: Path) -> Base:
        def seal_for(store_id: str, key_id: str) -> Seal:
            if store_id != self._journal.store_id:
                raise BackupError(f"is a backup of another store, {store_id}", path=path)
            key = self._journal.ring.find(key_id)
            if key is None:
                raise KeyMissingError(f"{path} was made with another key, {key_id!r}, which is missing", key_id=key_id)
            return seal_of(key.secret, manifest.PURPOSE, store_id)

        with reading(path) as archive:
            found = manifest.unsealed(archive.read_manifest(), path, seal_for)
        head = found.head
        return Base(
            backup_id=found.backup_id,
            path=str(path),
            offset=offset_of(
                found.store_id,
                seq=head.seq,
                signature=head.signature,
                timestamp=head.timestamp,
                segment=head.segment,
                position=head.offset,
            ),
            journal_sha256=found.journal_sha256,
            vectors={one.model: one.rows for one in found.vectors},
        )

    def _write(self, target: Path, boundary: Boundary, base: Base | None, *, replaces: bool) -> BackupResult:
        journal = self._journal
        advance = _counting(self._progress, 2 * size_of(journal, boundary, base))
        unchanged = Unchanged(journal, boundary)
        try:
            try:
                contents = read_contents(journal, boundary, base, home=self._home, advance=advance)
            except JournalError:
                unchanged.check()  # events that were read while they were rewritten do not follow each other
                raise
            made = self._manifest(boundary, base, contents)
            with ArchiveWriter(target, replaces=replaces) as archive:
                self._copy(archive, made, contents, advance)
                size = archive.finish()
                seq = self._publish(archive, unchanged, made, target, size)
        finally:
            unchanged.close()
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

    def _manifest(self, boundary: Boundary, base: Base | None, contents: Contents) -> BackupManifest:
        chain, position = boundary.offset.chain, boundary.offset.position
        return BackupManifest(
            format=manifest.FORMAT,
            backup_id=str(uuid4()),
            store_id=self._journal.store_id,
            made_at=self._now(),
            made_by=f"memgraph {release()}",
            first_seq=base.offset.chain.seq + 1 if base else 1,
            head=BackupHead(
                seq=chain.seq,
                signature=chain.signature,
                timestamp=chain.timestamp,
                segment=position.segment,
                offset=position.offset,
            ),
            digest=boundary.digest,
            schema_version=SCHEMA_VERSION,
            journal_format=JOURNAL_FORMAT,
            envelope_version=ENVELOPE_VERSION,
            key_ids=contents.key_ids,
            journal_sha256=contents.journal_sha256,
            vectors=contents.vectors,
            base=BackupBase(
                backup_id=base.backup_id,
                seq=base.offset.chain.seq,
                signature=base.offset.chain.signature,
                file=Path(base.path).name,
            )
            if base
            else None,
            files=[part.file for part in contents.parts],
        )

    def _copy(self, archive: ArchiveWriter, made: BackupManifest, contents: Contents, advance: Advance) -> None:
        key = self._journal.signing_key
        first = manifest.sealed(made, seal_of(key.secret, manifest.PURPOSE, made.store_id), key.key_id)
        archive.add(manifest.NAME, len(first), io.BytesIO(first))
        for part in contents.parts:
            with part.opened(advance) as source:
                archive.add(stored_name(part.file), part.file.size_bytes, source)

    def _publish(
        self, archive: ArchiveWriter, unchanged: Unchanged, made: BackupManifest, target: Path, size: int
    ) -> int | None:
        """Give the archive its name and record it; return the number of the record, or None if the store is read-only."""
        if self._journal.is_read_only:
            unchanged.check()
            archive.publish()
            logger.warning("the store is read-only, so the backup is not recorded in it")
            return None
        with self._projector.writing():
            unchanged.check()
            archive.publish()
            head = made.head
            record = BackupMade(
                backup_id=made.backup_id,
                path=str(target),
                seq=head.seq,
                signature=head.signature,
                recorded_until=head.timestamp,
                segment=head.segment,
                offset=head.offset,
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


def _absolute(path: str | Path) -> Path:
    """Return a file's path from the root, because it is recorded.

    Raises
    ------
    InvalidInputError
        It is no path.
    """
    if not isinstance(path, str | Path) or not Path(path).name or "\0" in str(path):
        raise InvalidInputError("must be the path of a file", field="file", value=path)
    try:
        str(path).encode()
        return Path(path).expanduser().absolute()
    except (ValueError, RuntimeError, OSError):
        raise InvalidInputError("must be the path of a file", field="file", value=path) from None


def _counting(progress: Progress | None, total: int) -> Advance:
    """Return a function that adds up bytes, and reports their sum."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(min(done, total), total)

    return advance


class RewrittenError(Exception):
    """The files below a boundary are no longer those that were verified: a purge or a new signing rewrote them."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A commit boundary of a journal, and the state there."""

    offset: Offset
    named: NamedVectors
    digest: str

    @property
    def seq(self) -> int:
        """Number of the last event."""
        return self.offset.chain.seq


@dataclass(frozen=True, slots=True)
class Base:
    """The boundary of an earlier backup: an incremental one contains what came after it."""

    backup_id: str
    path: str
    offset: Offset
    journal_sha256: str
    vectors: dict[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A slice of a file, or a small file that was read already."""

    file: BackupFile
    path: Path
    content: bytes | None = None

    @contextmanager
    def opened(self, advance: Advance) -> Iterator[IO[bytes]]:
        """Give the slice as a stream for a block that reads all of it.

        Raises
        ------
        RewrittenError
            The bytes that were read are not those that were hashed before.
        """
        if self.content is not None:
            yield io.BytesIO(self.content)
            return
        with ExitStack() as stack:
            with _refusals(self.path):
                if is_segment(self.path):
                    opening = opened(self.path.parent, self.path.name, self.file.offset)
                    source: IO[bytes] = stack.enter_context(opening)
                else:
                    source = stack.enter_context(open_regular(self.path))
                    source.seek(self.file.offset)
            hashing = _Hashing(source, self, advance)
            yield hashing  # type: ignore[misc]
            hashing.check()


@dataclass(slots=True)
class Contents:
    """The parts of a backup, and what they were found to be."""

    parts: list[Part] = field(default_factory=list)
    vectors: list[KeptVectors] = field(default_factory=list)
    key_ids: list[str] = field(default_factory=list)
    journal_sha256: str = ""


class Unchanged:
    """Tells whether a journal's segments are the files that they were.

    A closed segment never changes, and the last one only grows. A rewritten one is another file, and so is one that was compressed meanwhile;
    the last is kept open, so that no other file can get its number.
    """

    def __init__(self, journal: Journal, boundary: Boundary) -> None:
        self._folder = journal.folder
        self._last = boundary.offset.position.segment
        with _refusals(self._folder / self._last):
            self._held = file_of(self._folder, self._last).open("rb")
            self._found = self._files()

    def check(self) -> None:
        """Raise `RewrittenError` if a segment was rewritten."""
        with _refusals(self._folder):
            if self._files() != self._found:
                raise RewrittenError

    def close(self) -> None:
        """Release the last segment."""
        self._held.close()

    def _files(self) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for name in names_in(self._folder):
            status = file_of(self._folder, name).stat()
            if name < self._last:
                found.append((name, status.st_ino, status.st_size, status.st_ctime_ns))
            elif name == self._last:
                found.append((name, status.st_ino))
        return found


def size_of(journal: Journal, boundary: Boundary, base: Base | None) -> int:
    """Return the number of bytes that `read_contents` will read, about."""
    end = boundary.offset.position
    total = end.offset + sum(journal.segments.size(name) for name in journal.segments.names() if name < end.segment)
    for model, rows in boundary.named.rows.items():
        before = base.vectors.get(model, 0) if base else 0
        total += (rows - before) * 4 * (boundary.named.dimension_of(model) or 0)
    return total


def read_contents(journal: Journal, boundary: Boundary, base: Base | None, *, home: Path, advance: Advance) -> Contents:
    """Verify every event up to a boundary, or after a base, and hash the files that hold them.

    Raises
    ------
    BackupError
        The events of the base are no longer in the journal as they were.
    JournalError
        An event is not what was signed.
    """
    found = Contents()
    whole = hashlib.sha256()
    if base is not None:
        _skip(journal, base, whole, advance)
    slices, keys = _segments(journal, boundary, base, whole, advance)
    found.parts += [Part(one, journal.folder / Path(one.name).name) for one in slices]
    found.parts += _baseline(journal, boundary, advance)
    found.key_ids = sorted(keys)
    found.journal_sha256 = whole.hexdigest()
    for model, rows in sorted(boundary.named.rows.items()):
        dimension = boundary.named.dimension_of(model) or 0
        if not rows or not dimension:
            continue
        found.vectors.append(KeptVectors(model=model, dimension=dimension, rows=rows))
        file = journal.vectors(model, dimension)
        start = (base.vectors.get(model, 0) if base else 0) * file.row_bytes
        part = _slice(file.path, f"journal/vectors/{file.path.name}", start, rows * file.row_bytes, advance)
        found.parts += [part] if part else []
    small = [path for path in sorted(journal.folder.glob("*.json")) if path.name not in _ELSEWHERE]
    for path in (*small, home / "config.toml"):
        if path.exists():
            with _refusals(path):
                data = read_own(path)
            name = str(path.relative_to(home))
            sha256 = hashlib.sha256(data).hexdigest()
            found.parts.append(Part(BackupFile(name=name, offset=0, size_bytes=len(data), sha256=sha256), path, data))
    return found


def offset_of(store_id: str, *, seq: int, signature: str, timestamp: str, segment: str, position: int) -> Offset:
    """Return a point of a journal from what a record states about it."""
    return Offset(Chain(store_id, seq, signature, timestamp), Position(segment, position))


def _segments(
    journal: Journal, boundary: Boundary, base: Base | None, whole: hashlib._Hash, advance: Advance
) -> tuple[list[BackupFile], set[str]]:
    """Verify the events after a base; return the slices of the segments that hold them, and the ids of their keys."""
    start = base.offset if base else journal.start
    keys: set[str] = set()
    sizes: dict[str, int] = {}
    digests: dict[str, hashlib._Hash] = {}
    reached = start.chain
    for commit in journal.replay(start) if start.chain.seq < boundary.seq else ():
        segment = commit.after.position.segment
        digests.setdefault(segment, hashlib.sha256()).update(commit.data)
        sizes[segment] = sizes.get(segment, 0) + len(commit.data)
        whole.update(commit.data)
        keys |= {key_id for key_id in map(key_id_in, commit.data.splitlines()) if key_id is not None}
        advance(len(commit.data))
        reached = commit.after.chain
        if reached.seq >= boundary.seq:
            break
    if (reached.seq, reached.signature) != (boundary.seq, boundary.offset.chain.signature):
        raise RewrittenError
    slices = [
        BackupFile(
            name=f"journal/{segment}",
            offset=start.position.offset if segment == start.position.segment else 0,
            size_bytes=size,
            sha256=digests[segment].hexdigest(),
        )
        for segment, size in sorted(sizes.items())
    ]
    return slices, keys


def _skip(journal: Journal, base: Base, whole: hashlib._Hash, advance: Advance) -> None:
    """Hash the journal up to a base, which must be as it was when the base was made."""
    end = base.offset.position
    for block in journal.segments.blocks(journal.start.position, end):
        whole.update(block)
        advance(len(block))
    if whole.hexdigest() != base.journal_sha256:
        raise BackupError(
            f"the journal up to event {base.offset.chain.seq} is no longer as it was in the backup {base.path}, because events "
            "were purged, signed again or condensed since, or that backup is of another copy: make a full backup",
            path=journal.folder,
        )


def _baseline(journal: Journal, boundary: Boundary, advance: Advance) -> list[Part]:
    """Return the parts of the journal's baseline, if it has one: its header, and the rows that this header names."""
    path = journal.folder / HEADER
    if not path.exists():
        return []
    with _refusals(path):
        data = read_own(path)
    found, _ = parse_header(data, path, journal.store_id, journal.ring)
    if found.seq > boundary.seq:
        raise RewrittenError  # the journal was compacted further meanwhile
    rows = _slice(found.path(journal.folder), f"journal/{FOLDER}/{found.file}", 0, found.size_bytes, advance)
    if rows is None or rows.file.sha256 != found.sha256:
        raise RewrittenError
    sha256 = hashlib.sha256(data).hexdigest()
    header = BackupFile(name=f"journal/{HEADER}", offset=0, size_bytes=len(data), sha256=sha256)
    return [rows, Part(header, path, data)]


def _slice(path: Path, name: str, start: int, end: int, advance: Advance) -> Part | None:
    """Hash a part of a vector file; one that ends early is taken as far as it goes."""
    digest, size = hashlib.sha256(), 0
    try:
        with open_regular(path) as file:
            file.seek(start)
            while start + size < end and (block := file.read(min(_BLOCK_BYTES, end - start - size))):
                digest.update(block)
                size += len(block)
                advance(len(block))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    if not size:
        return None
    return Part(BackupFile(name=name, offset=start, size_bytes=size, sha256=digest.hexdigest()), path)


class _Hashing:
    """The stream of a part, which hashes what is read from it."""

    def __init__(self, source: IO[bytes], part: Part, advance: Advance) -> None:
        self._source = source
        self._part = part
        self._advance = advance
        self._left = part.file.size_bytes
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        with _refusals(self._part.path):
            data = self._source.read(min(size, self._left))
        if not data and self._left:
            raise RewrittenError
        self._left -= len(data)
        self._digest.update(data)
        self._advance(len(data))
        return data

    def check(self) -> None:
        """Raise `RewrittenError` unless the bytes are those of the part."""
        if self._digest.hexdigest() != self._part.file.sha256:
            raise RewrittenError


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise RewrittenError from None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
