"""What every reader yields, and how text from outside is made storable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from memgraph.model.base import Name, checked
from memgraph.model.build import BuildEventLog

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One build log of a source, or the reason why a part of it could not be read.

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
        Why there is no build, with the place.
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
        What is read: ``git``, ``gitlog``, ``builds``.
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
    """Return `text` if it fits, else its beginning and its end: logs say at their end what went wrong."""
    if len(text) <= limit:
        return text
    half = (limit - 40) // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


def project_of(path: Path, given: str | None) -> str:
    """Return the project named by the caller, else the name of the file (without its endings) or directory."""
    if given is not None:
        return str(checked(Name, given, "project_id"))
    name = storable_text(path.name)
    return (name.split(".")[0] if path.is_file() else name).strip()[:400] or "unnamed"
