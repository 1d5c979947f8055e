"""Draws series as PNG and SVG with matplotlib; the same series yield the same bytes.

It uses no matplotlibrc, fonts or display of the user. Lines are labelled at their ends and differ in more than colour; the colours
are Okabe and Ito's, which are distinguishable with colour blindness.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from importlib import import_module
from io import BytesIO
from typing import Any, TypeAlias

from memgraph.errors import MissingExtraError
from memgraph.fold.history import trial_of
from memgraph.text.cutting import cut
from memgraph.text.safe import one_line, xml_text
from memgraph.viz.periods import DAYS_OF, bounds
from memgraph.viz.series import CHURN, GROUP_WORDS, Point, Series, display_order, has_news, with_data

_SHOWN_BY_DAY = 100
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000, 36_000)
Axes: TypeAlias = Any
Figure: TypeAlias = Any
"""matplotlib types, which change between its releases."""
OVERVIEW = "overview"
_BLUE, _ORANGE, _GREEN, _VERMILION, _SKY, _PURPLE, _BLACK, _YELLOW = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#F0E442",
)  # fmt: skip
_COLOURS = (_BLUE, _VERMILION, _GREEN, _ORANGE, _SKY, _PURPLE, _BLACK, _YELLOW)
_OF_KIND = {"episodic": _BLUE, "generalisation": _ORANGE, "procedural": _GREEN, "fact": _PURPLE}
_OF_GROUP = {**_OF_KIND, **dict(zip(CHURN, _COLOURS, strict=False))}
_MARKS = "os^Dv<>P"
_HATCHES = ("", "////", "....", "xxxx", "||||", "----")
_GREY, _PALE = "#5F6368", "#E3E5E8"
_STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10.0,
    "text.color": "#202124",
    "text.parse_math": False,  # a tag with two dollar signs is not a formula
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": _PALE,
    "xtick.color": _GREY,
    "ytick.color": _GREY,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "svg.hashsalt": "memgraph",
    "svg.fonttype": "path",
}
_DPI = 144
_SIZE = (9.0, 5.0)
_PLACE = (0.1, 0.27, 0.69, 0.56)
_CAPTION_CHARS = 138
_LABEL_CHARS = 17
_ROW_CHARS = 20
_MOST_LABELLED = 8
_MANY, _MOST_HATCHED = 40, 400
_MOST_TRIALS = 17
"""Up to this many trials, each has a tick label."""
_MOST_TICKS, _MOST_TICKS_SMALL = 8, 5
_STACKED = frozenset({"memories_added", "churn"})
_ONE_BY_ONE = frozenset({"tags"})


def charts(
    series: Sequence[Series], *, about: str, since: str | None = None, until: str | None = None
) -> dict[str, bytes]:
    """Draw each series that has data, and an overview of all, each as PNG and SVG; return the files by name, none without data.

    Under each title stand a few words (`about`) and the requested period.
    """
    shown = with_data(series)
    if not shown:
        return {}
    about = f"{_plain(about)} · {_span(shown, since, until)}"
    with _style():
        figures = {OVERVIEW: _overview(shown, about), **{one.name: _alone(one, about) for one in shown}}
        return {name: content for stem, figure in figures.items() for name, content in _files(stem, figure)}


@contextmanager
def _style() -> Iterator[None]:
    mpl = _matplotlib("")
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")  # drawn as a box
        yield


def _matplotlib(part: str) -> Any:
    try:
        return import_module(f"matplotlib{part}")
    except ImportError:
        raise MissingExtraError("charts", package="matplotlib", extra="charts") from None


def _files(stem: str, figure: Figure) -> Iterator[tuple[str, bytes]]:
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        stream = BytesIO()
        figure.savefig(stream, format=kind, dpi=_DPI, metadata=metadata)
        yield f"{stem}.{kind}", stream.getvalue()


def _figure(width: float, height: float) -> Figure:
    figure = _matplotlib(".figure").Figure(figsize=(width, height), facecolor="white")
    _matplotlib(".backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def _alone(series: Series, about: str) -> Figure:
    """Draw one series with its definition below."""
    figure = _figure(*_SIZE)
    figure.text(0.03, 0.945, series.title, fontsize=15, fontweight="bold", va="center")
    figure.text(0.03, 0.885, about, fontsize=10, color=_GREY, va="center")
    caption = textwrap.fill(series.definition.replace("`", ""), _CAPTION_CHARS)
    figure.text(0.03, 0.155, caption, fontsize=7.6, color=_GREY, va="top", linespacing=1.45)
    _draw(series, figure, _PLACE)
    return figure


def _overview(all_: Sequence[Series], about: str) -> Figure:
    """Draw the series that show a change side by side, and name the others below."""
    series = display_order([one for one in all_ if has_news(one)])
    rows = (len(series) + 1) // 2
    height = 3.0 * rows + 1.4
    figure = _figure(14.0, height)
    figure.text(0.03, 1 - 0.42 / height, "What was learned over time", fontsize=18, fontweight="bold", va="center")
    figure.text(0.03, 1 - 0.78 / height, about, fontsize=11, color=_GREY, va="center")
    for number, one in enumerate(series):
        row, column = divmod(number, 2)
        left, top = 0.065 + 0.5 * column, 1 - (1.0 + 3.0 * row) / height
        figure.text(left - 0.035, top - 0.18 / height, one.title, fontsize=12, fontweight="bold", va="center")
        _draw(one, figure, (left, top - 2.55 / height, 0.33, 2.1 / height), is_small=True)
    if still := [one.title.lower() for one in all_ if one not in series]:
        said = f"Not drawn, because it shows no change (constant, or only from none to all): {'; '.join(still)}."
        figure.text(0.03, 0.2 / height, said, fontsize=9, color=_GREY, va="center")
    return figure


def _draw(series: Series, figure: Figure, place: tuple[float, float, float, float], *, is_small: bool = False) -> None:
    groups = list(dict.fromkeys(point.group for point in series.points))
    if series.name in _ONE_BY_ONE:
        _rows(series, groups, figure, place)
        return
    axes = figure.add_axes(place)
    draw: Callable[[Series, list[str], Axes], list[_End]] = _bars if series.name in _STACKED else _lines
    ends = draw(series, groups, axes)
    _scale(series, axes)
    _dates(series, axes, is_small=is_small)
    _name(axes, ends, is_small=is_small)
    if len(groups) == 1 and len(series.points) <= _MOST_LABELLED and not is_small:
        _values(series, axes)


def _span(series: Sequence[Series], since: str | None, until: str | None) -> str:
    """Return the period in words: as requested, otherwise from the first bucket to the last."""
    starts = [point.at for one in series for point in one.points]
    first, last = min(starts), max(starts)
    if all(one.undated for one in series):
        return f"trials {trial_of(first)} to {trial_of(last)}"
    asked_first, asked_last = (time[: len(first)] for time in bounds(since, until))
    return f"{asked_first if since else first} to {asked_last if until else last}"


_End = tuple[float, str, str]
"""The height at which a line or a bar ends, its name and its colour."""


def _lines(series: Series, groups: list[str], axes: Axes) -> list[_End]:
    """Draw lines, later ones dashed over earlier ones, so that coinciding lines are both visible."""
    ends: list[_End] = []
    for number, group in enumerate(groups):
        points = _of(series, group)
        values = [float("nan") if point.value is None else point.value for point in points]
        colour, mark = _colour(group, number), _MARKS[number % len(_MARKS)]
        axes.plot(
            [_day(point) for point in points],
            values,
            color=colour,
            marker=mark,
            markevery=_marked(points),
            markersize=6 - 1.5 * min(number, 2),
            linewidth=2.0 if len(points) <= _MANY else 1.5,
            linestyle="-" if number == 0 else (0, (3, 3)) if number == 1 else (0, (1, 3)),
            clip_on=False,
            zorder=10 + number,
        )
        last = next((point.value for point in reversed(points) if point.value is not None), 0.0)
        ends.append((float(last), group, colour))
    return ends


def _marked(points: Sequence[Point]) -> list[int]:
    """Return the points that get a marker: all if they are few, otherwise only isolated ones."""
    said = [point.value is not None for point in points]
    if len(points) <= _MANY:
        return [place for place, is_said in enumerate(said) if is_said]
    around = zip([False, *said[:-1]], said, [*said[1:], False], strict=True)
    return [place for place, (before, is_said, behind) in enumerate(around) if is_said and not (before or behind)]


def _bars(series: Series, groups: list[str], axes: Axes) -> list[_End]:
    """Draw stacked bars with a legend in stacking order; bars have no labels."""
    days = [_day(point) for point in _of(series, groups[0])]
    below = [0.0] * len(days)
    for number, group in enumerate(groups):
        values = [float(point.value or 0) for point in _of(series, group)]
        _bar(
            axes,
            days,
            values,
            width=0.8 * _width(series),
            bottom=below,
            facecolor=_colour(group, number),
            edgecolor="white",
            linewidth=0.0 if len(days) > _MANY else 0.8,
            hatch=_HATCHES[number % len(_HATCHES)] if len(days) <= _MOST_HATCHED else "",
            label=_shortened(group),
        )
        below = [low + value for low, value in zip(below, values, strict=True)]
    handles, labels = axes.get_legend_handles_labels()
    where = {"loc": "center left", "bbox_to_anchor": (1.005, 0.5)}
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=9, handlelength=1.4, **where)
    return []


def _bar(
    axes: Axes,
    days: Sequence[date],
    values: Sequence[float],
    *,
    width: float,
    bottom: Sequence[float] | None = None,
    **style: Any,
) -> None:
    """Draw bars as one compound shape: thousands of single bars take minutes."""
    numbers = _matplotlib(".dates").date2num(days)
    corners = [
        ((x - width / 2, low), (x - width / 2, low + value), (x + width / 2, low + value), (x + width / 2, low))
        for x, value, low in zip(numbers.tolist(), values, bottom or [0.0] * len(values), strict=True)
        if value
    ]
    axes.add_collection(_matplotlib(".collections").PolyCollection(corners, **style))


def _rows(series: Series, groups: list[str], figure: Figure, place: tuple[float, float, float, float]) -> None:
    """Draw a row of bars for each group on its own scale, with its name and its maximum beside it."""
    left, bottom, width, height = place
    for number, group in enumerate(groups):
        low = bottom + height * (len(groups) - 1 - number) / len(groups)
        axes = figure.add_axes((left + 0.24 * width, low, 0.8 * width, 0.8 * height / len(groups)))
        points = _of(series, group)
        values = [float(point.value or 0) for point in points]
        _bar(axes, [_day(point) for point in points], values, width=0.85 * _width(series), color=_BLUE)
        axes.set_ylim(0, max(*values, 1.0))
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        _dates(series, axes, is_small=True)
        axes.tick_params(labelbottom=number == len(groups) - 1)
        axes.text(
            -0.02, 0.3, _shortened(group, _ROW_CHARS), transform=axes.transAxes, ha="right", va="center", fontsize=9
        )
        highest = f"up to {max(values):,.0f}"
        axes.text(1.02, 0.3, highest, transform=axes.transAxes, va="center", fontsize=8, color=_GREY)


def _scale(series: Series, axes: Axes) -> None:
    ticker = _matplotlib(".ticker")
    if series.unit == "share":
        axes.set_ylim(0, 1.0)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0, symbol=" %"))
        axes.set_ylabel("share")
        return
    axes.set_ylim(0, 1.06 * max(axes.dataLim.y1, 1.0))
    is_mean = " per " in series.unit
    axes.yaxis.set_major_locator(ticker.MaxNLocator(nbins=5, steps=[1, 2, 5, 10], integer=not is_mean))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}" if is_mean else "{x:,.0f}"))
    axes.set_ylabel(series.unit)


def _dates(series: Series, axes: Axes, *, is_small: bool) -> None:
    number_of = _matplotlib(".dates").date2num
    days = list(dict.fromkeys(_day(point) for point in series.points))
    is_wide = series.name in _STACKED | _ONE_BY_ONE or len(days) == 1
    half = (0.6 if is_wide else 0.4 if len(days) <= _MOST_LABELLED else 0.1) * _width(series)
    axes.set_xlim(number_of(days[0]) - half, number_of(days[-1]) + half)
    if series.undated:
        ticks = days[:: -(-len(days) // (_MOST_TICKS_SMALL if is_small else _MOST_TRIALS))]
        labels = [f"trial {trial_of(day.isoformat())}" for day in ticks]
    else:
        ticks, labels = ticks_between(days[0], days[-1], _MOST_TICKS_SMALL if is_small else _MOST_TICKS)
    axes.set_xticks(number_of(ticks), labels)
    if not is_small:
        axes.set_xlabel("" if series.undated else f"{series.bucket}, UTC")


def _name(axes: Axes, ends: Sequence[_End], *, is_small: bool) -> None:
    """Label each line at its end without overlaps."""
    low, high = axes.get_ylim()
    gap = 0.155 if is_small else 0.105
    texts = [textwrap.wrap(_shortened(name), _LABEL_CHARS) or [""] for _, name, _ in ends]
    heights = [(value - low) / ((high - low) or 1.0) for value, _, _ in ends]
    order = sorted(range(len(ends)), key=lambda place: heights[place])
    at = apart([heights[place] for place in order], [gap * (1 + 0.8 * (len(texts[place]) - 1)) for place in order])
    for place, height in zip(order, at, strict=True):
        axes.text(
            1.03,
            height,
            "\n".join(texts[place]),
            transform=axes.transAxes,
            va="center",
            color=ends[place][2],
            fontsize=9 if is_small else 10,
            fontweight="bold",
            linespacing=1.1,
        )


def _values(series: Series, axes: Axes) -> None:
    """Label the points of a short line with their values, on the side away from its bend."""
    points = [point for point in series.points if point.value is not None]
    values = [float(point.value or 0.0) for point in points]
    for place, (point, value) in enumerate(zip(points, values, strict=True)):
        beside = [values[other] for other in (place - 1, place + 1) if 0 <= other < len(values)]
        is_above = not beside or value >= sum(beside) / len(beside)
        is_share = series.unit == "share"
        axes.annotate(
            f"{100 * value:.0f} % of {point.count:,}" if is_share else f"{value:,.4g}",
            (_matplotlib(".dates").date2num(_day(point)), value),
            xytext=(0, 8 if is_above else -8),
            textcoords="offset points",
            ha="center",
            va="bottom" if is_above else "top",
            fontsize=9,
            color=_GREY,
            bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
            zorder=20,
        )


def _of(series: Series, group: str) -> list[Point]:
    return [point for point in series.points if point.group == group]


def _day(point: Point) -> date:
    return date.fromisoformat(point.at)


def _width(series: Series) -> float:
    """Return the approximate length of a bucket in days."""
    return next((days for bucket, days in DAYS_OF.items() if bucket == series.bucket), 1.0)


def _colour(group: str, number: int) -> str:
    return _OF_GROUP.get(group, _COLOURS[number % len(_COLOURS)])


def _plain(text: str) -> str:
    """Return a text as one line of characters that are valid in SVG."""
    return xml_text(one_line(text))


def _shortened(name: str, most: int = 2 * _LABEL_CHARS) -> str:
    """Return a group's name in words, as one harmless line."""
    return cut(_plain(GROUP_WORDS.get(name, name)), most)


def apart(heights: Sequence[float], sizes: Sequence[float]) -> list[float]:
    """Move ascending heights as little as necessary so that labels of these sizes fit between 0 and 1, if possible."""
    at: list[float] = []
    for height, size in zip(heights, sizes, strict=True):
        lowest = at[-1] + (sizes[len(at) - 1] + size) / 2 if at else 0.0
        at.append(max(height, lowest))
    limit = 1.0
    for place in range(len(at) - 1, -1, -1):
        at[place] = min(at[place], limit)
        limit = at[place] - (sizes[place] + sizes[max(place - 1, 0)]) / 2
    return at


def ticks_between(first: date, last: date, most: int) -> tuple[list[date], list[str]]:
    """Return tick dates between two dates (at most one less than `most`), and their labels: days name the year where it begins."""
    span = (last - first).days
    if span <= _SHOWN_BY_DAY:
        step = next(step for step in (1, 2, 7, 14, 28) if span < step * most)
        ticks = [first + timedelta(days=number) for number in range(0, span + 1, step)]
        begins = {day.year: day for day in reversed(ticks)}.values()
        return ticks, [f"{day:%b} {day.day}" + (f"\n{day.year}" if day in begins else "") for day in ticks]
    months = range(12 * first.year + first.month - (first.day == 1), 12 * last.year + last.month)
    step = next(step for step in _MONTHS if len(months) <= step * most)
    ticks = [date(month // 12, month % 12 + 1, 1) for month in months if month % step == 0]
    return ticks, [f"{day:%Y}" if step % 12 == 0 else f"{day:%b %Y}" for day in ticks]
