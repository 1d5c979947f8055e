"""Document files: JSON lines or a single document, turned into builds, with cursors for later runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from memgraph.errors import InvalidInputError, SourceError
from memgraph.extraction.readers.files import MAX_LINE_BYTES, ending, lines, opened
from memgraph.extraction.readers.source import SourceRecord
from memgraph.extraction.secrets import redact
from memgraph.model.build import BuildEventLog, BuildTask
from memgraph.text import lazy_re as re

MAX_WHOLE_BYTES = 64 * 1024 * 1024
MAX_BUILD_TASKS = 20_000
_LINES_CURSOR = re.compile(r"lines:(\d{1,18}):(\d{1,18}):([0-9a-f]{16}|)")
_WHOLE_CURSOR = re.compile(r"whole:(\d{1,18}|all):([0-9a-f]{16})")
_DERIVED = frozenset({"test report", "ci log", "transcript", "trajectory"})
"""Sources whose outcome is derived from what was read: if a part is unreadable, it is no success."""
_LINE_ENDINGS = frozenset({".jsonl", ".ndjson"})


class Part(NamedTuple):
    """A build, its number of raw records, and what could not be read: without a build, nothing could."""

    build: BuildEventLog | None
    records: int = 1
    problem: str | None = None


def loaded(data: bytes) -> Any:
    """Parse JSON, invalid UTF-8 replaced.

    Raises
    ------
    ValueError
        Not JSON, or nested too deeply.
    """
    try:
        return json.loads(data.decode("utf-8-sig", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Return a description of what is wrong with a part of a source."""
    return "nested too deeply" if isinstance(error, RecursionError) else redact(str(error)).value


def part_of(place: str, fields: dict[str, Any], records: int = 1) -> Part:
    """Return the build with these fields, or the reason why they are invalid."""
    try:
        return Part(BuildEventLog.parse(fields), records)
    except (InvalidInputError, RecursionError) as error:
        return Part(None, records, f"{place}: {reason(error)}")


def numbered_id(build_id: str, number: int) -> str:
    """Return the id of part `number` (from 1) of a build with too many tasks for one log."""
    return build_id if number == 1 else f"{build_id}-part-{number}"


def run_id(build_id: str, content: object) -> str:
    """Return an id for a build whose source restarts its numbering in every run.

    After an ``@`` it ends in a digest of the source's content for the build: it is independent of the file's location
    and growth, and differs between runs.

    Parameters
    ----------
    build_id : str
        The source's own id.
    content : JSON value
        The source's content for the build.

    Raises
    ------
    RecursionError
        The content is nested too deeply.
    """
    return f"{build_id}@{digest(json.dumps(content, sort_keys=True).encode())[:8]}"


def parts_of(place: str, fields: dict[str, Any], tasks: list[BuildTask], records: int = 1) -> Iterator[Part]:
    """Yield the builds needed for these tasks, which all have these fields; the first one counts the records."""
    for number, start in enumerate(range(0, max(1, len(tasks)), MAX_BUILD_TASKS), start=1):
        own = {"build_id": numbered_id(fields["build_id"], number), "tasks": tasks[start : start + MAX_BUILD_TASKS]}
        yield part_of(place, {**fields, **own}, records if number == 1 else 0)


def whole(path: Path, cursor: str | None, read: Callable[[BinaryIO, str], Iterable[Part]]) -> Iterator[SourceRecord]:
    """Yield the records of a file that is read from the start whenever it has changed.

    The cursor holds the number of completed records and a digest of the content: an unchanged file is only hashed, an
    interrupted reading continues, and any other file is read again.

    Parameters
    ----------
    path : Path
        The file.
    cursor : str or None
        As for `Reader.records`.
    read : callable
        Yields the parts of an open file, given its digest.
    """
    with opened(path) as (stream, problem):
        mark = hashlib.file_digest(stream, "sha256").hexdigest()[:16]  # type: ignore[arg-type]
        match = _WHOLE_CURSOR.fullmatch(cursor or "")
        if match and match[2] == mark and match[1] == "all":
            return
        done = int(match[1]) if match and match[2] == mark else 0
        stream.seek(0)
        yield from _numbered(_with_problem(read(stream, mark), problem), done, mark)


def _with_problem(parts: Iterable[Part], problem: Callable[[], str | None]) -> Iterator[Part]:
    is_cut = False
    for part in parts:
        is_cut = is_cut or part.problem is not None or problem() is not None
        build = part.build
        if is_cut and build is not None and build.source in _DERIVED and build.build_outcome == "success":
            build = build.model_copy(update={"build_outcome": "partial"})
        yield part._replace(build=build)
    if problem_text := problem():
        yield Part(None, 1, problem_text)


def _numbered(parts: Iterable[Part], done: int, mark: str) -> Iterator[SourceRecord]:
    """Yield the parts after the first `done`; the cursor of the last one marks the end."""
    held: SourceRecord | None = None
    for number, part in enumerate(parts, start=1):
        if held is not None:
            yield held
        held = None
        if number > done:
            held = SourceRecord(part.build, f"whole:{number}:{mark}", part.records, part.problem)
    if held is not None:
        yield SourceRecord(held.build, f"whole:all:{mark}", held.records, held.skipped)


def digest(data: bytes) -> str:
    """Return 16 characters that identify this content."""
    return hashlib.sha256(data).hexdigest()[:16]


class JsonSource:
    """A file of JSON lines or of one JSON document.

    JSON lines are streamed and may grow: a later run continues after the last complete line. A document is read as a
    whole.

    Parameters
    ----------
    path : Path
        ``.jsonl`` and ``.ndjson`` are lines; for ``.json`` and others the first line decides.
    max_line_bytes, max_whole_bytes : int
        Longer lines are skipped, larger documents rejected.
    """

    def __init__(
        self, path: Path, *, max_line_bytes: int = MAX_LINE_BYTES, max_whole_bytes: int = MAX_WHOLE_BYTES
    ) -> None:
        self._path = path
        self._max_line_bytes = max_line_bytes
        self._max_whole_bytes = max_whole_bytes

    def count(self) -> int | None:
        """Return the number of non-blank lines, or None for a document that is read as a whole."""
        with opened(self._path) as (stream, _):
            if not self._has_lines(stream):
                return None
            stream.seek(0)
            return sum(1 for _, line, _ in lines(stream, 64) if line.strip())

    def entries(self, cursor: str | None, built: Callable[[Any, str], Part], *, noun: str) -> Iterator[SourceRecord]:
        """Yield a record per line, or per array item: `built` makes it from (JSON value, its place)."""
        with opened(self._path) as (stream, problem):
            if self._has_lines(stream):
                yield from self._from_lines(stream, cursor or "", built, problem)
                return
        yield from whole(self._path, cursor, lambda stream, _: self._items(stream, built, noun))

    def documents(self, cursor: str | None, parts: Callable[[Any, str], Iterable[Part]]) -> Iterator[SourceRecord]:
        """Yield the records that `parts` makes from (the whole document, its digest)."""
        yield from whole(self._path, cursor, lambda stream, mark: parts(self._document(stream), mark))

    def _has_lines(self, stream: BinaryIO) -> bool:
        """Choose between JSON lines and one document: a complete JSON value on the first line means lines."""
        if ending(self._path) in _LINE_ENDINGS:
            stream.seek(0)
            return True
        first = next((line for _, line, _ in islice(lines(stream, self._max_line_bytes), 1_000) if line.strip()), b"")
        stream.seek(0)
        first = first.strip()
        return not first or (first.startswith(b"{") and (first.endswith(b"}") or len(first) > self._max_line_bytes))

    def _from_lines(
        self, stream: BinaryIO, cursor: str, built: Callable[[Any, str], Part], broken: Callable[[], str | None]
    ) -> Iterator[SourceRecord]:
        offset, number, mark = _resumed(stream, cursor)
        stream.seek(offset)
        before = f"lines:{offset}:{number}:{mark}"
        for end, line, terminated in lines(stream, self._max_line_bytes, offset):
            number += 1
            before = f"lines:{offset}:{number - 1}:{mark}"
            offset, mark = end, digest(line[-4096:])
            if not line.strip():
                continue
            part = self._parsed(line, f"line {number}", built)
            if part.build is None and not terminated:
                # it may still be being written, so a later run reads it again
                problem = broken() or "the last line is not finished"
                yield SourceRecord(None, before, 1, f"{part.problem}; {problem}")
                return
            # after an unfinished line the next one is its rest
            before = f"lines:{offset}:{number - (not terminated)}:{mark}"
            yield SourceRecord(part.build, before, 1, part.problem)
        if problem_text := broken():
            yield SourceRecord(None, before, 1, problem_text)

    def _parsed(self, line: bytes, place: str, built: Callable[[Any, str], Part]) -> Part:
        if len(line) > self._max_line_bytes:
            return Part(None, 1, f"{place}: longer than {self._max_line_bytes:,} bytes")
        try:
            return built(loaded(line), place)
        except ValueError as error:
            return Part(None, 1, f"{place}: {error}")

    def _items(self, stream: BinaryIO, built: Callable[[Any, str], Part], noun: str) -> Iterator[Part]:
        document = self._document(stream)
        if not isinstance(document, list | dict):
            raise SourceError(f"contains neither a {noun} nor an array of them", path=self._path)
        for index, item in enumerate(document if isinstance(document, list) else [document], start=1):
            yield built(item, f"{noun.split(maxsplit=1)[0]} {index}")

    def _document(self, stream: BinaryIO) -> Any:
        data = stream.read(self._max_whole_bytes + 1)
        if len(data) > self._max_whole_bytes:
            limit = f"{self._max_whole_bytes / 1024 / 1024:g} MB"
            raise SourceError(f"the JSON document exceeds {limit}; convert it to JSON lines", path=self._path)
        try:
            return loaded(data)
        except ValueError as error:
            raise SourceError(str(error), path=self._path) from None


def _resumed(stream: BinaryIO, cursor: str) -> tuple[int, int, str]:
    """Return offset, line number and digest to continue from: the start, unless the preceding line is unchanged."""
    match = _LINES_CURSOR.fullmatch(cursor)
    if not match or not match[3]:
        return 0, 0, ""
    offset, number, mark = int(match[1]), int(match[2]), match[3]
    start = max(0, offset - 4098)
    stream.seek(start)
    before = stream.read(offset - start)
    if len(before) < offset - start:
        return 0, 0, ""
    line = before.removesuffix(b"\n").removesuffix(b"\r").rsplit(b"\n", 1)[-1][-4096:]
    return (offset, number, mark) if digest(line) == mark else (0, 0, "")
