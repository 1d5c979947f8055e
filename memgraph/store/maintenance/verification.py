"""What a verification has found."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_SHOWN = 20
"""So many differences are kept; all are counted."""


class Difference(NamedTuple):
    """One thing that is not what the journal says. Names places, never content.

    Attributes
    ----------
    part : str
        ``vectors``, ``graph`` or ``index``.
    table, key, column : str
        A graph's table, a row's key and its column; a vector's model, row number and memory; an index's part and memory.
    """

    part: str
    table: str
    key: str
    column: str
    problem: str

    def __str__(self) -> str:
        column = f", {self.column}" if self.column else ""
        return f"{self.part}: {self.table} {self.key}{column}: {self.problem}"


@dataclass(slots=True)
class Verification:
    """What was verified, and what was found wrong.

    Attributes
    ----------
    events, vectors, nodes, edges, indexed : int
        How many were compared. Without `is_deep` nodes are memories, edges the explicit links, and the index is left out.
    digest : str
        Of the journal's state.
    graph_seq : int or None
        The event that the graph stands at; None: it cannot be read.
    differing : int
        How many things differ; `first` are the first of them, `by_part` counts them.
    torn_events, torn_bytes : int
        A final commit that was cut short by a crash; the next writer drops it.
    seconds : dict
        Time taken by part.
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
    torn_events: int = 0
    torn_bytes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def note(self, difference: Difference) -> None:
        """Take a difference in."""
        self.differing += 1
        self.by_part[difference.part] += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append(difference)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Count a block's time as that of a part."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = round(time.perf_counter() - start, 3)
