"""Segments: the journal's files, in the order of their first events."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from memgraph.disk.files import FULL, free_bytes, sync_data, sync_folder, write_all
from memgraph.errors import StorageError
from memgraph.journal.closed import files
from memgraph.journal.closed.condensed import UNPROVEN, CondensedSegments
from memgraph.journal.closed.files import FileState
from memgraph.journal.envelope import (
    BEGINNING_BYTES,
    MAX_LINE_BYTES,
    Event,
    KeyOf,
    LineError,
    is_unsigned,
    unseal_alone,
)

RESERVE_BYTES = 40 << 20
"""Disk space kept free for the graph, which needs it to apply new events and whose engine fails badly on a full disk."""

COMPRESSED = 0
"""In place of the number of a file."""
_LOOKS = 3


@dataclass(frozen=True, slots=True)
class JournalLimits:
    """Limits of a journal's parts.

    Attributes
    ----------
    segment_bytes : int
        Size after which a new segment is started.
    checkpoint_events : int
        Number of events after the last checkpoint at which a new one is written.
    segment_days : float
        Age of a segment's first event after which a new segment is started, in days of the journal's clock.
    compresses : bool
        Whether `Journal.pack_next` compresses closed segments.
    """

    segment_bytes: int = 64 << 20
    checkpoint_events: int = 10_000
    segment_days: float = 30.0
    compresses: bool = True


DEFAULT_LIMITS = JournalLimits()


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position between two lines: `offset` bytes into `segment`."""

    segment: str
    offset: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its position.

    Attributes
    ----------
    whole : bool
        False for a last line without its newline.
    is_proven : bool
        Whether it is in a condensed segment, whose content is proven: an unsigned line counts only then.
    """

    data: bytes
    start: Position
    end: Position
    whole: bool
    is_proven: bool = field(default=False, kw_only=True)


def event_of(line: Line, store_id: str, key: KeyOf | None) -> Event:
    """Verify one line without the line before it, and return its event.

    Parameters
    ----------
    key : callable or None
        Returns the key of an id. If None, no signature is verified.

    Raises
    ------
    LineError, PayloadError, UnknownEventError
        As `unseal_alone`; or the line is unsigned and not proven.
    """
    if key is not None and is_unsigned(line.data):
        if not line.is_proven:
            raise LineError(UNPROVEN)
        key = None
    return unseal_alone(line.data, store_id, key)


class Segments:
    """The segments of a directory: ``*.jsonl`` files, and closed ones that were compressed (``*.jsonl.zst``) or archived.

    Parameters
    ----------
    segment_bytes : int
        Size after which `append` starts a new segment. Readers do not use it.
    condensed : CondensedSegments, optional
        Proves the content of condensed segments; without it none is proven.
    """

    def __init__(self, folder: Path, segment_bytes: int, condensed: CondensedSegments | None = None) -> None:
        self.folder = folder
        self.condensed = condensed
        self._segment_bytes = segment_bytes
        self.on_full: Callable[[], None] = lambda: None

    def path(self, position: Position) -> Path:
        """Return the file of a position."""
        return files.file_of(self.folder, position.segment)

    def names(self) -> list[str]:
        """Return the segments' names in order: the names of their plain files."""
        return files.names_in(self.folder)

    def size(self, name: str) -> int:
        """Return a segment's number of bytes, uncompressed.

        Raises
        ------
        StorageError
            The file is missing or cannot be read.
        """
        try:
            return files.size_of(self.folder, name)
        except OSError as error:
            raise self._unreadable(error, name) from None

    def first(self) -> Position:
        """Return the beginning of the journal."""
        names = self.names()
        return Position(names[0] if names else name_from(1), 0)

    @property
    def is_whole(self) -> bool:
        """Whether the first event's segment is there, or nothing was recorded yet."""
        return self.first().segment == name_from(1)

    def holding(self, seq: int) -> Position:
        """Return the beginning of the segment that may contain an event."""
        before = [name for name in self.names() if name <= name_from(seq)]
        return Position(before[-1], 0) if before else self.first()

    def last(self) -> str:
        """Return the name of the last segment."""
        names = self.names()
        return names[-1] if names else self.first().segment

    def origin(self) -> int | None:
        """Return what changes if all segments are replaced by others; `COMPRESSED` if the first one is; None if there are none.

        What replaces a journal are plain files.
        """
        first = self.folder / self.first().segment
        try:
            return first.stat().st_ino
        except FileNotFoundError:
            return COMPRESSED if files.file_of(self.folder, first.name) != first else None

    def states(self) -> list[FileState]:
        """Return what changes if any file is replaced, compressed or unpacked, or a new one is there."""
        return files.states_in(self.folder)

    def ends_before(self, tail: Position) -> bool:
        """Return whether bytes before a position are missing."""
        try:
            return files.size_of(self.folder, tail.segment) < tail.offset
        except FileNotFoundError:
            return tail.offset > 0

    def differs_from(self, tail: Position, next_seq: int) -> bool:
        """Return, at the cost of two stats, whether the journal no longer ends at a position: it has grown or shrunk.

        Parameters
        ----------
        next_seq : int
            Number of the next event, which names the segment that it may have started.
        """
        try:
            size = (self.folder / tail.segment).stat().st_size
        except FileNotFoundError:
            return tail.offset > 0
        return size != tail.offset or (tail.offset > 0 and (self.folder / name_from(next_seq)).exists())

    def lines(self, start: Position) -> Iterator[Line]:
        """Iterate over the lines after a position.

        Raises
        ------
        StorageError
            A segment cannot be read.
        DamagedJournalError
            A compressed segment is not whole, or the proof of condensed ones cannot be trusted.
        """
        for name in self.names():
            if name >= start.segment:
                yield from self.lines_in(name, start.offset if name == start.segment else 0)

    def lines_in(self, name: str, offset: int = 0) -> Iterator[Line]:
        """Iterate over the lines of a segment from an offset on; raises the same errors as `lines`."""
        try:
            with self._opened(name, offset) as (file, is_proven):
                while data := file.readline(MAX_LINE_BYTES + 1):
                    begin, offset = offset, offset + len(data)
                    whole = data.endswith(b"\n")
                    line = data[:-1] if whole else data
                    yield Line(line, Position(name, begin), Position(name, offset), whole, is_proven=is_proven)
        except OSError as error:
            raise self._unreadable(error, name) from None

    @contextmanager
    def _opened(self, name: str, offset: int) -> Iterator[tuple[IO[bytes], bool]]:
        """Give a segment's bytes from an offset on, and whether they are proven: those of a condensed segment are read and hashed first."""
        with files.opened(self.folder, name) as file:
            beginning = file.peek(BEGINNING_BYTES)  # type: ignore[attr-defined]
            if self.condensed is None or not is_unsigned(beginning):
                files.skip(file, offset)
                yield file, False
                return
        data, is_proven = self._proven(name, self.condensed)
        yield io.BytesIO(data[offset:]), is_proven

    def _proven(self, name: str, condensed: CondensedSegments) -> tuple[bytes, bool]:
        """Return the content of a condensed segment, and whether it is proven. It may be replaced while it is read: then it is read again."""
        for _ in range(_LOOKS):
            data = files.read_all(self.folder, name)
            if condensed.proves(name, data):
                return data, True
        return data, False

    def blocks(self, start: Position, end: Position) -> Iterator[bytes]:
        """Iterate over the bytes between two positions, in blocks; raises the same errors as `lines`."""
        for name in self.names():
            if not start.segment <= name <= end.segment:
                continue
            offset = start.offset if name == start.segment else 0
            try:
                with files.opened(self.folder, name, offset) as file:
                    left = end.offset - offset if name == end.segment else None
                    while block := file.read(1 << 20 if left is None else min(1 << 20, left)):
                        yield block
                        left = None if left is None else left - len(block)
            except OSError as error:
                raise self._unreadable(error, name) from None

    def _unreadable(self, error: OSError, name: str) -> StorageError:
        return StorageError(f"cannot be read: {error.strerror}", path=files.file_of(self.folder, name))

    def append(self, tail: Position, data: bytes, first_seq: int, *, starts_new: bool = False) -> Position:
        """Write lines after `tail`, sync them, and return the new tail. All or nothing.

        Parameters
        ----------
        starts_new : bool
            Whether a new segment is started although the present one is not full; not if that is empty.

        Raises
        ------
        StorageError
            The system refused the write, for example on a full disk; a partial write is removed.
        """
        if tail.offset >= self._segment_bytes or (starts_new and tail.offset):
            tail = Position(name_from(first_seq), 0)
        path = self.folder / tail.segment
        if (free := free_bytes(path)) < len(data) + RESERVE_BYTES:
            self.on_full()
            raise StorageError(
                f"nothing was recorded: there is room for {free / 1e6:,.1f} MB, and {RESERVE_BYTES / 1e6:.0f} MB are kept "
                "free for the graph; free some disk space and try again",
                path=path,
            ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            if tail.offset and not path.exists():  # it was closed, and what followed it was cut off
                files.unpack(self.folder, tail.segment)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.lseek(descriptor, tail.offset, os.SEEK_SET)
                try:
                    write_all(descriptor, data)
                    sync_data(descriptor)
                except OSError:
                    os.ftruncate(descriptor, tail.offset)
                    raise
            finally:
                os.close(descriptor)
            if tail.offset == 0:  # the file is new, or a killed process left it empty
                sync_folder(self.folder)
        except OSError as error:
            if error.errno in FULL:
                self.on_full()
            raise StorageError(
                f"nothing was recorded: {error.strerror}; free some disk space and try again", path=path
            ) from None
        return Position(tail.segment, tail.offset + len(data))

    def cut(self, tail: Position) -> int:
        """Remove everything after `tail` and return the number of bytes removed.

        Raises
        ------
        StorageError
            The system refused the change.
        """
        removed, path = 0, self.folder
        try:
            for name in self.names():
                path = files.file_of(self.folder, name)
                if name > tail.segment:
                    removed += path.stat().st_size
                    files.remove(self.folder, name)
                elif name == tail.segment:
                    removed += files.size_of(self.folder, name) - tail.offset
                    files.unpack(self.folder, name, tail.offset)
                    path = self.folder / name
                    with path.open("r+b") as file:
                        file.truncate(tail.offset)
                        os.fsync(file.fileno())
            sync_folder(self.folder)
        except OSError as error:
            reason = f"its incomplete final commit cannot be removed: {error.strerror}; check the file's permissions and the disk"
            raise StorageError(reason, path=path) from None
        return removed


def name_from(first_seq: int) -> str:
    """Return the name of the segment that begins with an event."""
    return f"{first_seq:012d}.jsonl"
