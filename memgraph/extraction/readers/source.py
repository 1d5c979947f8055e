"""The base of all readers: a foreign file is opened within limits and turned into build logs, one at a time, continued by cursors."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from memgraph.disk.files import open_regular
from memgraph.disk.glance import work_tree_name
from memgraph.errors import SourceError
from memgraph.extraction.secrets import redact
from memgraph.model.base import Name, checked
from memgraph.model.build import BuildEventLog, BuildTask, TaskOutcome
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re

MAX_WHOLE_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_UNPACKED_BYTES = 8 * 1024 * 1024 * 1024
"""Maximum unpacked size, against decompression bombs."""
MAX_BUILD_TASKS = 20_000
MAX_OUTPUT_CHARS = 8_000
"""Maximum characters of a call's or program's output, of which beginning and end are kept."""
MAX_SAID_CHARS = 4_000
"""Maximum characters of a statement by an agent or person."""
MAX_LINE_CHARS = 240
"""Maximum characters of a description."""
_MAX_TEXT_CHARS = 200_000
_MAX_UTF16_BYTES = 256 * 1024 * 1024
_MAX_HELD_BYTES = 16 * 1024 * 1024
"""An unpacked file of this size is held in memory, a larger one on disk."""
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 8192
_LAST_DAY = 2_900_000
_UNDATED_START = datetime(2000, 1, 1, tzinfo=UTC)
_CONTROLS = frozenset(map(chr, {*range(32), 0xFFFD} - {*range(9, 14), 0x1B}))
"""Characters that do not occur in text, and the one that replaces invalid bytes."""
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MAX_PATH_CHARS = 4_096
_LINKED = re.compile(r"(?:^|/)([^/]+)/\.(?:[^/]+/)?worktrees/[^/]")
"""A directory, and the hidden folder of its linked work trees."""
_BEGINS = re.compile(r"\n\s*|(?<=[.!?])\s+")
"""Where a sentence begins."""
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\-_])")
_DERIVED = frozenset({"test report", "ci log", "transcript", "trajectory"})
"""Sources whose outcome is derived from what was read: if a part is unreadable, it is no success."""
_LINE_ENDINGS = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One build log of a source, the reason why a part could not be read, or both: a build of the readable rest.

    Given to `Reader.records`, the cursor continues after everything that is final up to here. What may still grow (the last group of
    commits, an incomplete line) is not final and is read again. It covers `records` raw records (commits, lines); `releases` has the
    first release of commits that were read before, of which some may have been released since, and `people` whom names mean by now.
    """

    build: BuildEventLog | None
    cursor: str
    records: int
    skipped: str | None = None
    releases: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Reader(Protocol):
    """Protocol of a source's reader."""

    @property
    def source_id(self) -> str:
        """The source's natural key: independent of its location, if its content identifies it."""

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
        """Yield the records after `cursor`, oldest first; all for None or for a cursor that no longer applies."""

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
    last complete line. The project is the one that is given, else the format's own, else the file's name without its suffixes.
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
        """Return what is in one value of the file; a `ValueError` says why nothing can be read of it."""
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
            return lines_in(stream) if self.noun and self._has_lines(stream) else None

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per build, and one per part that cannot be read; see `Reader.records`."""
        with opened(self.path) as (stream, problem):
            is_of_lines = bool(self.noun) and self._has_lines(stream)
            yield from (self._from_lines if is_of_lines else self._from_document)(stream, cursor or "", problem)

    def _from_document(self, stream: IO[bytes], cursor: str, problem: str | None) -> Iterator[SourceRecord]:
        """Yield the records of a document. A cursor holds how many were read, and a digest of the content."""
        mark = hashlib.file_digest(stream, "sha256").hexdigest()[:16]  # type: ignore[arg-type]
        done = 0
        match cursor.split(":"):
            case ["whole", "all", known] if known == mark:
                return
            case ["whole", number, known] if known == mark and number.isdecimal():
                done = int(number)
        stream.seek(0)
        parts = chain(
            self.parts(Document(self.path, stream, mark, self._max_whole_bytes)),
            [Part(None, 1, problem)] * bool(problem),
        )
        held: SourceRecord | None = None
        for at, part in enumerate(parts if self.noun else _derived(parts, is_cut=problem is not None), start=1):
            if held is not None:
                yield held
            build, told = _built(part)
            held = SourceRecord(build, f"whole:{at}:{mark}", part.records, told) if at > done else None
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
    match cursor.split(":"):
        case ["lines", offset, number, mark] if mark and f"{offset}{number}".isdecimal() and len(offset) < 19:
            start = max(0, int(offset) - 4098)
            stream.seek(start)
            before = stream.read(int(offset) - start)
            line = before.removesuffix(b"\n").removesuffix(b"\r").rsplit(b"\n", 1)[-1][-4096:]
            if len(before) == int(offset) - start and digest(line) == mark:
                return int(offset), int(number), mark
    return 0, 0, ""


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
    """Parse JSON, replacing invalid UTF-8. Raises a `ValueError` if it is not JSON or is nested too deeply."""
    try:
        return json.loads(data.decode("utf-8-sig", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {reason(error)}") from None


def as_dict(value: object) -> dict[str, Any]:
    """Return an object, or an empty one instead of anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list, or an empty one instead of anything else."""
    return value if isinstance(value, list) else []


def reason(error: Exception) -> str:
    """Return a description of what is wrong with a part of a source."""
    return "nested too deeply" if isinstance(error, RecursionError) else redact(str(error)).value


def digest(data: bytes) -> str:
    """Return 16 characters that identify this content."""
    return hashlib.sha256(data).hexdigest()[:16]


def run_id(build_id: str, content: object) -> str:
    """Return an id for a build whose source restarts its numbering in every run: it ends in a digest of the source's content for it."""
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

    It is "" for a value that is not a path. A directory that is not on this machine has its own name, or that of the directory in
    whose hidden folder of linked work trees it is, such as ``shop/.worktrees/fix``.
    """
    if not isinstance(path, str) or not path.strip() or len(path) > MAX_PATH_CHARS:
        return ""
    plain = path.replace("\\", "/").rstrip("/")
    linked = _LINKED.search(plain)
    own = one_line(linked[1] if linked else plain.rpartition("/")[2], 300)
    top = work_tree_name(path) if Path(path).is_absolute() else ""  # else it is of another system
    return (top and one_line(top, 300)) or own


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], str | None]]:
    """Open a text file, gzipped or not, for a block; yield its seekable bytes, and why they end too early, if they do.

    UTF-16 is read as UTF-8. A `SourceError` says that the file does not exist, is unreadable, or is not text.
    """
    problem = None
    try:
        raw: IO[bytes] = open_regular(path, follows_links=True)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None
    try:
        if raw.read(2) == b"\x1f\x8b":
            raw, problem = _unpacked(raw)
        raw.seek(0)
        if (data := raw.read(2)) in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
            data += raw.read(_MAX_UTF16_BYTES)
            if len(data) > _MAX_UTF16_BYTES:
                raise SourceError("is in UTF-16 and too large for that; convert it to UTF-8", path=path)
            raw.close()
            raw = io.BytesIO(data.decode("utf-16", "replace").encode())
        raw.seek(0)
        head = raw.read(_HEAD_BYTES).decode("utf-8", errors="replace")
        if sum(char in _CONTROLS for char in head) * 5 > len(head):
            raise SourceError("contains binary data, not UTF-8 text", path=path)
        raw.seek(0)
        yield raw, problem
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}", path=path) from None
    finally:
        raw.close()


def _unpacked(packed: IO[bytes]) -> tuple[IO[bytes], str | None]:
    """Return a copy of the content of a gzip file, and why it ends too early, if it does."""
    packed.seek(0)
    copy: IO[bytes] = SpooledTemporaryFile(_MAX_HELD_BYTES)  # noqa: SIM115 (closed by the caller)
    with packed, gzip.GzipFile(fileobj=packed, mode="rb") as content:
        while copy.tell() < MAX_UNPACKED_BYTES:
            try:
                chunk = content.read1(_CHUNK_BYTES)
            except EOFError:
                return copy, "the gzip data is truncated; everything before that was read"
            except (OSError, zlib.error):
                return copy, "the gzip data is damaged; the rest was not read"
            if not chunk:
                return copy, None
            copy.write(chunk)
    return copy, f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; the rest was not read"


def lines(stream: IO[bytes], limit: int = MAX_LINE_BYTES, offset: int = 0) -> Iterator[tuple[int, bytes, bool]]:
    r"""Yield (offset after it, line, whether it ended in \n); of an over-long line only slightly more than `limit`."""
    while line := stream.readline(limit + 2):
        offset += len(line)
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(_CHUNK_BYTES)):
            offset += len(rest)
        terminated = rest.endswith(b"\n")
        yield offset, line.removesuffix(b"\n").removesuffix(b"\r"), terminated


def lines_in(stream: IO[bytes]) -> int:
    """Return the number of non-blank lines."""
    return sum(1 for _, line, _ in lines(stream, 64) if line.strip())


def text_lines(stream: IO[bytes], limit: int = 64 * 1024) -> Iterator[str]:
    """Yield each line as text with invalid UTF-8 replaced; lines over `limit` bytes are truncated."""
    for _, line, _ in lines(stream, limit):
        yield line[:limit].decode("utf-8-sig", errors="replace")


def ending(path: Path) -> str:
    """Return a file name's last suffix in lower case, ignoring that of gzip."""
    name = path.name.lower().removesuffix(".gz")
    return name[name.rfind(".") :] if "." in name else ""


def files_below(folder: Path, endings: frozenset[str], *, hidden: bool = False) -> list[Path]:
    """Return the files below a directory that end in one of `endings` (gzipped ones, too), in sorted order.

    Symbolic links are not followed: they may lead anywhere, and in circles. Hidden files and directories are skipped by
    default; an unreadable directory counts as empty.
    """
    found: list[Path] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
        paths = (Path(place, name) for name in names if hidden or not name.startswith("."))
        found += [path for path in paths if ending(path) in endings and not path.is_symlink()]
    return sorted(found)


def storable_text(text: str) -> str:
    """Return `text` without unstorable characters: NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)


def shortened(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its beginning and end: logs report failures at their end.

    Secrets are redacted before truncation: half of one would not be recognised.
    """
    if len(text) <= limit or len(text := redact(text).value) <= limit:
        return text
    half = (limit - 40) // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


def cleaned(value: object, limit: int) -> str:
    """Return a text in storable form: shortened, stripped, without terminal codes; "" for other values."""
    if not isinstance(value, str):
        return ""
    text = shortened(value, 2 * limit)
    return storable_text(shortened(without_ansi(text).replace("\r\n", "\n").strip(), limit))


def one_line(value: object, limit: int = MAX_LINE_CHARS) -> str:
    """Return a text as one line of at most `limit` characters."""
    return beginning(" ".join(cleaned(value, 8 * limit).split()), limit)


def beginning(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its beginning and an ellipsis; no secret is cut in half."""
    return text if len(text) <= limit else f"{redact(text).value[: limit - 1]}…"


def end(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its end, from where a line, sentence or word begins; no secret is cut in half."""
    if len(text) <= limit:
        return text
    last = redact(text).value[-limit:]
    if begins := _BEGINS.search(last, 0, limit // 2):
        return last[begins.end() :]
    return last[last.find(" ", 0, limit // 2) + 1 :].lstrip()


def named(value: object, default: str) -> str:
    """Return a text or integer as a storable name, or `default`."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    return one_line(value, 300) or default


def without_ansi(text: str) -> str:
    """Return a text without terminal escape sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def time_of(value: object) -> str | None:
    """Return an ISO 8601 text in canonical form, or None if it is invalid."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return to_iso(value)
    except ValueError:
        return None


def changed_at(path: Path) -> str:
    """Return a file's modification time, used as the time of an undated log's run."""
    try:
        return to_iso(datetime.fromtimestamp(int(path.stat().st_mtime), UTC))
    except (OSError, OverflowError, ValueError):
        return undated(0)


def undated(number: int) -> str:
    """Return the time assigned to an undated trial: trial `number` is that day after 2000-01-01, UTC.

    This keeps the order, precedes everything that is dated, and does not depend on the time of reading.
    """
    return to_iso(_UNDATED_START + timedelta(days=min(max(number, 0), _LAST_DAY)))
