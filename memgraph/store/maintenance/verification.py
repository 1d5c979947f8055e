"""Result of a verification."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from memgraph.ports import Key, Row

MOST_SHOWN = 20
"""Maximum number of differences that are kept; all are counted."""


class Difference(NamedTuple):
    """One deviation from the journal. Contains locations, never content.

    Attributes
    ----------
    part : str
        ``vectors``, ``graph`` or ``index``.
    table, key, column : str
        For the graph: table, row key and column; for vectors: model, row number and memory; for the index: part and
        memory.
    """

    part: str
    table: str
    key: str
    column: str
    problem: str

    def __str__(self) -> str:
        column = f", {self.column}" if self.column else ""
        return f"{self.part}: {self.table} {self.key}{column}: {self.problem}"


class LastBackup(NamedTuple):
    """A backup that the journal names.

    Attributes
    ----------
    at : str
        When it was recorded; for the backup from which the store was restored, when it was made.
    seq : int
        The last event that it has.
    path : str or None
        Its file, as it was called then; None: the store was restored from it.
    """

    at: str
    seq: int
    path: str | None


@dataclass(slots=True)
class Verification:
    """What was verified, and which deviations were found.

    Attributes
    ----------
    events, vectors, nodes, edges, indexed : int
        Number compared. Unless `is_deep`, nodes are memories, edges are explicit links, and the index is skipped.
    digest : str
        Digest of the journal's state.
    graph_seq : int or None
        The last event in the graph; None if it cannot be read.
    differing : int
        Number of deviations; `first` holds the first ones, `by_part` counts them by part.
    seconds : dict
        Time taken by part.
    rows : dict
        Of an inspection: the rows at the journal's end, by table and key.
    began_at : str or None
        Of an inspection: time of the first event.
    backup : LastBackup or None
        Of an inspection: the last backup that the journal names.
    head : Path or None
        Of an inspection: the head file.
    """

    is_deep: bool
    digest: str = ""
    events: int = 0
    vectors: int = 0
    nodes: int = 0
    edges: int = 0
    indexed: int = 0
    graph_seq: int | None = None
    differing: int = 0
    by_part: Counter[str] = field(default_factory=Counter)
    first: list[Difference] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    rows: Mapping[str, Mapping[Key, Row]] = field(default_factory=dict, repr=False)
    began_at: str | None = None
    backup: LastBackup | None = None
    head: Path | None = None

    def note(self, difference: Difference) -> None:
        """Record a deviation."""
        self.differing += 1
        self.by_part[difference.part] += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append(difference)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add a block's duration to the time of a part."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = round(time.perf_counter() - start, 3)
