"""The texts of the page: its title, the opening sentences, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.fold.history import is_undated, trial_of
from memgraph.model.memory import StoredMemory
from memgraph.text.calendar import in_words
from memgraph.text.safe import visible
from memgraph.text.sentences import enumerated
from memgraph.viz.page.data import PageData
from memgraph.viz.page.limits import FULL_TEXTS, SHORT_CHARS
from memgraph.viz.series import Point, Series

_FEWEST = 5
"""Smallest sample of which a share is reported."""
_MOST_SINGLE = 8
"""With more buckets than this, the halves of their span are compared, because single ones differ by chance."""
_SAME_POINTS = 2
"""Percentages that differ by at most this are reported as equal."""
_MOST_NAMED = 3


def title_of(project_id: str | None, memories: Sequence[StoredMemory]) -> str:
    """Return what the page is called: after the project, or all projects that are on it."""
    projects = sorted({visible(memory.project_id) for memory in memories if memory.project_id})
    if project_id is not None:
        projects = [visible(project_id)]
    if not projects:
        return "What was learned"
    if len(projects) > 3:
        return f"What was learned in {len(projects)} projects"
    return f"What was learned in {enumerated(projects)}"


def span_of(data: PageData) -> str:
    """Return the period of the memories and builds in words; undated trials are numbered instead of dated."""
    if not data.first:
        return ""
    first, last = data.first[:10], data.happened[:10]
    if data.document["undated"]:
        numbers = [trial_of(day) for day in (first, last)]
        return f"trial {numbers[0]}" if numbers[0] == numbers[1] else f"trials {numbers[0]} to {numbers[1]}"
    return in_words(first) if first == last else f"{in_words(first)} to {in_words(last)}"


def sentence_of(data: PageData) -> str:
    """Return what was learned, of what, in one to four sentences."""
    if not data.memories:
        return f"There are no memories{' that may be shown' if data.hidden else ''}{_choice_of(data)}."
    kept = sum(data.kept.values())
    on_page = "" if kept == len(data.memories) else f" ({len(data.memories):,} of them are on this page)"
    span = span_of(data)
    when = f"over {span}" if data.document["undated"] else (f"from {span}" if " to " in span else f"on {span}")
    units = (("build", data.builds), ("commit", data.commits))
    done = " and ".join(_count(many, unit) for unit, many in units if many)
    where = f"{done} {when}" if done else f"{when[0].upper()}{when[1:]}"
    made = [
        _count(many, one, several)
        for kind, one, several in (
            ("generalisation", "generalisation", "generalisations"),
            ("procedural", "procedure", "procedures"),
            ("fact", "fact", "facts"),
        )
        if (many := data.kept[kind])
    ]
    among = f", including {enumerated(made)}" if made else ""
    said = [f"{where}: {_count(kept, 'memory', 'memories')}{on_page}{among}."]
    if commits := sum(memory.source == "git" and memory.outcome == "positive" for memory in data.memories):
        are = _count(commits, "is a commit", "are commits")
        said.append(f"{are}, shown without an outcome: a commit says only that it was made.")
    if len({memory.project_id for memory in data.memories}) > 1:
        return " ".join(said)  # a share over different kinds of work is meaningless
    by_name = {one.name: one for one in data.series}
    said += _went(by_name.get("success_rate"), "builds", "Attempts that succeeded")
    said += _came_back(by_name.get("returning_failures"), data)
    return " ".join(said)


def _went(series: Series | None, group: str, what: str) -> list[str]:
    """Describe how a share changed from its first part to its last; empty if it was always 0 % or always 100 %."""
    parts = parts_of(series, group)
    if series is None or parts is None:
        return []
    (first, of_first), (last, of_last), is_halved = parts
    before, after = round(100 * first), round(100 * last)
    if abs(after - before) <= _SAME_POINTS:
        return [f"{what} stayed at {_percent(last)}."] if 0 < before < 100 or 0 < after < 100 else []
    known = _known(series, group)
    halves = [f"before {_halfway(series)}", "from then on"]
    ends = halves if is_halved else [_in_bucket(series, known[at]) for at in (0, -1)]
    verb = "rose" if last > first else "fell"
    return [
        f"{what} {verb} from {_percent(first)} (of {of_first:,}) {ends[0]} to {_percent(last)} (of {of_last:,}) {ends[1]}."
    ]


def _came_back(series: Series | None, data: PageData) -> list[str]:
    """Describe how many known failures came back in the first and last period; with many, in the second half of their span."""
    known = _known(series, "came back") if series else []
    if series is None or not known:
        return []
    what, verb = ("tasks known to fail", "failed") if data.is_of_tasks else ("failures known before", "came")
    if len(known) > _MOST_SINGLE:
        half, failing = _middle(series.points), data.document["failing"] or {"periods": [], "failures": []}
        since = dict(failing["periods"]).get(half.at)
        if since is None:
            return []
        again = sum(times[0] < since <= times[-1] for _, _, times, *_ in failing["failures"])
        known_to = what.removesuffix(" before")
        said = (
            f"Of the {half.count:,} {known_to} before {_halfway(series)}, {again or 'none'} {verb} again from then on."
        )
        return [said] if half.count >= _FEWEST else []
    if min(known[0].count, known[-1].count) < _FEWEST:
        return []
    ends = [known[0], known[-1]]
    (many, before), (rest, after) = ((round((end.value or 0.0) * end.count), end.count) for end in ends)
    first, last = (_in_bucket(series, end) for end in ends)
    if len(known) == 1:
        return [f"Of the {before:,} {what}, {many:,} {verb} again {first}."]
    if before == after:
        return [f"Of the {before:,} {what}, {many:,} {verb} again {first} and {rest:,} {last}."]
    return [f"Of the {before:,} {what}, {many:,} {verb} again {first}; of {after:,}, {rest:,} {last}."]


def _in_bucket(series: Series, point: Point) -> str:
    """Return a point's period in words: in trial 4, in the week from 5 January 2026, in January 2026."""
    if series.undated:
        return f"in trial {trial_of(point.at)}"
    if series.bucket == "day":
        return f"on {in_words(point.at)}"
    if series.bucket == "week":
        return f"in the week from {in_words(point.at)}"
    if series.bucket == "month":
        return f"in {in_words(point.at).partition(' ')[2]}"
    return f"in {point.at[:4]}" if series.bucket == "year" else f"in the ten years from {point.at[:4]}"


def _middle(points: Sequence[Point]) -> Point:
    """Return the point with which the second half of a span begins."""
    return points[len(points) // 2]


def _halfway(series: Series) -> str:
    at = _middle(series.points).at
    return f"trial {trial_of(at)}" if series.undated else in_words(at)


def _known(series: Series, group: str) -> list[Point]:
    """Return the points of a group that have a value."""
    return [point for point in series.points if point.group == group and point.value is not None]


def parts_of(series: Series | None, group: str) -> tuple[tuple[float, int], tuple[float, int], bool] | None:
    """Return a share's first and last value, each with its sample size, and whether they are those of the halves of its span.

    With few points the first and the last are compared. None if there is only one, or if a part's sample is too small.
    """
    points = _known(series, group) if series else []
    if series is None or len(points) < 2:
        return None
    half = _middle(series.points).at
    is_halved = len(points) > _MOST_SINGLE
    before = [point for point in points if point.at < half] if is_halved else points[:1]
    first, last = _share(before), _share(points[len(before) :] if is_halved else points[-1:])
    return None if first is None or last is None else (first, last, is_halved)


def _share(points: Sequence[Point]) -> tuple[float, int] | None:
    of = sum(point.count for point in points)
    return (sum((point.value or 0.0) * point.count for point in points) / of, of) if of >= _FEWEST else None


def left_out_of(data: PageData) -> list[str]:
    """Return one sentence for each kind of content that is not on the page."""
    said = []
    if data.others:
        names = [visible(name) for name in data.others]
        rest_of = [f"{len(names) - _MOST_NAMED:,} more"] if len(names) > _MOST_NAMED else []
        said.append(
            f"This page shows {visible(data.project_id or '')}, the project with the most memories: undated trials and dated memories have "
            f"no common time axis. Choose another project with --project: {enumerated([*names[:_MOST_NAMED], *rest_of])}."
        )
    if rest := sum(data.kept.values()) - len(data.memories):
        said.append(
            f"{_count(rest, 'memory is', 'memories are')} not on this page, which shows the most relevant ones and those they were derived from."
        )
    if data.hidden:
        hidden = _count(
            data.hidden, "suppressed, sensitive or private memory is", "suppressed, sensitive or private memories are"
        )
        said.append(f"{hidden} left out.")
    if data.memories and not data.document["undated"] and is_undated(data.first):
        said.append(
            "Undated trials are shown at the beginning, as days from January 2000 on; use --project or --since to see one history alone."
        )
    if data.undrawn_recalls:
        said.append(
            f"{_count(data.undrawn_recalls, 'recall is', 'recalls are')} not in the charts: recalls are dated, and these trials are not."
        )
    if data.shortened:
        said.append(
            f"Only the {FULL_TEXTS:,} most relevant memories have their full text; of the others, this page has the first {SHORT_CHARS} characters "
            f"({data.shortened:,} shortened)."
        )
    return said


def counted_of(data: PageData) -> str:
    """Return a sentence on what the charts count: all selected memories, including those not on the page."""
    kept = sum(data.kept.values())
    which = "the one memory" if kept == 1 else f"the {kept:,} memories"
    on_page = len(data.memories)
    besides = "" if kept == on_page else f"; map, slider and list show only the {on_page:,} on this page"
    return f"The charts count {which} selected, and the builds and recalls of the same period{besides}."


def _choice_of(data: PageData) -> str:
    """Return the selection in words."""
    chosen = f" of {visible(data.project_id)}" if data.project_id else ""
    chosen += f" since {visible(data.since)}" if data.since else ""
    return chosen + (f" until {visible(data.until)}" if data.until else "")


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _percent(share: float) -> str:
    return f"{round(100 * share)}\u00a0%"
