"""Reader of a saved ``git log --name-status``: a text file with the newest commit first."""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_tz
from pathlib import Path
from typing import IO

from memgraph.errors import SourceError
from memgraph.extraction.readers.commits import RECENT_COMMITS, Commit, FileChange, RecentCommits
from memgraph.extraction.readers.files import lines, opened
from memgraph.extraction.readers.sittings import Spelling, grouped, persons
from memgraph.extraction.readers.source import FileReader, SourceRecord
from memgraph.text import lazy_re as re

MAX_LINE_BYTES = 64 * 1024
_MAX_AUTHOR_BYTES = 1_000
MAX_COMMIT_BYTES = 4 * 1024 * 1024
_COMMIT = re.compile(rb"commit (?:[-<>=+^] )?([0-9a-f]{7,64})(?:\s|$)")
"""A commit's first line; after its id may stand parents, children, the ref that led to it, and its names."""
_CURSOR = re.compile(r"([0-9a-f]{7,64})@(\d{1,12})")
_AUTHOR = re.compile(r"[Aa]uthor:?\s+([^<]*)(?:<([^>]*)>(?: (\d{1,19} [+-]\d{4,6}))?)?")
_STATUS = re.compile(r"(?::\d{6} \d{6} [0-9a-f]+(?:\.\.\.)? [0-9a-f]+(?:\.\.\.)? )?([ACDMRTUXB])\d{0,3}\t(.+)")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d))?\s*(Z|[+-]\d\d:?\d\d)?")
_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}[mK]")
_SECONDS = re.compile(r"(\d{1,19})(?: [+-]\d{4,6})?")
_ESCAPE = re.compile(rb'\\([abtnvfr"\\]|[0-7]{3})')
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class SavedGitLogReader(FileReader):
    """Reads the text of ``git log --name-status``, in git's default or ISO dates.

    Parents, children, refs, notes, colours and changes (``-p``) may be in it. The file is read twice: once for the offsets
    of the commits (8 bytes each), then commit by commit from the oldest. A log saved with ``--reverse`` is recognised by
    its dates.
    """

    kind = "gitlog"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        super().__init__(path, project_id=project_id)
        self._oldest = ""
        self._people: dict[Spelling, str] = {}

    @property
    def source_id(self) -> str:
        """``gitlog:``, project and the oldest commit's sha: it is stable when the log grows at its top or is moved.

        A log saved with a limit (``-n``) begins at a different commit each time and counts as another source.
        """
        if not self._oldest:
            with opened(self.path) as (stream, _):
                offsets = self._offsets(stream)
                self._oldest = _sha_at(stream, offsets[0]) if offsets else ""
        return f"gitlog:{self.project_id}:{self._oldest or 'empty'}"

    def count(self) -> int | None:
        """Return the number of commits."""
        with opened(self.path) as (stream, _):
            return len(self._offsets(stream))

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per group of commits; see `Reader.records`.

        A cursor holds the last final commit and the number of commits before it; if these no longer match, the history
        was rewritten, and all of it is read again.
        """
        with opened(self.path) as (stream, problem):
            offsets = self._offsets(stream)
            done = self._done(stream, offsets, cursor or "")
            start = (cursor or "") if done else ""
            if problem:
                yield SourceRecord(None, start, 0, problem)
            recent = RecentCommits()
            for offset in offsets[max(0, done - RECENT_COMMITS) : done]:
                earlier = _commit_at(stream, offset, {})
                if isinstance(earlier, Commit):
                    recent.add(earlier)
            commits = (
                (_commit_at(stream, offset, self._people), f"{_sha_at(stream, offset)}@{index}")
                for index, offset in enumerate(offsets[done:], start=done)
            )
            yield from grouped(commits, project_id=self.project_id, cursor=start, recent=recent)

    def _offsets(self, stream: IO[bytes]) -> array[int]:
        """Return the offsets of the commits, oldest first."""
        stream.seek(0)
        offsets = array("Q")
        authors: list[Spelling] = []
        offset = 0
        has_content = False
        for line, after in _lines(stream):
            if _COMMIT.match(line):
                offsets.append(offset)
            elif match := _AUTHOR.match(line[:_MAX_AUTHOR_BYTES].decode("utf-8", errors="replace")):
                authors.append((match[1].strip(), match[2] or ""))
            has_content = has_content or bool(line.strip())
            offset = after
        if has_content and not offsets:
            problem = "contains no line 'commit <sha>': not the output of `git log --name-status`"
            raise SourceError(problem, path=self.path)
        if len(offsets) > 1:
            first, last = _commit_at(stream, offsets[0], {}), _commit_at(stream, offsets[-1], {})
            if not (isinstance(first, Commit) and isinstance(last, Commit) and first.when < last.when):
                offsets.reverse()
                authors.reverse()
        self._people = persons(authors)
        return offsets

    def _done(self, stream: IO[bytes], offsets: array[int], cursor: str) -> int:
        match = _CURSOR.fullmatch(cursor)
        index = int(match[2]) if match else len(offsets)
        if match and index < len(offsets) and _sha_at(stream, offsets[index]) == match[1]:
            return index + 1
        return 0


def _lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield (line without colours, offset after it in what is read); lines over the limit are truncated."""
    for after, raw, _ in lines(stream, MAX_LINE_BYTES):
        line = raw.removeprefix(codecs.BOM_UTF8)
        yield _COLOUR.sub(b"", line) if b"\x1b" in line else line, after


def _sha_at(stream: IO[bytes], offset: int) -> str:
    stream.seek(offset)
    match = _COMMIT.match(next(_lines(stream), (b"", 0))[0])
    return match[1].decode() if match else ""


def _commit_at(stream: IO[bytes], offset: int, people: Mapping[Spelling, str]) -> Commit | str:
    """Read the commit at `offset`; a string is the reason why it cannot be read."""
    sha = _sha_at(stream, offset)
    author, address, date, read = "", "", "", 0
    message: list[str] = []
    files: list[FileChange] = []
    is_head, is_message = True, False
    for raw, _ in _lines(stream):
        read += len(raw)
        if _COMMIT.match(raw) or read > MAX_COMMIT_BYTES:
            break
        line = raw.decode("utf-8", errors="replace")
        is_blank = not line.strip()
        if is_head:
            is_head, is_message = not is_blank, is_blank
            if match := _AUTHOR.match(line):
                author, address, date = match[1].strip(), match[2] or "", match[3] or date
            elif line.startswith(("Date:", "AuthorDate:")):
                date = line.partition(":")[2].strip()
        elif is_message and (is_blank or line.startswith("    ")):
            message.append(line[4:])
        else:  # notes and changes may be indented, too
            is_message = False
            if match := _STATUS.fullmatch(line):
                paths = [_unquoted(path) for path in match[2].split("\t", 1)]
                files.append(FileChange(match[1], paths[-1], paths[0] if match[1] in "RC" else ""))
    if (when := _date(date)) is None:
        said = f" “{date[:60]}”" if date else ""
        return f"commit {sha[:12]}: its date{said} cannot be read: save `git log --name-status --date=iso`"
    return Commit(sha, people.get((author, address), author), when, "\n".join(message), tuple(files))


def _date(text: str) -> datetime | None:
    """Return a date in one of git's forms. A time zone is hours and minutes, however many, as git takes it."""
    try:
        if match := _SECONDS.fullmatch(text):
            return datetime.fromtimestamp(int(match[1]), UTC)
        if match := _ISO.fullmatch(text):  # in the form that `parsedate_tz` reads
            day = format_datetime(datetime.fromisoformat(f"{match[1]} {match[2] or '00:00:00'}")).rpartition(" ")[0]
            text = f"{day} {(match[3] or 'Z').replace(':', '').replace('Z', '+0000')}"
        read = parsedate_tz(text)
        return None if read is None else datetime(*read[:6], tzinfo=UTC) - timedelta(seconds=read[9] or 0)
    except (ValueError, OverflowError, OSError):
        return None


def _unquoted(path: str) -> str:
    """Undo git's C-style quoting of unusual paths."""
    if not (len(path) > 1 and path.startswith('"') and path.endswith('"')):
        return path

    def plain(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape, 8) & 255]) if escape.isdigit() else _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(plain, path[1:-1].encode()).decode("utf-8", errors="replace")
