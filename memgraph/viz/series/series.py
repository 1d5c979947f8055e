"""What was learned over time, as series: each a number per bucket and group, defined so that it can be recomputed by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memgraph.fold.history.lives import History
from memgraph.store import AgentMemoryStore
from memgraph.viz.history import read_history
from memgraph.viz.periods import bounds, checked_bucket
from memgraph.viz.series.measures import LESSON, MEASURES, Cell, Scope
from memgraph.viz.shown import shown_ids

_LEADING = "returning_failures"


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
        ``day``, ``week``, ``month``, ``year`` or ``decade``; None without points.
    undated : bool
        Whether its days stand for the numbers of trials that nobody dated: trial n is the n-th after 2000-01-01.
    """

    name: str
    title: str
    unit: str
    definition: str
    points: tuple[Point, ...] = ()
    bucket: str | None = None
    undated: bool = False

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
    ids: Collection[str] | None = None,
) -> list[Series]:
    """Return every series, in one fixed order, those without a point too. Costs one pass over the journal.

    Parameters
    ----------
    project_id : str, optional
        Only memories, builds and recalls of this project.
    since, until : str, optional
        Only what happened from then to then, both included; a date as `until` means its last moment. What was before is
        known, though: what was in force then is, and what failed then failed before.
    bucket : {"day", "week", "month", "year", "decade"}, optional
        Default: for each series days up to two months, weeks up to two years, months up to fifty, years up to 500, else decades.
    history : History, optional
        What was read from this store already.
    ids : collection of str, optional
        Only these memories, and to `until` even if nothing was done with them any more; builds and recalls count all the same.

    Raises
    ------
    InvalidInputError
        A time is none, `since` is after `until`, there is no such bucket, or there are more than 10,000 of it.
    """
    first, last = bounds(since, until)
    wanted = checked_bucket(bucket)
    history = history or read_history(store)
    scope = Scope(history, project_id, first, last, wanted, store.now(), ids, _told_tags(store, history))
    is_of_trials = wanted in {None, "day"} and scope.is_undated
    if is_of_trials:
        scope = replace(scope, bucket="day")
    found = []
    for measure in MEASURES:
        cells, used = measure.of(scope)
        points = tuple(_points(cells))
        told = Series(measure.name, measure.title, measure.unit, measure.definition, points, used, is_of_trials)
        found.append(told)
    return found


def _told_tags(store: AgentMemoryStore, history: History) -> dict[str, tuple[str, ...]]:
    """Return the tags of the memories that may be shown, by their ids: those that they came with, and still have today."""
    today = store.reader.today()
    told = {}
    for one in shown_ids(store, include={"archived"}):
        if life := history.lives.get(one):
            told[one] = tuple(tag for tag in life.tags if today is None or tag in today[one].tags)
    return told


def _points(cells: Iterable[Cell]) -> Iterable[Point]:
    for cell in cells:
        value = None if cell.value is None else round(cell.value, 6)
        yield Point(cell.at, cell.group, value, cell.count)


def with_data(series: Sequence[Series]) -> list[Series]:
    """Return the series that have something to show: a value in one point or more."""
    return [one for one in series if any(point.value is not None for point in one.points)]


def has_news(series: Series) -> bool:
    """Tell whether a series says more than its first point: what is drawn beside others should.

    A share that is always the same does not; nor does one that is none at first and all from then on, as that of failures seen before
    is where all tasks are known from the first trial on. Whether known failures come back is always said.
    """
    if series.unit != "share" or series.name == _LEADING:
        return True
    lines: dict[str, list[float]] = {}
    for point in series.points:
        if point.value is not None:
            lines.setdefault(point.group, []).append(point.value)
    if any(len(set(values)) > 1 and not _is_bound(values) for values in lines.values()):
        return True
    return not any(_is_bound(values) for values in lines.values()) and all(
        len(values) <= 2 for values in lines.values()
    )


def _is_bound(values: Sequence[float]) -> bool:
    """Tell whether a share could not but be so: none at first, and all from then on."""
    return values[0] == 0.0 and set(values[1:]) <= {1.0}


def told_first(series: Sequence[Series]) -> list[Series]:
    """Return series in the order in which they are shown together: whether known failures come back first, for that is learning."""
    return sorted(series, key=lambda one: one.name != _LEADING)


GROUP_WORDS = {
    "episodic": "episodes",
    "generalisation": "generalisations",
    "procedural": "procedures",
    "fact": "facts",
    LESSON: "with a lesson known",
}
"""What the groups of series are called in pictures."""
