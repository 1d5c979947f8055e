"""The base of all readers: a file of a format is turned into build logs, one at a time, and continued by cursors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from memgraph.disk.glance import work_tree_name
from memgraph.errors import SourceError
from memgraph.extraction.readers.files import (
    MAX_LINE_BYTES,
    ending,
    lines,
    one_line,
    opened,
    shortened,
    storable_text,
    without_ansi,
)
from memgraph.extraction.secrets import redact
from memgraph.model.base import Name, checked
from memgraph.model.build import BuildEventLog, BuildTask, TaskOutcome
from memgraph.text import lazy_re as re

MAX_WHOLE_BYTES = 64 * 1024 * 1024
MAX_BUILD_TASKS = 20_000
_MAX_TEXT_CHARS = 200_000
_LINES_CURSOR = re.compile(r"lines:(\d{1,18}):(\d{1,18}):([0-9a-f]{16}|)")
_WHOLE_CURSOR = re.compile(r"whole:(\d{1,18}|all):([0-9a-f]{16})")
_DERIVED = frozenset({"test report", "ci log", "transcript", "trajectory"})
"""Sources whose outcome is derived from what was read: if a part is unreadable, it is no success."""
_LINE_ENDINGS = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One build log of a source, the reason why a part could not be read, or both: a build of the readable rest.

    Attributes
    ----------
    build : BuildEventLog or None
        None if the part was skipped.
    cursor : str
        Given to `Reader.records`, it continues after everything that is final up to here. What may still grow (the last
        group of commits, an incomplete line) is not final and is read again. Empty: from the start.
    records : int
        Number of raw records (commits, lines) it covers.
    skipped : str or None
        What could not be read, where and why.
    releases : mapping of str to str
        The first release of commits that were read before, of which some may have been released since.
    """

    build: BuildEventLog | None
    cursor: str
    records: int
    skipped: str | None = None
    releases: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Reader(Protocol):
    """Protocol of a source's reader.

    Attributes
    ----------
    source_id : str
        The source's natural key: independent of its location, if its content identifies it.
    kind : str
        Format of the source: ``git``, ``gitlog``, ``builds``, ``transcripts``, ``trajectories``, ``alfworld``, ``mbpp``,
        ``hotpotqa``, ``tau-bench``, ``junit``, ``ci-log``.
    locator : str
        Absolute path.
    project_id : str
        The project of its builds.
    """

    @property
    def source_id(self) -> str:
        """Natural key of the source."""

    @property
    def kind(self) -> str:
        """Format of the source."""

    @property
    def locator(self) -> str:
        """Absolute path."""

    @property
    def project_id(self) -> str:
        """Project of the builds."""

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield the records after `cursor`, oldest first; all for None or for a cursor that no longer applies.

        Raises
        ------
        SourceError
            The source is completely unreadable.
        """

    def count(self) -> int | None:
        """Return the total number of raw records in the source, or None if unknown."""


class Part(NamedTuple):
    """The fields of a build, its number of raw records, what could not be read, and where: without fields, nothing could."""

    fields: Mapping[str, Any] | None
    records: int = 1
    problem: str | None = None
    place: str = ""

    @property
    def told(self) -> str | None:
        """What could not be read, and where."""
        return f"{self.place}: {self.problem}" if self.problem and self.place else self.problem


class Document(NamedTuple):
    """A file that is open: its path, its bytes, and 16 characters that identify them."""

    path: Path
    stream: IO[bytes]
    mark: str
    limit: int = MAX_WHOLE_BYTES

    def value(self) -> Any:
        """Return the JSON value that the file is."""
        data = self.stream.read(self.limit + 1)
        if len(data) > self.limit:
            problem = f"the JSON document exceeds {self.limit / 1024 / 1024:g} MB; convert it to JSON lines"
            raise SourceError(problem, path=self.path)
        try:
            return loaded(data)
        except ValueError as error:
            raise SourceError(str(error), path=self.path) from None


class FileReader:
    """A file of one format. What is in it is said by one method of a subclass: `parts` for a document as a whole, or `entry`.

    A document is read from its start whenever it has changed. A file of JSON lines may grow: a later run continues after the
    last complete line.

    Parameters
    ----------
    path : path-like
        The file, optionally gzipped.
    project_id : str, optional
        Default: the format's own, else the file's name without its suffixes.
    max_line_bytes, max_whole_bytes : int
        Longer lines are skipped, larger JSON documents rejected.
    """

    kind: ClassVar[str] = "file"
    project: ClassVar[str | None] = None
    """The project of all files of the format."""
    noun: ClassVar[str] = ""
    """What a value is called in a file of JSON lines, or of a JSON array, whose values are read one by one: see `entry`."""

    def __init__(
        self,
        path: str | Path,
        *,
        project_id: str | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_whole_bytes: int = MAX_WHOLE_BYTES,
    ) -> None:
        self.path = Path(path).absolute()
        self.given = None if project_id is None else project_of(self.path, project_id)
        self._max_line_bytes = max_line_bytes
        self._max_whole_bytes = max_whole_bytes

    def parts(self, document: Document) -> Iterable[Part]:
        """Yield what is in a document."""
        value = document.value()
        if not isinstance(value, list | dict):
            raise SourceError(f"contains neither a {self.noun} nor an array of them", path=self.path)
        for number, item in enumerate(value if isinstance(value, list) else [value], start=1):
            yield self._part(item, f"{self.noun.split(maxsplit=1)[0]} {number}")

    def entry(self, value: Any) -> Part:
        """Return what is in one value of the file.

        Raises
        ------
        ValueError, OverflowError, RecursionError
            Nothing can be read of it.
        """
        raise NotImplementedError

    @property
    def locator(self) -> str:
        """Absolute path of the file."""
        return str(self.path)

    @cached_property
    def project_id(self) -> str:
        """The project that was given, else that of the format or of the file."""
        return self.given or self.project or project_of(self.path, None)

    @property
    def source_id(self) -> str:
        """The kind and the absolute path, since such a file does not identify its run."""
        return f"{self.kind}:{self.path}"

    @property
    def stem(self) -> str:
        """The file's name without the suffixes of its format and of gzip."""
        return self.path.name.removesuffix(".gz").removesuffix(ending(self.path))

    def count(self) -> int | None:
        """Return the number of non-blank lines of a file of JSON lines, or None for a document that is read as a whole."""
        with opened(self.path) as (stream, _):
            if not (self.noun and self._has_lines(stream)):
                return None
            return sum(1 for _, line, _ in lines(stream, 64) if line.strip())

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per build, and one per part that cannot be read; see `Reader.records`."""
        with opened(self.path) as (stream, problem):
            is_of_lines = bool(self.noun) and self._has_lines(stream)
            yield from (self._from_lines if is_of_lines else self._from_document)(stream, cursor or "", problem)

    def _from_document(self, stream: IO[bytes], cursor: str, problem: str | None) -> Iterator[SourceRecord]:
        """Yield the records of a document. A cursor holds how many were read, and a digest of the content."""
        mark = hashlib.file_digest(stream, "sha256").hexdigest()[:16]  # type: ignore[arg-type]
        match = _WHOLE_CURSOR.fullmatch(cursor)
        if match and match[2] == mark and match[1] == "all":
            return
        done = int(match[1]) if match and match[2] == mark else 0
        stream.seek(0)
        parts = chain(
            self.parts(Document(self.path, stream, mark, self._max_whole_bytes)),
            [Part(None, 1, problem)] * bool(problem),
        )
        held: SourceRecord | None = None
        for number, part in enumerate(parts if self.noun else _derived(parts, is_cut=problem is not None), start=1):
            if held is not None:
                yield held
            build, told = _built(part)
            held = SourceRecord(build, f"whole:{number}:{mark}", part.records, told) if number > done else None
        if held is not None:  # the cursor of the last one marks the end
            yield SourceRecord(held.build, f"whole:all:{mark}", held.records, held.skipped)

    def _has_lines(self, stream: IO[bytes]) -> bool:
        """Choose between JSON lines and one document: a complete JSON value on the first line means lines."""
        if ending(self.path) in _LINE_ENDINGS:
            return True
        first = next((line for _, line, _ in islice(lines(stream, self._max_line_bytes), 1_000) if line.strip()), b"")
        stream.seek(0)
        first = first.strip()
        return not first or (first.startswith(b"{") and (first.endswith(b"}") or len(first) > self._max_line_bytes))

    def _from_lines(self, stream: IO[bytes], cursor: str, problem: str | None) -> Iterator[SourceRecord]:
        """Yield the records of JSON lines. A cursor holds the offset after the last one, its number, and its digest."""
        offset, number, mark = _resumed(stream, cursor)
        stream.seek(offset)
        before = f"lines:{offset}:{number}:{mark}"
        for after, line, terminated in lines(stream, self._max_line_bytes, offset):
            number += 1
            before = f"lines:{offset}:{number - 1}:{mark}"
            offset, mark = after, digest(line[-4096:])
            if not line.strip():
                continue
            build, told = _built(self._of_line(line, f"line {number}"))
            if build is None and not terminated:
                # it may still be being written, so a later run reads it again
                yield SourceRecord(None, before, 1, f"{told}; {problem or 'the last line is not finished'}")
                return
            # after an unfinished line the next one is its rest
            before = f"lines:{offset}:{number - (not terminated)}:{mark}"
            yield SourceRecord(build, before, 1, told)
        if problem:
            yield SourceRecord(None, before, 1, problem)

    def _of_line(self, line: bytes, place: str) -> Part:
        if len(line) > self._max_line_bytes:
            return Part(None, 1, f"longer than {self._max_line_bytes:,} bytes", place)
        try:
            value = loaded(line)
        except ValueError as error:
            return Part(None, 1, str(error), place)
        return self._part(value, place)

    def _part(self, value: Any, place: str) -> Part:
        try:
            return self.entry(value)._replace(place=place)
        except (ValueError, OverflowError, RecursionError) as error:
            return Part(None, 1, reason(error), place)


def _built(part: Part) -> tuple[BuildEventLog | None, str | None]:
    """Return the build of a part, and what could not be read."""
    try:
        return BuildEventLog.parse(part.fields) if part.fields else None, part.told
    except (ValueError, RecursionError) as error:
        return None, part._replace(problem=reason(error)).told


def _derived(parts: Iterable[Part], *, is_cut: bool) -> Iterator[Part]:
    """Yield parts, those with too many tasks as several; after one that could not be read, no outcome that was derived is a success."""
    for part in parts:
        is_cut = is_cut or part.problem is not None
        fields = dict(part.fields or {})
        if fields.get("source") not in _DERIVED:
            yield part
            continue
        if is_cut and fields["build_outcome"] == "success":
            fields["build_outcome"] = "partial"
        tasks, name = fields["tasks"], fields["build_id"]
        yield part._replace(fields={**fields, "tasks": tasks[:MAX_BUILD_TASKS]})
        for number, start in enumerate(range(MAX_BUILD_TASKS, len(tasks), MAX_BUILD_TASKS), start=2):
            own = {"build_id": f"{name}-part-{number}", "tasks": tasks[start : start + MAX_BUILD_TASKS]}
            yield Part({**fields, "user_interventions": [], **own}, 0, None, part.place)


def _resumed(stream: IO[bytes], cursor: str) -> tuple[int, int, str]:
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


class BuildLogReader(FileReader):
    """Reads seed 0's build logs: a JSON object or array, or JSON lines, in camelCase or snake_case.

    For suffixes other than ``.json``, ``.jsonl`` and ``.ndjson`` the content decides. Builds without a project get the
    reader's; a `project_id` given here overrides theirs.
    """

    kind = "builds"
    noun = "build log"

    def entry(self, value: Any) -> Part:
        """Return the build that a value is."""
        if not isinstance(value, dict):
            raise ValueError("not an object")
        fields: dict[str, Any] = _storable(value)
        if self.given or not ({"project_id", "projectId"} & fields.keys()):
            fields = {key: one for key, one in fields.items() if key != "projectId"}
            fields["project_id"] = self.project_id
        return Part(fields)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(shortened(without_ansi(value), _MAX_TEXT_CHARS))
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable_text(key): _storable(item) for key, item in value.items()}
    return value


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


def digest(data: bytes) -> str:
    """Return 16 characters that identify this content."""
    return hashlib.sha256(data).hexdigest()[:16]


def run_id(build_id: str, content: object) -> str:
    """Return an id for a build whose source restarts its numbering in every run.

    After an ``@`` it ends in a digest of the source's content for the build: it is independent of the file's location
    and growth, and differs between runs.

    Raises
    ------
    RecursionError
        The content is nested too deeply.
    """
    return f"{build_id}@{digest(json.dumps(content, sort_keys=True).encode())[:8]}"


def overall(tasks: Iterable[BuildTask]) -> TaskOutcome:
    """Return the outcome of a build that states none: that of its tasks if they agree, else partial; success without tasks."""
    outcomes = {task.outcome for task in tasks}
    return outcomes.pop() if len(outcomes) == 1 else "partial" if outcomes else "success"


def project_of(path: Path, given: str | None) -> str:
    """Return the caller's project, else the name of the file (without its suffixes) or directory."""
    if given is not None:
        return str(checked(Name, given, "project_id"))
    name = storable_text(path.name)
    return (name.split(".")[0] if path.is_file() else name).strip()[:400] or "unnamed"


def project_of_directory(path: object) -> str:
    """Return the project of a session by its working directory: the name of the git work tree that it is in, else its own name.

    It is "" for a value that is not a path. A directory that is not on this machine has its own name.
    """
    if not isinstance(path, str) or not path.strip():
        return ""
    own = one_line(re.split(r"[/\\]", path.rstrip("/\\"))[-1], 300)
    if not Path(path).is_absolute():  # of another system
        return own
    top = work_tree_name(path)
    return one_line(top, 300) or own if top else own
