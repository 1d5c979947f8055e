"""What is measured: every figure's meaning, unit and statistic; and what is made of the measurements."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Statistic = Literal["median", "p50", "p95"]
MEDIAN: tuple[Statistic, ...] = ("median",)
TAIL: tuple[Statistic, ...] = ("p50", "p95")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a figure says."""

    section: str
    what: str
    unit: str
    statistics: tuple[Statistic, ...] = MEDIAN

    @property
    def is_rate(self) -> bool:
        """Whether more is better."""
        return self.unit.endswith("/s")


WRITING, BULK, READING, REPLAY, OPENING, SPACE = (
    "Writing one memory",
    "Writing many: signed, fsynced, in the rows",
    "Reading (process new, files in the system's cache)",
    "Replay",
    "A fresh process",
    "Space",
)
MEANINGS = {
    "bulk": Meaning(BULK, "bulk insert", "memories/s"),
    "bulk_last_call": Meaning(BULK, "bulk insert, its last call", "memories/s"),
    "bulk_close": Meaning(BULK, "close after it: snapshot of the index", "s"),
    "single": Meaning(WRITING, "insert", "ms", TAIL),
    "visible_text": Meaning(WRITING, "insert → found by its text", "ms", TAIL),
    "visible_vector": Meaning(WRITING, "insert → found by its vector", "ms", TAIL),
    "visible_cypher": Meaning(WRITING, "insert → in Cypher", "ms", TAIL),
    "single_shared": Meaning(WRITING, "insert, taking turns with another process", "ms", TAIL),
    "visible_process_get": Meaning(WRITING, "insert → read by another process", "ms", TAIL),
    "visible_process_search": Meaning(WRITING, "insert → found by another process", "ms", TAIL),
    "get_cold": Meaning(READING, "get by id, first time", "ms", TAIL),
    "get_warm": Meaning(READING, "get by id, again", "ms", TAIL),
    "list_all": Meaning(READING, "list the 20 most relevant", "ms", TAIL),
    "list_project": Meaning(READING, "list 20 of a project", "ms", TAIL),
    "search": Meaning(READING, "recall: search_memories, 10 of all", "ms", TAIL),
    "search_project": Meaning(READING, "recall: search_memories, 10 of a project", "ms", TAIL),
    "retrieve": Meaning(READING, "recall: retrieve, within the budget", "ms", TAIL),
    "query_count": Meaning(READING, "Cypher: counts by type and outcome", "ms", TAIL),
    "query_walk": Meaning(READING, "Cypher: memories that share an entity with one", "ms", TAIL),
    "query_text": Meaning(READING, "Cypher: memories whose text holds a word", "ms", TAIL),
    "verify": Meaning(REPLAY, "verify", "events/s"),
    "rebuild": Meaning(REPLAY, "rebuild rows and index", "events/s"),
    "imports": Meaning(OPENING, "imports (numpy, memgraph)", "s"),
    "open": Meaning(OPENING, "open", "s"),
    "first_recall": Meaning(OPENING, "the first search_memories after that", "s"),
    "open_to_recall": Meaning(OPENING, "open to first recall", "s"),
    "open_after_writes": Meaning(OPENING, "the same, after the single inserts", "s"),
    "resident_peak": Meaning(OPENING, "resident after first recall, peak", "MB"),
    "resident_now": Meaning(OPENING, "resident after first recall, now", "MB"),
    "resident_own": Meaning(OPENING, "of that not mapped files", "MB"),
    "writer_peak": Meaning(SPACE, "resident writer, peak in bulk", "MB"),
    "writer_now": Meaning(SPACE, "resident writer, after bulk", "MB"),
    "disk_database": Meaning(SPACE, "on disk: database", "bytes/memory"),
    "disk_cache": Meaning(SPACE, "on disk: copy of the vectors", "bytes/memory"),
    "disk_graph": Meaning(SPACE, "on disk: graph", "bytes/memory"),
    "disk_index": Meaning(SPACE, "on disk: index", "bytes/memory"),
    "disk": Meaning(SPACE, "on disk: all", "bytes/memory"),
}
"""Of memgraph alone."""
PEER_MEANINGS = {
    "bulk": Meaning("", "bulk insert", "memories/s"),
    "single": Meaning("", "insert", "ms", ("p50",)),
    "query": Meaning("", "query, 10 nearest", "ms", ("p50",)),
    "reopen": Meaning("", "open to first query", "s"),
    "resident_now": Meaning("", "resident after that", "MB"),
    "disk": Meaning("", "on disk", "bytes/memory"),
}
"""Of memgraph and its peers alike."""
COSTS = ("bulk", "single", "search", "search_project", "retrieve", "get_cold", "open_to_recall", "disk")
"""Compared between the sizes."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a figure should be at the largest size."""

    figure: str
    statistic: Statistic
    bound: float


AIMS = (
    Aim("single", "p50", 10.0),
    Aim("bulk", "median", 5_000.0),
    Aim("rebuild", "median", 5_000.0),
    Aim("open_to_recall", "median", 1.0),
    Aim("resident_peak", "median", 1_000.0),
)
COST_AIM = 1.5
"""Cost per memory at the largest size over that at the smallest."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure, with how many measurements it stands on and their range."""

    figure: str
    what: str
    memories: int
    statistic: Statistic
    value: float
    unit: str
    of: int
    low: float
    high: float
    system: str = "memgraph"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        rounded = {name: float(f"{getattr(self, name):.5g}") for name in ("value", "low", "high")}
        return asdict(self) | rounded


def made_of(
    name: str, meaning: Meaning, values: list[float], *, memories: int, system: str = "memgraph"
) -> Iterator[Figure]:
    """Yield the figures that a meaning makes of measurements."""
    for statistic in meaning.statistics:
        value = percentile(values, 0.95) if statistic == "p95" else statistics.median(values)
        yield Figure(
            name, meaning.what, memories, statistic, value, meaning.unit, len(values), min(values), max(values), system
        )


def percentile(values: list[float], share: float) -> float:
    """Return a percentile, interpolated; of one value, that value."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def timed(call: Callable[[], Any]) -> float:
    """Return how long a call takes, seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def timed_ms(calls: Sequence[Callable[[], Any]], *, within_s: float = 60.0) -> list[float]:
    """Time calls one after the other, milliseconds; stop early when they take too long together, but not before three."""
    taken: list[float] = []
    for call in calls:
        taken.append(1e3 * timed(call))
        if len(taken) >= 3 and sum(taken) > 1e3 * within_s:
            break
    return taken
