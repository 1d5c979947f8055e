"""Time series of what was learned: a number per bucket and group, defined so that it can be recomputed by hand.

`MEASURES` has what each series counts, of the `Scope` that was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from memgraph.fold.history import AFTER_ALL, KINDS, History, Life, Replay, State, is_attempt, is_undated
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.viz.failures import SUCCESS, Failure, Lessons, Which, failures
from memgraph.viz.periods import Bucket, after, bounds, bucket_between, check_span, checked_bucket, start_of, starts
from memgraph.viz.reading import read_history, shown_ids

MOST_TAGS = 8
CHURN = ("superseded", "contradicted", "suppressed", "archived", "invalidated", "deleted")
SEEN, LESSON = "seen before", "seen before, lesson known"
GROUP_WORDS = {
    "episodic": "episodes",
    "generalisation": "generalisations",
    "procedural": "procedures",
    "fact": "facts",
    LESSON: "with a lesson known",
}
"""Display names of the series' groups."""
_BUCKETS = " Per day, week (from Monday), month, year or decade, UTC; `at` is its first day."
_LEADING = "returning_failures"


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a series, of a bucket (named by its first day) and a group.

    The value of a share without samples is None. The count is the sample size of a share or a mean; otherwise the value.
    """

    at: str
    group: str
    value: float | None
    count: int


@dataclass(frozen=True)
class Series:
    """One quantity over time.

    The unit is ``share`` (0 to 1), or what is counted. Points are in order of time, then of groups; every bucket from the first to the
    last has a point for every group. Where the journal has no data for it, there are no points, and the bucket is None. `undated`: its
    days stand for undated trials, trial n for day n after 2000-01-01.
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
    """Return every series in a fixed order, including those without points, from one pass over the journal, or from its `history`.

    Only memories, builds and recalls of the project count, and of the memories only `ids` (up to `until`, even if nothing happened to them
    by then). What was before the period still counts as history: memories stay in force, and failures have occurred before. The default
    bucket is that of `bucket_between`, for each series.
    """
    first, last = bounds(since, until)
    wanted = checked_bucket(bucket)
    history = history or read_history(store, progress=progress)
    scope = Scope(history, project_id, first, last, wanted, store.now(), ids, _visible_tags(store, history))
    is_of_trials = wanted in {None, "day"} and scope.is_undated
    if is_of_trials:
        scope = replace(scope, bucket="day")
    found = []
    for name, title, unit, definition, measured in MEASURES:
        points, used = measured(scope)
        rounded = (replace(one, value=None if one.value is None else round(one.value, 6)) for one in points)
        found.append(Series(name, title, unit, definition + _BUCKETS, tuple(rounded), used, is_of_trials))
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


class Sample(NamedTuple):
    """Something that happened, and whether it counts as a hit in a share."""

    at: str
    group: str
    is_hit: bool = True


Table = tuple[list[Point], Bucket | None]
_NOTHING: Table = ([], None)


class Measure(NamedTuple):
    """A series' name and title, unit and definition, and what computes it."""

    name: str
    title: str
    unit: str
    definition: str
    of: Callable[[Scope], Table]


@dataclass(frozen=True)
class Scope:
    """What is counted: one project or (None) all, from `first` to `last`; only the memories `ids`, unless that is None."""

    history: History
    project_id: str | None
    first: str
    last: str
    bucket: Bucket | None
    now: str
    ids: Collection[str] | None = None
    visible_tags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The tags of each memory that may be shown: those it was added with and still has."""

    @cached_property
    def lives(self) -> dict[str, Life]:
        """The counted memories, by id."""
        lives, ids = self.history.lives, self.ids
        chosen = lives if ids is None else [one for one in lives if one in ids]
        return {one: lives[one] for one in chosen if self.counts(lives[one].project_id)}

    @cached_property
    def is_undated(self) -> bool:
        """Whether everything counted belongs to undated trials."""
        return bool(self.lives) and all(is_undated(life.at) for life in self.lives.values() if self.covers(life.at))

    def counts(self, project_id: str | None) -> bool:
        """Return whether a project is counted."""
        return self.project_id is None or project_id == self.project_id

    def covers(self, at: str) -> bool:
        """Return whether a time is in the period."""
        return self.first <= at <= self.last

    def grid(self, times: Sequence[str]) -> tuple[list[str], Bucket | None]:
        """Return the buckets from the earliest to the latest of these times."""
        if not times:
            return [], None
        first, last = min(times), max(times)
        bucket = self.bucket or bucket_between(first, last)
        check_span(first, last, bucket)
        return list(starts(first, last, bucket)), bucket

    def table(self, samples: Iterable[Sample], groups: Sequence[str] = (), *, is_share: bool = False) -> Table:
        """Return the number of samples, or the share of hits, in each bucket and group that has a sample, the groups in this order."""
        within = [sample for sample in samples if self.covers(sample.at)]
        grid, bucket = self.grid([sample.at for sample in within])
        if bucket is None:
            return _NOTHING
        all_, hits = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for at, group, is_hit in within:
            place = (start_of(at, bucket), group)
            all_[place] += 1
            hits[place] += is_hit
        there = {sample.group for sample in within}
        order = [group for group in groups if group in there] or sorted(there)
        points = []
        for place in ((start, group) for start in grid for group in order):
            value = hits[place] / all_[place] if is_share and all_[place] else None if is_share else hits[place]
            points.append(Point(*place, value, all_[place]))
        return points, bucket

    @cached_property
    def states(self) -> tuple[list[tuple[str, State]], Bucket | None, set[str]]:
        """The state at the end of each bucket, and the ids of the memories in force at the end."""
        done = (change.at for change in self.history.changes if change.id in self.lives and change.at <= self.now)
        times = [*(life.at for life in self.lives.values()), *done]
        until = self.last if self.ids is not None else min(self.last, max(times, default=self.last))
        since = max(self.first, min(times, default=self.first))
        grid, bucket = self.grid([since, until] if times and since <= until else [])
        if bucket is None:
            return [], None, set()
        replay = Replay(self.history, self.lives.__contains__)
        ends = [min(f"{after(start, bucket)}T00:00:00.000Z", until + AFTER_ALL) for start in grid]
        ends[-1] = until + AFTER_ALL
        return list(zip(grid, replay.states(ends), strict=True)), bucket, replay.live

    @cached_property
    def failures(self) -> list[Failure]:
        """Every failure in order of time, once for each build in which it occurred."""
        return failures(self.history, self.lives, self.counts)

    @cached_property
    def lessons(self) -> Lessons:
        """Which lessons were known of each failure, and when."""
        return Lessons(self.history, self.lives)


def _live(scope: Scope) -> Table:
    states, bucket, _ = scope.states
    there = [kind for kind in KINDS if any(state.live.get(kind) for _, state in states)]
    counts = ((start, kind, state.live.get(kind, 0)) for start, state in states for kind in there)
    return [Point(start, kind, many, many) for start, kind, many in counts], bucket if there else None


def _added(scope: Scope) -> Table:
    return scope.table((Sample(life.at, life.kind) for life in scope.lives.values()), KINDS)


def _repeated(scope: Scope) -> Table:
    known: set[Which] = set()
    samples = []
    for at, _, which in scope.failures:
        is_known = which in known
        samples.append(Sample(at, SEEN, is_known))
        samples.append(Sample(at, LESSON, is_known and scope.lessons.knew(which, at)))
        known.add(which)
    return scope.table(samples, (SEEN, LESSON), is_share=True)


def _returning(scope: Scope) -> Table:
    grid, bucket = scope.grid([failure[0] for failure in scope.failures if scope.covers(failure[0])])
    if bucket is None:
        return _NOTHING
    known: set[Which] = set()
    came = {start: set[Which]() for start in grid}
    for at, _, which in scope.failures:
        if scope.covers(at):
            came[start_of(at, bucket)].add(which)
        elif at < scope.first:
            known.add(which)
    points = []
    for start in grid:
        again = len(came[start] & known)
        points.append(Point(start, "came back", again / len(known) if known else None, len(known)))
        known |= came[start]
    return points, bucket


def _succeeded(scope: Scope) -> Table:
    builds = [
        Sample(build.at, "builds", build.outcome == SUCCESS)
        for (project_id, build_id), build in scope.history.builds.items()
        if scope.counts(project_id) and is_attempt(build_id)
    ]
    episodes = [
        Sample(life.at, "episodes", life.outcome == "positive")
        for life in scope.lives.values()
        if life.type == "episodic" and not life.builds and life.outcome != "unknown"
    ]
    return scope.table([*builds, *episodes], ("builds", "episodes"), is_share=True)


def _served(scope: Scope) -> Table:
    recalls = (recall for recall in scope.history.recalls.values() if scope.counts(recall.project_id))
    given = (Sample(recall.at, "by a generalisation", recall.is_served) for recall in recalls if recall.returned)
    return scope.table(given, is_share=True)


def _helped(scope: Scope) -> Table:
    recalls = (recall for recall in scope.history.recalls.values() if scope.counts(recall.project_id))
    judged = (recall for recall in recalls if recall.outcome not in {None, "unknown"})
    return scope.table((Sample(one.at, "helped", one.outcome == "positive") for one in judged), is_share=True)


def _compressed(scope: Scope) -> Table:
    states, bucket, _ = scope.states
    if not any(state.covered for _, state in states):
        return _NOTHING
    points = []
    for start, state in states:
        episodes = state.live.get("episodic", 0)
        points.append(Point(start, "covered", state.covered / episodes if episodes else None, episodes))
    return points, bucket


def _sources(scope: Scope) -> Table:
    states, bucket, _ = scope.states
    if not any(state.derived for _, state in states):
        return _NOTHING
    means = ((start, state, state.sources / state.derived if state.derived else None) for start, state in states)
    return [Point(start, "sources", mean, state.derived) for start, state, mean in means], bucket


def _churn(scope: Scope) -> Table:
    changes = (change for change in scope.history.changes if change.id in scope.lives and change.at <= scope.now)
    return scope.table((Sample(change.at, change.kind) for change in changes if change.kind in CHURN), CHURN)


def _tags(scope: Scope) -> Table:
    within = ((one, life.at) for one, life in scope.lives.items() if scope.covers(life.at))
    tagged = [Sample(at, tag) for one, at in within for tag in scope.visible_tags.get(one, ())]
    counts = Counter(sample.group for sample in tagged)
    most = [tag for tag, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_TAGS]]
    kept = frozenset(most)
    return scope.table((sample for sample in tagged if sample.group in kept), most)


def _survived(scope: Scope) -> Table:
    _, _, live = scope.states
    came = (Sample(life.at, life.kind, one in live) for one, life in scope.lives.items())
    return scope.table(came, KINDS, is_share=True)


MEASURES = (
    Measure(
        "live_memories",
        "Memories in force",
        "memories",
        "Memories, by kind, that were in force at the end of the bucket (of the last one: at the last thing that happened): those "
        "that had come by then and were neither suppressed, archived, invalidated nor deleted, nor superseded by one that is none "
        "of these. A generalisation is a semantic memory that was made of others; one that somebody stated is a fact.",
        _live,
    ),
    Measure(
        "memories_added",
        "Memories added",
        "memories",
        "Memories, by kind (as in `live_memories`), by when what they tell happened; one that was made of others counts when the latest of these happened. "
        "What was merged into a known memory is not counted again.",
        _added,
    ),
    Measure(
        "success_rate",
        "Attempts that succeeded",
        "share",
        "Builds: those whose outcome was success, of all that were consolidated and completed in the bucket (an undated trial n is "
        "day n after 2000-01-01); commits of one sitting are no attempt. Episodes: those told by no build whose outcome is positive, of those whose outcome is positive, "
        "negative or neutral.",
        _succeeded,
    ),
    Measure(
        "repeated_failures",
        "Failures seen before",
        "share",
        "Failures whose like had failed before in the same project, of all failures in the bucket. Where the names of builds tell which "
        "task they were trials at, a failure is a build of them that did not succeed, when it was completed, and its like one at the same "
        "task, whatever was said of it. Else it is an episode with a failure fingerprint, once for each build that told it, and its like "
        "one with the same fingerprint. Lesson known: those of them of which a lesson was known before (a memory tagged `lesson` that "
        "tells of the task or the fingerprint, or a semantic or procedural one that does, or was made of one that does by then; as long "
        "as it was neither suppressed nor deleted), of all failures in the bucket.",
        _repeated,
    ),
    Measure(
        "returning_failures",
        "Known failures that came back",
        "share",
        "Tasks and failure fingerprints (of one project each) that failed before the bucket began and again in it, of all that failed "
        "before it began. A failure counts as in `repeated_failures`.",
        _returning,
    ),
    Measure(
        "recalls_served",
        "Recalls served by generalisations",
        "share",
        "Recalls that returned a memory which had been made of others, of all recalls that returned anything.",
        _served,
    ),
    Measure(
        "recalls_helped",
        "Recalls that helped",
        "share",
        "Recalls whose last recorded outcome is positive, of those where it is positive, negative or neutral; by when they recalled.",
        _helped,
    ),
    Measure(
        "compression_ratio",
        "Episodes behind a generalisation",
        "share",
        "Episodes in force of which a memory in force was made, of all episodes in force, at the end of the bucket. In force: as in "
        "`live_memories`.",
        _compressed,
    ),
    Measure(
        "sources_per_generalisation",
        "Memories behind each generalisation",
        "memories per generalisation",
        "Memories, not deleted, that those in force at the end of the bucket were made of (one counts once for each), divided by the "
        "number of memories in force that were made of others.",
        _sources,
    ),
    Measure(
        "churn",
        "What left or was contradicted",
        "memories",
        "How often a memory was superseded, suppressed, archived, deleted, or ceased to be valid, and how many contradictions were "
        "found (a pair counts once). An end counts on the day that it states, a pair found by the store or by a commit when its later "
        "memory came, anything else when it was done.",
        _churn,
    ),
    Measure(
        "tags",
        "Tags of new memories",
        "memories",
        f"Memories added (as in `memories_added`) with each tag that they were added with and still have, of the {MOST_TAGS} tags that "
        "most have, from `since` to `until`. Only memories that are public and by now neither suppressed nor deleted, nor made by sleep "
        "of any that are not, for a tag is a name.",
        _tags,
    ),
    Measure(
        "survival",
        "New memories still in force",
        "share",
        "Of the memories added in the bucket (as in `memories_added`), by kind, those in force (as in `live_memories`) at the last "
        "thing that happened, or at `until` if that was before.",
        _survived,
    ),
)
"""All series in display order."""
