"""What a backup contains: slices of the store's files up to a commit boundary, verified as they are hashed."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from memgraph.disk.files import open_regular, read_own
from memgraph.errors import BackupError, StorageError
from memgraph.journal.baseline.header import FOLDER, HEADER, parse_header
from memgraph.journal.closed.files import file_of, is_segment, names_in, opened
from memgraph.journal.closed.manifest import NAME as MANIFEST
from memgraph.journal.envelope import Chain
from memgraph.journal.journal import Journal
from memgraph.journal.keys.use import key_id_in
from memgraph.journal.replay import Offset
from memgraph.journal.segments import Position
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.model.events.store import KeptVectors
from memgraph.store.backup.manifest import BackupFile

Advance = Callable[[int], None]
"""Called with the number of bytes that were read since the last call."""
_ELSEWHERE = {"verified.json", MANIFEST, HEADER}
"""Small files that are not merely copied: the restored store makes its checkpoint and manifest anew; the baseline's header goes with its rows."""
_BLOCK_BYTES = 1 << 20


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
