"""Time series of what was learned: a number per bucket and group, defined so that it can be recomputed by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from memgraph.fold.history import History
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.viz.history import read_history
from memgraph.viz.periods import bounds, checked_bucket
from memgraph.viz.series.measures import LESSON, MEASURES, Cell, Scope
from memgraph.viz.shown import shown_ids

_LEADING = "returning_failures"


@dataclass(frozen=True)
class Point:
    """One value of a series.

    Attributes
    ----------
    at : str
        First day of the bucket, ISO 8601, UTC.
    group : str
        The line of the series that it belongs to.
    value : float or None
        None for a share without samples.
    count : int
        The sample size of a share or a mean; otherwise the value.
    """

    at: str
    group: str
    value: float | None
    count: int


@dataclass(frozen=True)
class Series:
    """One quantity over time.

    Attributes
    ----------
    unit : str
        ``share`` (0 to 1), or what is counted.
    points : tuple of Point
        In order of time, then of groups; every bucket from the first to the last has a point for every group. Empty if the
        journal has no data for it.
    bucket : str or None
        ``day``, ``week``, ``month``, ``year`` or ``decade``; None without points.
    undated : bool
        Whether its days stand for undated trials: trial n is day n after 2000-01-01.
    """

    name: str
    title: str
    unit: str
    definition: str
    points: tuple[Point, ...] = ()
    bucket: str | None = None
    undated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the series as a JSON-compatible dict."""
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
    progress: Progress | None = None,
) -> list[Series]:
    """Return every series in a fixed order, including those without points. Costs one pass over the journal.

    Parameters
    ----------
    project_id : str, optional
        Only memories, builds and recalls of this project.
    since, until : str, optional
        Period, both ends included; a date as `until` includes the whole day. Earlier events still count as history: memories
        stay in force, and failures have occurred before.
    bucket : {"day", "week", "month", "year", "decade"}, optional
        Default: for each series days up to two months, weeks up to two years, months up to fifty, years up to 500, else decades.
    history : History, optional
        The history, if it was already read from this store.
    ids : collection of str, optional
        Only these memories, up to `until` even if nothing happened to them by then; builds and recalls are still counted.
    progress : callable, optional
        Called with the number of events read and of all events.

    Raises
    ------
    InvalidInputError
        A time is invalid, `since` is after `until`, the bucket is unknown, or there would be more than 10,000 buckets.
    """
    first, last = bounds(since, until)
    wanted = checked_bucket(bucket)
    history = history or read_history(store, progress=progress)
    scope = Scope(history, project_id, first, last, wanted, store.now(), ids, _visible_tags(store, history))
    is_of_trials = wanted in {None, "day"} and scope.is_undated
    if is_of_trials:
        scope = replace(scope, bucket="day")
    found = []
    for measure in MEASURES:
        cells, used = measure.of(scope)
        points = tuple(_points(cells))
        series = Series(measure.name, measure.title, measure.unit, measure.definition, points, used, is_of_trials)
        found.append(series)
    return found


def _visible_tags(store: AgentMemoryStore, history: History) -> dict[str, tuple[str, ...]]:
    """Return the tags, by id, of the memories that may be shown: those they were added with and still have today."""
    today = store.reader.today()
    tags = {}
    for one in shown_ids(store, include={"archived"}):
        if life := history.lives.get(one):
            still = today.get(one) if today is not None else None
            tags[one] = tuple(tag for tag in life.tags if still is None or tag in still.tags)
    return tags


def _points(cells: Iterable[Cell]) -> Iterable[Point]:
    for cell in cells:
        value = None if cell.value is None else round(cell.value, 6)
        yield Point(cell.at, cell.group, value, cell.count)


def with_data(series: Sequence[Series]) -> list[Series]:
    """Return the series that have at least one value."""
    return [one for one in series if any(point.value is not None for point in one.points)]


def has_news(series: Series) -> bool:
    """Return whether a series shows a change, so that it is worth drawing beside others.

    A constant share does not; nor does one that is 0 at first and 1 from then on, such as the share of failures seen before when all
    tasks are known from the first trial on. Whether known failures come back is always shown.
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
    """Return whether a share is 0 at first and 1 from then on, which is trivial."""
    return values[0] == 0.0 and set(values[1:]) <= {1.0}


def display_order(series: Sequence[Series]) -> list[Series]:
    """Return series in display order: returning failures first, because they show whether anything was learned."""
    return sorted(series, key=lambda one: one.name != _LEADING)


GROUP_WORDS = {
    "episodic": "episodes",
    "generalisation": "generalisations",
    "procedural": "procedures",
    "fact": "facts",
    LESSON: "with a lesson known",
}
"""Display names of the series' groups."""
