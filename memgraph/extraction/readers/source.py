"""What every reader yields, and how text from outside is made storable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable

from memgraph.extraction.secrets import redact
from memgraph.model.base import Name, checked
from memgraph.model.build import BuildEventLog, BuildTask, TaskOutcome
from memgraph.model.timestamps import to_iso

MAX_OUTPUT_CHARS = 8_000
"""Of what a call or program printed: its beginning and its end."""
MAX_SAID_CHARS = 4_000
"""Of what an agent or a person said at once."""
MAX_LINE_CHARS = 240
"""Of a description."""
_LAST_DAY = 2_900_000
_UNDATED_START = datetime(2000, 1, 1, tzinfo=UTC)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One build log of a source, the reason why a part of it could not be read, or both: a build of what could be read.

    Attributes
    ----------
    build : BuildEventLog or None
        None when the part was skipped.
    cursor : str
        Given to `Reader.records` it continues behind everything that is settled up to here. What may still grow (the
        last group of commits, a half-written line) is not settled and is read again. Empty: from the start.
    records : int
        Raw records (commits, lines) that this stands for.
    skipped : str or None
        What could not be read and why, with the place.
    """

    build: BuildEventLog | None
    cursor: str
    records: int
    skipped: str | None = None


@runtime_checkable
class Reader(Protocol):
    """Reads one source.

    Attributes
    ----------
    source_id : str
        The source's natural key: equal for the same source wherever it lies, if its content tells.
    kind : str
        What is read: ``git``, ``gitlog``, ``builds``, ``transcripts``, ``trajectories``, ``alfworld``, ``mbpp``,
        ``hotpotqa``, ``tau-bench``, ``junit``, ``ci-log``.
    locator : str
        Absolute path.
    project_id : str
        The project its builds belong to.
    """

    @property
    def source_id(self) -> str:
        """Natural key of the source."""
        ...

    @property
    def kind(self) -> str:
        """What is read."""
        ...

    @property
    def locator(self) -> str:
        """Absolute path."""
        ...

    @property
    def project_id(self) -> str:
        """Project of the builds."""
        ...

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield what comes after `cursor`, oldest first; all of it for None or for a cursor that no longer fits.

        Raises
        ------
        SourceError
            The source cannot be read at all.
        """
        ...

    def count(self) -> int | None:
        """Return how many raw records the source holds in all, or None if that is not known."""
        ...


def storable_text(text: str) -> str:
    """Return `text` without the characters that no store can hold: NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)


def shortened(text: str, limit: int) -> str:
    """Return `text` if it fits, else its beginning and its end: logs say at their end what went wrong.

    What is cut is rid of its secrets first: half of one would not be known for one.
    """
    if len(text) <= limit:
        return text
    text = redact(text).value
    if len(text) <= limit:
        return text
    half = (limit - 40) // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


def cleaned(value: object, limit: int) -> str:
    """Return a text as a log may hold it: shortened, no terminal codes, no outer white space; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    text = shortened(value, 2 * limit)
    return storable_text(shortened(without_ansi(text).replace("\r\n", "\n").strip(), limit))


def one_line(value: object, limit: int = MAX_LINE_CHARS) -> str:
    """Return a text as one line of at most `limit` characters."""
    text = " ".join(cleaned(value, 8 * limit).split())
    return beginning(text, limit)


def beginning(text: str, limit: int) -> str:
    """Return `text` if it fits, else its beginning, an ellipsis, and no half of a secret."""
    return text if len(text) <= limit else f"{redact(text).value[: limit - 1]}…"


def end(text: str, limit: int) -> str:
    """Return `text` if it fits, else its end, and no half of a secret."""
    return text if len(text) <= limit else redact(text).value[-limit:]


def named(value: object, default: str) -> str:
    """Return a text or whole number as a name that the store can hold, or `default`."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    return one_line(value, 300) or default


def without_ansi(text: str) -> str:
    """Return a text without a terminal's colours and movements."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def time_of(value: object) -> str | None:
    """Return an ISO 8601 text in canonical form, or None where it is none."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return to_iso(value)
    except ValueError:
        return None


def changed_at(path: Path) -> str:
    """Return when a file was last changed: when the run happened that an undated log tells of."""
    try:
        return to_iso(datetime.fromtimestamp(int(path.stat().st_mtime), UTC))
    except (OSError, OverflowError, ValueError):
        return undated(0)


def undated(number: int) -> str:
    """Return when an undated trial happened: trial `number` is that day after 2000-01-01, UTC.

    So what came first stays first, lies before everything that is dated, and is the same whenever it is read.
    """
    return to_iso(_UNDATED_START + timedelta(days=min(max(number, 0), _LAST_DAY)))


def overall(tasks: Iterable[BuildTask]) -> TaskOutcome:
    """Return the outcome of a build that does not say: its tasks' if they agree, else partial; success without any."""
    outcomes = {task.outcome for task in tasks}
    return outcomes.pop() if len(outcomes) == 1 else "partial" if outcomes else "success"


def project_of(path: Path, given: str | None) -> str:
    """Return the project named by the caller, else the name of the file (without its endings) or directory."""
    if given is not None:
        return str(checked(Name, given, "project_id"))
    name = storable_text(path.name)
    return (name.split(".")[0] if path.is_file() else name).strip()[:400] or "unnamed"
