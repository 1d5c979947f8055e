"""Build logs as JSON (one object or an array of them) or as JSON lines, in camelCase or snake_case."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from memgraph.errors import InvalidInputError, SourceError
from memgraph.extraction.readers.source import SourceRecord, project_of, shortened, storable_text
from memgraph.model.build import BuildEventLog

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_WHOLE_BYTES = 256 * 1024 * 1024
_MAX_TEXT_CHARS = 200_000
_CHUNK_BYTES = 1024 * 1024
_LINES_CURSOR = re.compile(r"lines:(\d{1,18}):(\d{1,18}):([0-9a-f]{16}|)")
_WHOLE_CURSOR = re.compile(r"whole:(\d{1,18}):([0-9a-f]{16})")
_LINE_ENDINGS = frozenset({".jsonl", ".ndjson"})


class BuildLogReader:
    """Reads seed 0's build logs from a file.

    JSON lines are streamed and may grow: a later run continues behind the last whole line. An array or a single object
    is read whole. Builds without a project get the reader's; a `project_id` given here overrides theirs.

    Parameters
    ----------
    path : path-like
        A ``.json``, ``.jsonl`` or ``.ndjson`` file; for other endings the content decides.
    project_id : str, optional
        By default the file's name without its endings.
    max_line_bytes, max_whole_bytes : int
        Longer lines are skipped, larger whole documents refused.
    """

    kind = "builds"

    def __init__(
        self,
        path: str | Path,
        *,
        project_id: str | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_whole_bytes: int = MAX_WHOLE_BYTES,
    ) -> None:
        self._path = Path(path).absolute()
        self._overrides_project = project_id is not None
        self.project_id = project_of(self._path, project_id)
        self._max_line_bytes = max_line_bytes
        self._max_whole_bytes = max_whole_bytes

    @property
    def locator(self) -> str:
        """Absolute path of the file."""
        return str(self._path)

    @property
    def source_id(self) -> str:
        """``builds:`` and the absolute path: the content of such a file names nothing that lasts."""
        return f"builds:{self._path}"

    def count(self) -> int | None:
        """Return the number of lines that are not blank, or None for a document that is read whole."""
        with self._open() as stream:
            if not self._has_lines(stream):
                return None
            stream.seek(0)
            return sum(1 for _, line, _ in _lines(stream, 64, 0) if line.strip())

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per build; see `Reader.records`."""
        with self._open() as stream:
            if self._has_lines(stream):
                yield from self._from_lines(stream, cursor or "")
            else:
                yield from self._from_whole(stream, cursor or "")

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb")
        except OSError as error:
            raise SourceError(f"cannot be read: {error.strerror}", path=self._path) from None

    def _has_lines(self, stream: BinaryIO) -> bool:
        """Decide between JSON lines and one document: a first line that is closed in itself means lines."""
        if self._path.suffix.lower() in _LINE_ENDINGS:
            return True
        first = next(
            (line for _, line, _ in islice(_lines(stream, self._max_line_bytes, 0), 1_000) if line.strip()), b""
        )
        stream.seek(0)
        first = first.strip()
        return not first or (first.startswith(b"{") and (first.endswith(b"}") or len(first) > self._max_line_bytes))

    def _from_lines(self, stream: BinaryIO, cursor: str) -> Iterator[SourceRecord]:
        offset, number, mark = self._resume(stream, cursor)
        stream.seek(offset)
        for end, line, terminated in _lines(stream, self._max_line_bytes, offset):
            number += 1
            before = f"lines:{offset}:{number - 1}:{mark}"
            offset, mark = end, _digest(line[-4096:])
            if not line.strip():
                continue
            build: BuildEventLog | None = None
            problem: str | None
            if len(line) > self._max_line_bytes:
                problem = f"line {number}: longer than {self._max_line_bytes:,} bytes"
            else:
                build, problem = self._parsed(line, f"line {number}")
            if build is None and not terminated:
                # its writer may still be at it, so a later run must see it again
                yield SourceRecord(None, before, 1, f"{problem}; the last line is not finished")
                return
            # of an unfinished line the end is still to come, and is the rest of this one
            yield SourceRecord(build, f"lines:{offset}:{number - (not terminated)}:{mark}", 1, problem)

    def _resume(self, stream: BinaryIO, cursor: str) -> tuple[int, int, str]:
        """Return offset, line number and digest to go on from: the start, unless the line before is still the same."""
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
        return (offset, number, mark) if _digest(line) == mark else (0, 0, "")

    def _from_whole(self, stream: BinaryIO, cursor: str) -> Iterator[SourceRecord]:
        data = stream.read(self._max_whole_bytes + 1)
        if len(data) > self._max_whole_bytes:
            limit = f"{self._max_whole_bytes / 1024 / 1024:g} MB"
            raise SourceError(f"a JSON document over {limit} is not read whole; write JSON lines", path=self._path)
        try:
            document = json.loads(data.decode("utf-8-sig", errors="replace"))
        except (ValueError, RecursionError) as error:
            raise SourceError(f"not JSON: {_reason(error)}", path=self._path) from None
        if not isinstance(document, list | dict):
            message = "holds neither a build log nor an array of them"
            raise SourceError(message, path=self._path)
        builds = document if isinstance(document, list) else [document]
        mark = _digest(data)
        match = _WHOLE_CURSOR.fullmatch(cursor)
        done = int(match[1]) if match and match[2] == mark else 0
        for index in range(done, len(builds)):
            build, problem = self._validated(builds[index], f"build {index + 1}")
            yield SourceRecord(build, f"whole:{index + 1}:{mark}", 1, problem)

    def _parsed(self, line: bytes, place: str) -> tuple[BuildEventLog | None, str | None]:
        try:
            data = json.loads(line.decode("utf-8-sig", errors="replace"))
        except (ValueError, RecursionError) as error:
            return None, f"{place}: not JSON: {_reason(error)}"
        return self._validated(data, place)

    def _validated(self, data: object, place: str) -> tuple[BuildEventLog | None, str | None]:
        if not isinstance(data, dict):
            return None, f"{place}: not an object"
        try:
            fields: dict[str, Any] = _storable(data)
            if self._overrides_project or not ({"project_id", "projectId"} & fields.keys()):
                fields = {key: value for key, value in fields.items() if key != "projectId"}
                fields["project_id"] = self.project_id
            return BuildEventLog.parse(fields), None
        except (InvalidInputError, RecursionError) as error:
            return None, f"{place}: {_reason(error)}"


def _lines(stream: BinaryIO, limit: int, offset: int) -> Iterator[tuple[int, bytes, bool]]:
    r"""Yield (offset behind it, line, whether it ended in \n); of an over-long line only a little more than `limit`."""
    while line := stream.readline(limit + 2):
        offset += len(line)
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(_CHUNK_BYTES)):
            offset += len(rest)
        terminated = rest.endswith(b"\n")
        yield offset, line.removesuffix(b"\n").removesuffix(b"\r"), terminated


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(shortened(value, _MAX_TEXT_CHARS))
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable_text(key): _storable(item) for key, item in value.items()}
    return value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
