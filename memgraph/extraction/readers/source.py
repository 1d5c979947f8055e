"""Common parts of all readers: their records and protocol, and the cleaning of external text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from memgraph.disk.glance import work_tree_name
from memgraph.extraction.secrets import redact
from memgraph.model.base import Name, checked
from memgraph.model.build import BuildEventLog, BuildTask, TaskOutcome
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re

MAX_OUTPUT_CHARS = 8_000
"""Maximum characters of a call's or program's output, of which beginning and end are kept."""
MAX_SAID_CHARS = 4_000
"""Maximum characters of a statement by an agent or person."""
MAX_LINE_CHARS = 240
"""Maximum characters of a description."""
_LAST_DAY = 2_900_000
_UNDATED_START = datetime(2000, 1, 1, tzinfo=UTC)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\-_])")


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
        Format of the source: ``git``, ``gitlog``, ``builds``, ``transcripts``, ``trajectories``, ``alfworld``,
        ``mbpp``,
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


class FileReader:
    """Base of the readers of files; a project that is not given is named after the file."""

    kind = "file"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        self._path = Path(path).absolute()
        self.project_id = project_of(self._path, project_id)

    @property
    def locator(self) -> str:
        """Absolute path of the file."""
        return str(self._path)

    @property
    def source_id(self) -> str:
        """The kind and the absolute path, since such a file does not identify its run."""
        return f"{self.kind}:{self._path}"

    def count(self) -> int | None:
        """Return None: the file is read as a whole."""
        return None


def storable_text(text: str) -> str:
    """Return `text` without unstorable characters: NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)


def shortened(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its beginning and end: logs report failures at their end.

    Secrets are redacted before truncation: half of one would not be recognised.
    """
    if len(text) <= limit:
        return text
    text = redact(text).value
    if len(text) <= limit:
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
    text = " ".join(cleaned(value, 8 * limit).split())
    return beginning(text, limit)


def beginning(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its beginning and an ellipsis; no secret is cut in half."""
    return text if len(text) <= limit else f"{redact(text).value[: limit - 1]}…"


def end(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its end; no secret is cut in half."""
    return text if len(text) <= limit else redact(text).value[-limit:]


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
