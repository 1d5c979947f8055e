"""Reader of a saved ``git log --name-status``: a text file with the newest commit first."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import BinaryIO

from memgraph.errors import SourceError
from memgraph.extraction.readers.history.commit_sessions import grouped
from memgraph.extraction.readers.history.commits import RECENT_COMMITS, Commit, FileChange, RecentCommits
from memgraph.extraction.readers.source import SourceRecord, project_of
from memgraph.text import lazy_re as re
from memgraph.text.calendar import month_of

MAX_LINE_BYTES = 64 * 1024
MAX_COMMIT_BYTES = 4 * 1024 * 1024
_COMMIT = re.compile(rb"commit ([0-9a-f]{7,64})(?: \(.{0,2000}\))?\s*")
_CURSOR = re.compile(r"([0-9a-f]{7,64})@(\d{1,12})")
_AUTHOR = re.compile(r"Author:\s*([^<]*)")
_STATUS = re.compile(r"([ACDMRTUXB])\d{0,3}\t(.+)")
_GIT_DATE = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})(?: ([+-])(\d\d)(\d\d))?")
_ISO_DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)\s*(Z|[+-]\d\d:?\d\d)?")
_RFC_DATE = re.compile(r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d) ([+-]\d{4})")
_ESCAPE = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class SavedGitLogReader:
    """Reads the text of ``git log --name-status``, in git's default or ISO dates.

    The file is read twice: once for the offsets of the commits (8 bytes each), then commit by commit from the oldest. A
    log saved with ``--reverse`` is recognised by its dates.

    Parameters
    ----------
    path : path-like
        The text. Invalid UTF-8 is replaced, lines over 64 kB are truncated.
    project_id : str, optional
        Default: the file's name without its suffixes.
    """

    kind = "gitlog"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        self._path = Path(path).absolute()
        self.project_id = project_of(self._path, project_id)
        self._oldest = ""

    @property
    def locator(self) -> str:
        """Absolute path of the file."""
        return str(self._path)

    @property
    def source_id(self) -> str:
        """``gitlog:``, project and the oldest commit's sha: it is stable when the log grows at its top or is moved.

        A log saved with a limit (``-n``) begins at a different commit each time and counts as another source.
        """
        if not self._oldest:
            with self._open() as stream:
                offsets = self._offsets(stream)
                self._oldest = _sha_at(stream, offsets[0]) if offsets else ""
        return f"gitlog:{self.project_id}:{self._oldest or 'empty'}"

    def count(self) -> int | None:
        """Return the number of commits."""
        with self._open() as stream:
            return len(self._offsets(stream))

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per group of commits; see `Reader.records`.

        A cursor holds the last final commit and the number of commits before it; if these no longer match, the history
        was rewritten, and all of it is read again.
        """
        with self._open() as stream:
            offsets = self._offsets(stream)
            done = self._done(stream, offsets, cursor or "")
            recent = RecentCommits()
            for offset in offsets[max(0, done - RECENT_COMMITS) : done]:
                earlier = _commit_at(stream, offset)
                if isinstance(earlier, Commit):
                    recent.add(earlier)
            commits = (
                (_commit_at(stream, offset), f"{_sha_at(stream, offset)}@{index}")
                for index, offset in enumerate(offsets[done:], start=done)
            )
            yield from grouped(
                commits, project_id=self.project_id, cursor=(cursor or "") if done else "", recent=recent
            )

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            raise SourceError(f"cannot be read: {error.strerror}", path=self._path) from None

    def _offsets(self, stream: BinaryIO) -> array[int]:
        """Return the offsets of the commits, oldest first."""
        stream.seek(0)
        offsets = array("Q")
        offset = 0
        has_content = False
        for line, length in _lines(stream):
            if line.startswith(b"commit ") and _COMMIT.fullmatch(line):
                offsets.append(offset)
            has_content = has_content or bool(line.strip())
            offset += length
        if has_content and not offsets:
            problem = "contains no line 'commit <sha>': not the output of `git log --name-status`"
            raise SourceError(problem, path=self._path)
        if len(offsets) > 1:
            first, last = _commit_at(stream, offsets[0]), _commit_at(stream, offsets[-1])
            if not (isinstance(first, Commit) and isinstance(last, Commit) and first.when < last.when):
                offsets.reverse()
        return offsets

    def _done(self, stream: BinaryIO, offsets: array[int], cursor: str) -> int:
        match = _CURSOR.fullmatch(cursor)
        index = int(match[2]) if match else len(offsets)
        if match and index < len(offsets) and _sha_at(stream, offsets[index]) == match[1]:
            return index + 1
        return 0


def _lines(stream: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield (line, its length in the file); lines over the limit are truncated."""
    while line := stream.readline(MAX_LINE_BYTES):
        length, rest = len(line), line
        while not rest.endswith(b"\n") and (rest := stream.readline(MAX_LINE_BYTES)):
            length += len(rest)
        yield line.removesuffix(b"\n").removesuffix(b"\r"), length


def _sha_at(stream: BinaryIO, offset: int) -> str:
    stream.seek(offset)
    match = _COMMIT.match(stream.readline(MAX_LINE_BYTES))
    return match[1].decode() if match else ""


def _commit_at(stream: BinaryIO, offset: int) -> Commit | str:
    """Read the commit at `offset`; a string is the reason why it cannot be read."""
    sha = _sha_at(stream, offset)
    author, when, read = "", None, 0
    message: list[str] = []
    files: list[FileChange] = []
    for raw, _ in _lines(stream):
        read += len(raw)
        if (raw.startswith(b"commit ") and _COMMIT.fullmatch(raw)) or read > MAX_COMMIT_BYTES:
            break
        line = raw.decode("utf-8", errors="replace")
        if line.startswith("    "):
            message.append(line[4:])
        elif match := _STATUS.fullmatch(line):
            paths = [_unquoted(path) for path in match[2].split("\t", 1)]
            files.append(FileChange(match[1], paths[-1], paths[0] if match[1] in "RC" else ""))
        elif match := _AUTHOR.match(line):
            author = match[1].strip()
        elif line.startswith(("Date:", "AuthorDate:")):
            when = _date(line.partition(":")[2].strip())
    if when is None:
        return f"commit {sha[:12]}: no date that can be read"
    return Commit(sha, author, when, "\n".join(message), tuple(files))


def _date(text: str) -> datetime | None:
    try:
        if match := _ISO_DATE.fullmatch(text):
            when = datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3] or '+00:00'}")
        elif match := _GIT_DATE.fullmatch(text):
            month, day, hour, minute, second, year = (month_of(match[1]), *map(int, match.groups()[1:6]))
            offset = timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0))
            zone = timezone(-offset if match[7] == "-" else offset)
            when = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        elif match := _RFC_DATE.fullmatch(text):
            month = month_of(match[2])
            when = datetime.fromisoformat(f"{match[3]}-{month:02d}-{int(match[1]):02d}T{match[4]}{match[5]}")
        else:
            return None
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _unquoted(path: str) -> str:
    """Undo git's C-style quoting of unusual paths."""
    if not (len(path) > 1 and path.startswith('"') and path.endswith('"')):
        return path

    def plain(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape, 8) & 255]) if escape.isdigit() else _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(plain, path[1:-1].encode()).decode("utf-8", errors="replace")
