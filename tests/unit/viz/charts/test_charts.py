"""Charts of series: the same bytes each time, whatever they are called, however little they have."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from defusedxml import ElementTree

from memgraph.errors import MissingExtraError
from memgraph.viz import charts as module
from memgraph.viz.charts import apart, charts, ticks_between
from memgraph.viz.series import Point, Series

PNG = b"\x89PNG\r\n\x1a\n"
ODD = "$x^$ <b> \u202eمرحبا 🚀 \x07 and much more that has no room"


def line(*values: float | None, group: str = "g", start: date = date(2026, 2, 2), unit: str = "share") -> Series:
    days = [(start + timedelta(days=number)).isoformat() for number in range(len(values))]
    points = tuple(Point(day, group, value, 3) for day, value in zip(days, values, strict=True))
    return Series("a_line", "A line", unit, "What it is.", points, "day")


def test_the_same_series_are_the_same_bytes_whatever_the_user_has_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = line(0.1, None, 0.3)
    first = charts([one], about="A project")
    import matplotlib as mpl

    (tmp_path / "matplotlibrc").write_text("font.size: 30\nsavefig.dpi: 20\n")
    monkeypatch.setattr(mpl, "matplotlib_fname", lambda: str(tmp_path / "matplotlibrc"))
    monkeypatch.setitem(mpl.rcParams, "font.size", 30.0)
    monkeypatch.setitem(mpl.rcParams, "text.usetex", True)
    assert charts([one], about="A project") == first
    assert mpl.rcParams["font.size"] == 30.0
    assert set(first) == {"overview.png", "overview.svg", "a_line.png", "a_line.svg"}
    assert all(first[name].startswith(PNG) for name in first if name.endswith("png"))
    root: Element = ElementTree.fromstring(first["a_line.svg"])
    assert root.tag.endswith("svg")
    assert b"<dc:date>" not in first["a_line.svg"]


def test_odd_names_single_points_and_zeros_are_drawn() -> None:
    rows = Series("tags", "Tags", "memories", "What.", (Point("2026-02-02", ODD, 0, 0),), "day")
    bars = Series("churn", "Churn", "memories", "What.", (Point("2026-02-02", ODD, 2, 2),), "month")
    drawn = charts([rows, bars], about=ODD)
    assert len(drawn) == 6
    for name in drawn:
        if name.endswith("svg"):
            ElementTree.fromstring(drawn[name])


def test_what_has_no_data_is_not_drawn() -> None:
    assert charts([line(None, None), line()], about="") == {}


def test_names_at_the_ends_of_lines_standapart() -> None:
    at = apart([0.5, 0.5, 0.98, 1.0], [0.1] * 4)
    assert all(above - below >= 0.1 - 1e-9 for below, above in pairwise(at))
    assert (min(at) >= 0.0, max(at) <= 1.0) == (True, True)
    assert apart([0.2, 0.8], [0.1, 0.1]) == [0.2, 0.8]


@pytest.mark.parametrize("days", [0, 1, 20, 99, 101, 800, 5_000, 30_000, 700_000])
def test_a_few_days_are_named_however_long_the_span(days: int) -> None:
    first = date(2026, 2, 3) if days < 100_000 else date(20, 2, 3)
    ticks, names = ticks_between(first, first + timedelta(days=days), 5)
    assert 1 <= len(ticks) == len(set(names)) <= 6
    assert all(first <= tick <= first + timedelta(days=days) for tick in ticks)
    assert f"{ticks[0].year}" in names[0]


def test_what_is_said_below_the_title(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(module, "_overview", lambda series, about: said.append(about) or module._figure(1, 1))
    monkeypatch.setattr(module, "_alone", lambda series, about: module._figure(1, 1))
    dated = line(0.1, 0.2, start=date(2000, 1, 1))
    charts([dated], about="One")
    charts([replace(dated, undated=True)], about="One")
    charts([dated], about="One", since="1999-12-31", until="2000-02-01T10:00Z")
    spans = ["2000-01-01 to 2000-01-02", "trials 0 to 1", "1999-12-31 to 2000-02-01"]
    assert said == [f"One · {span}" for span in spans]


def test_the_whole_calendar_is_drawn_at_once() -> None:
    """A thousand bars a group, the first and the last as far apart as can be: and the SVG is XML."""
    days = [f"{max(10 * number, 1):04}-01-01" for number in range(1_000)]
    points = tuple(Point(day, group, float(number % 3), 1) for number, day in enumerate(days) for group in ("a", "b"))
    drawn = charts([Series("churn", "Churn", "memories", "What.", points, "decade")], about="One \x01\ufffe --> two")
    ElementTree.fromstring(drawn["churn.svg"])


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"memgraph-kuzu\[charts\]"):
        charts([line(0.5)], about="")
