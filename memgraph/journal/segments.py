"""Segments: the journal's files, in the order of their first events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memgraph.disk.files import free_bytes, sync_data, sync_folder, write_all
from memgraph.errors import StorageError
from memgraph.journal.envelope import MAX_LINE_BYTES

ARCHIVE = "archive"
"""The folder, in the journal's, of segments that a baseline stands for."""
RESERVE_BYTES = 40 << 20
"""Disk space kept free for the graph, which needs it to apply new events and whose engine fails badly on a full disk."""


@dataclass(frozen=True, slots=True)
class JournalLimits:
    """Limits of a journal's parts.

    Attributes
    ----------
    segment_bytes : int
        Size after which a new segment is started. All processes that use a journal at the same time must have the same: a reader
        looks for a new segment only when the last one has this size.
    checkpoint_events : int
        Number of events after the last checkpoint at which a new one is written.
    """

    segment_bytes: int = 64 << 20
    checkpoint_events: int = 10_000


DEFAULT_LIMITS = JournalLimits()


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position between two lines: `offset` bytes into `segment`."""

    segment: str
    offset: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its position; `whole` is False for a last line without its newline."""

    data: bytes
    start: Position
    end: Position
    whole: bool


class Segments:
    """The ``*.jsonl`` files of a journal directory, and those that a compaction has moved to its folder ``archive``.

    A segment keeps its name and its positions when it is moved.
    """

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self.folder = folder
        self._segment_bytes = segment_bytes

    def path(self, position: Position) -> Path:
        """Return the file of a position."""
        return self.place(position.segment)

    def place(self, name: str) -> Path:
        """Return the file of a segment; the one in the journal's own folder counts if an archived one has the same name."""
        here, archived = self.folder / name, self.folder / ARCHIVE / name
        return archived if not here.exists() and archived.exists() else here

    def names(self) -> list[str]:
        """Return the segments' file names in order."""
        places = (self.folder, self.folder / ARCHIVE)
        return sorted({path.name for place in places for path in place.glob("*.jsonl")})

    @property
    def is_whole(self) -> bool:
        """Whether the first event's segment is there, or nothing was recorded yet."""
        return self.first().segment == _name(1)

    def first(self) -> Position:
        """Return the beginning of the journal."""
        names = self.names()
        return Position(names[0] if names else _name(1), 0)

    def holding(self, seq: int) -> Position:
        """Return the beginning of the segment that may contain an event."""
        before = [name for name in self.names() if name <= _name(seq)]
        return Position(before[-1], 0) if before else self.first()

    def last(self) -> str:
        """Return the name of the last segment."""
        names = self.names()
        return names[-1] if names else self.first().segment

    def origin(self) -> int | None:
        """Return what changes if all segments are replaced by others of the same names; None for a journal without segments."""
        try:
            return self.path(self.first()).stat().st_ino
        except FileNotFoundError:
            return None

    def ends_before(self, tail: Position) -> bool:
        """Return whether bytes before a position are missing."""
        try:
            return self.path(tail).stat().st_size < tail.offset
        except FileNotFoundError:
            return tail.offset > 0

    def differs_from(self, tail: Position) -> bool:
        """Return, at the cost of a stat, whether the journal no longer ends at a position: it has grown or shrunk."""
        try:
            size = self.path(tail).stat().st_size
        except FileNotFoundError:
            return tail.offset > 0
        return size != tail.offset or (tail.offset >= self._segment_bytes and self.names()[-1] > tail.segment)

    def lines(self, start: Position) -> Iterator[Line]:
        """Iterate over the lines after a position.

        Raises
        ------
        StorageError
            A segment cannot be read.
        """
        for name in self.names():
            if name < start.segment:
                continue
            path = self.place(name)
            offset = start.offset if name == start.segment else 0
            try:
                with self._opened(name) as file:
                    file.seek(offset)
                    while data := file.readline(MAX_LINE_BYTES + 1):
                        begin, offset = offset, offset + len(data)
                        whole = data.endswith(b"\n")
                        yield Line(data[:-1] if whole else data, Position(name, begin), Position(name, offset), whole)
            except OSError as error:
                raise StorageError(f"cannot be read: {error.strerror}", path=path) from None

    def blocks(self, start: Position, end: Position) -> Iterator[bytes]:
        """Iterate over the bytes between two positions, in blocks."""
        for name in self.names():
            if not start.segment <= name <= end.segment:
                continue
            path = self.place(name)
            try:
                with self._opened(name) as file:
                    file.seek(start.offset if name == start.segment else 0)
                    left = end.offset - file.tell() if name == end.segment else None
                    while block := file.read(1 << 20 if left is None else min(1 << 20, left)):
                        yield block
                        left = None if left is None else left - len(block)
            except OSError as error:
                raise StorageError(f"cannot be read: {error.strerror}", path=path) from None

    def _opened(self, name: str) -> BinaryIO:
        """Open a segment, also if it is moved at this moment."""
        try:
            return self.place(name).open("rb")
        except FileNotFoundError:
            return self.place(name).open("rb")

    def append(self, tail: Position, data: bytes, first_seq: int) -> Position:
        """Write lines after `tail`, sync them, and return the new tail. All or nothing.

        Raises
        ------
        StorageError
            The system refused the write, for example on a full disk; a partial write is removed.
        """
        if tail.offset >= self._segment_bytes:
            tail = Position(_name(first_seq), 0)
        path = self.path(tail)
        if (free := free_bytes(path)) < len(data) + RESERVE_BYTES:
            raise StorageError(
                f"nothing was recorded: there is room for {free / 1e6:,.1f} MB, and {RESERVE_BYTES / 1e6:.0f} MB are kept "
                "free for the graph; free some disk space and try again",
                path=path,
            )
        try:
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
                path = self.place(name)
                if name > tail.segment:
                    removed += path.stat().st_size
                    path.unlink()
                elif name == tail.segment:
                    removed += path.stat().st_size - tail.offset
                    with path.open("r+b") as file:
                        file.truncate(tail.offset)
                        os.fsync(file.fileno())
            sync_folder(self.folder)
        except OSError as error:
            reason = f"its incomplete final commit cannot be removed: {error.strerror}; check the file's permissions and the disk"
            raise StorageError(reason, path=path) from None
        return removed


def _name(first_seq: int) -> str:
    return f"{first_seq:012d}.jsonl"
