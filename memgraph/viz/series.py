"""What was learned over time, as series: each a number per bucket and group, defined so that it can be recomputed by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memgraph.store import AgentMemoryStore
from memgraph.viz.history import History, read_history
from memgraph.viz.measures import MEASURES, Cell, Scope
from memgraph.viz.periods import bounds, checked_bucket


@dataclass(frozen=True)
class Point:
    """One number.

    Attributes
    ----------
    at : str
        First day of the bucket, ISO 8601, UTC.
    group : str
        Which of the series' lines it is on.
    value : float or None
        None: a share of nothing.
    count : int
        Of a share or a mean, what it is of; else the value.
    """

    at: str
    group: str
    value: float | None
    count: int


@dataclass(frozen=True)
class Series:
    """One thing over time.

    Attributes
    ----------
    unit : str
        ``share`` (from 0 to 1), or what is counted.
    points : tuple of Point
        In order of time, and of the groups within a bucket; every bucket from the first to the last has a point for every
        group. Empty: the journal tells nothing of it.
    bucket : str or None
        ``day``, ``week`` or ``month``; None without points.
    """

    name: str
    title: str
    unit: str
    definition: str
    points: tuple[Point, ...] = ()
    bucket: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {**asdict(self), "points": [asdict(point) for point in self.points]}


def learning_series(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    bucket: str | None = None,
    history: History | None = None,
) -> list[Series]:
    """Return every series, in one fixed order, those without a point too. Costs one pass over the journal.

    Parameters
    ----------
    project_id : str, optional
        Only memories, builds and recalls of this project.
    since, until : str, optional
        Only what happened from then to then, both included; a date as `until` means its last moment. What was before is
        known, though: what was in force then is, and what failed then failed before.
    bucket : {"day", "week", "month"}, optional
        Default: for each series days up to two months, weeks up to two years, else months.
    history : History, optional
        What was read from this store already.

    Raises
    ------
    InvalidInputError
        A time is none, `since` is after `until`, or there is no such bucket.
    """
    first, last = bounds(since, until)
    wanted = checked_bucket(bucket)
    scope = Scope(history or read_history(store), project_id, first, last, wanted, now=store.now())
    found = []
    for measure in MEASURES:
        cells, used = measure.of(scope)
        told = Series(measure.name, measure.title, measure.unit, measure.definition, tuple(_points(cells)), used)
        found.append(told)
    return found


def _points(cells: Iterable[Cell]) -> Iterable[Point]:
    for cell in cells:
        value = None if cell.value is None else round(cell.value, 6)
        yield Point(cell.at, cell.group, value, cell.count)


def with_data(series: Sequence[Series]) -> list[Series]:
    """Return the series that have something to show: a value in one point or more."""
    return [one for one in series if any(point.value is not None for point in one.points)]
