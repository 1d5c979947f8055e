"""Every series recomputed by hand from what the store of conftest.py was told, day by day."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memgraph import InvalidInputError
from memgraph.testing import FakeClock
from memgraph.viz.periods import bounds, bucket_between
from memgraph.viz.reading import read_history
from memgraph.viz.series import LESSON, SEEN, Series, learning_series, with_data
from tests.unit.viz.conftest import IDS

Store = Any
Values = dict[tuple[int, str], tuple[float | None, int]]

HISTORY = """
2   A (failure f1, tags cache and lesson), B (success, tag cache), S (semantic, tag rule)
3   C (failure f1, tag cache), D (failure f2, tag db); at noon build b1 succeeds, and F (failure f1) is told by it
4   G is made of A and C, and is said to be of the 1st: it came with C, on the 3rd; recalls of A and G (helped), of B (did not), of S, of nothing
5   at noon build b2, which was a success before it grew, fails, and tells F again
9   B is suppressed, A superseded by C, B contradicts D
10  B is unsuppressed, D archived, C invalidated, so that A is in force again
11  E (failure f2) in another project; F and the builds are read in only now
12  C is deleted; H (failure f2, tags db and lesson) draws the first lesson from f2
"""


@pytest.fixture(scope="module")
def by_name(learned: Store) -> dict[str, Series]:
    return {one.name: one for one in learning_series(learned)}


def values(series: Series) -> Values:
    """Return value and count by day and group, of the points that have either."""
    assert series.bucket == "day"
    told = {(int(point.at[-2:]), point.group): (point.value, point.count) for point in series.points}
    return {place: (value, count) for place, (value, count) in told.items() if value is not None and count}


def numbers(series: Series, group: str) -> dict[int, float | None]:
    """Return one group's value of every day."""
    return {int(point.at[-2:]): point.value for point in series.points if point.group == group}


def test_memories_in_force(by_name: dict[str, Series]) -> None:
    live = by_name["live_memories"]
    assert numbers(live, "episodic") == {2: 2, **dict.fromkeys(range(3, 9), 5), 9: 3, 10: 3, 11: 4, 12: 5}
    assert numbers(live, "generalisation") == {2: 0, **dict.fromkeys(range(3, 13), 1)}
    assert numbers(live, "fact") == dict.fromkeys(range(2, 13), 1)  # what somebody stated is no generalisation
    assert [point.at for point in live.points[:3]] == ["2026-02-02"] * 3


def test_they_are_those_that_the_store_lists_and_those_of_its_past(by_name: dict[str, Series], learned: Store) -> None:
    def listed(store: Store) -> int:
        return int((store.reader.listed() & ~store.reader.superseded()).sum())

    last = by_name["live_memories"].points[-3:]
    assert sum(point.count for point in last) == listed(learned)
    with learned.at("2026-02-09") as past:
        then = numbers(by_name["live_memories"], "episodic")[9] or 0
        assert then + 2 == listed(past)
        assert learning_series(past)[0].points == by_name["live_memories"].points[: 3 * 8]


def test_memories_added(by_name: dict[str, Series]) -> None:
    added = {(2, "episodic"): 2, (3, "episodic"): 3, (3, "generalisation"): 1, (11, "episodic"): 1}
    added |= {(2, "fact"): 1, (12, "episodic"): 1}
    assert values(by_name["memories_added"]) == {place: (many, many) for place, many in added.items()}
    assert numbers(by_name["memories_added"], "episodic")[5] == 0


def test_attempts_that_succeeded(by_name: dict[str, Series]) -> None:
    assert values(by_name["success_rate"]) == {
        (2, "episodes"): (0.5, 2),
        (3, "episodes"): (0.0, 2),
        (3, "builds"): (1.0, 1),
        (5, "builds"): (0.0, 1),
        (11, "episodes"): (0.0, 1),
        (12, "episodes"): (0.0, 1),
    }
    assert numbers(by_name["success_rate"], "builds")[4] is None


def test_failures_seen_before(by_name: dict[str, Series]) -> None:
    seen = {2: (0.0, 1), 3: (0.666667, 3), 5: (1.0, 1), 11: (0.0, 1)}
    told = {(day, group): seen[day] for day in seen for group in (SEEN, LESSON)}
    assert values(by_name["repeated_failures"]) == {**told, (12, SEEN): (1.0, 1), (12, LESSON): (0.0, 1)}


def test_known_failures_that_came_back(by_name: dict[str, Series]) -> None:
    came = values(by_name["returning_failures"])
    assert came == {
        (3, "came back"): (1.0, 1),
        (5, "came back"): (0.5, 2),
        **{(day, "came back"): (0.0, 2) for day in (4, 6, 7, 8, 9, 10, 11)},
        (12, "came back"): (0.333333, 3),
    }


def test_recalls(by_name: dict[str, Series]) -> None:
    assert values(by_name["recalls_served"]) == {(4, "by a generalisation"): (0.333333, 3)}
    assert values(by_name["recalls_helped"]) == {(4, "helped"): (0.5, 2)}


def test_compression(by_name: dict[str, Series]) -> None:
    assert values(by_name["compression_ratio"]) == {
        (2, "covered"): (0.0, 2),
        **{(day, "covered"): (0.4, 5) for day in range(3, 9)},
        **{(day, "covered"): (0.333333, 3) for day in (9, 10)},
        (11, "covered"): (0.25, 4),
        (12, "covered"): (0.2, 5),
    }
    sources = numbers(by_name["sources_per_generalisation"], "sources")
    assert sources == {2: None, **dict.fromkeys(range(3, 12), 2.0), 12: 1.0}


def test_churn(by_name: dict[str, Series]) -> None:
    left = {9: ("superseded", "suppressed", "contradicted"), 10: ("archived", "invalidated"), 12: ("deleted",)}
    assert values(by_name["churn"]) == {(day, kind): (1, 1) for day, kinds in left.items() for kind in kinds}


def test_tags(by_name: dict[str, Series]) -> None:
    tags = {(2, "cache"): 2, (2, "lesson"): 1, (3, "cache"): 2, (3, "db"): 1, (11, "db"): 1}
    tags |= {(2, "rule"): 1, (12, "db"): 1, (12, "lesson"): 1}  # C's is gone with it
    assert values(by_name["tags"]) == {place: (many, many) for place, many in tags.items()}
    assert list(dict.fromkeys(point.group for point in by_name["tags"].points)) == ["cache", "db", "lesson", "rule"]


def test_tags_of_hidden_memories_are_not_shown(motley: Store) -> None:
    found = {one.name: one for one in learning_series(motley, project_id="shop")}
    assert [point.value for point in found["tags"].points] == [3]  # plain, next, archived
    assert [point.value for point in found["memories_added"].points] == [6]


def test_survival(by_name: dict[str, Series]) -> None:
    assert values(by_name["survival"]) == {
        (2, "episodic"): (1.0, 2),
        (3, "episodic"): (0.333333, 3),
        (3, "generalisation"): (1.0, 1),
        (11, "episodic"): (1.0, 1),
        (2, "fact"): (1.0, 1),
        (12, "episodic"): (1.0, 1),
    }


def test_of_one_project(learned: Store) -> None:
    bank = {one.name: one for one in with_data(learning_series(learned, project_id="bank"))}
    assert set(bank) == {
        "live_memories", "memories_added", "success_rate", "repeated_failures", "tags", "survival"
    }  # fmt: skip
    assert values(bank["live_memories"]) == {(11, "episodic"): (1, 1)}
    assert with_data(learning_series(learned, project_id="nobody's")) == []


def test_within_a_period_what_was_before_is_known(learned: Store) -> None:
    found = {one.name: one for one in learning_series(learned, since="2026-02-05", until="2026-02-09")}
    assert numbers(found["live_memories"], "episodic") == {5: 5, 6: 5, 7: 5, 8: 5, 9: 3}
    assert values(found["repeated_failures"]) == {(5, SEEN): (1.0, 1), (5, LESSON): (1.0, 1)}
    assert values(found["returning_failures"]) == {(5, "came back"): (0.5, 2)}
    assert not found["memories_added"].points
    assert {point.group for point in found["churn"].points} == {"superseded", "suppressed", "contradicted"}


def test_by_week_and_by_month(learned: Store) -> None:
    weeks = {one.name: one for one in learning_series(learned, bucket="week")}
    added = [(point.at, point.group, point.value) for point in weeks["memories_added"].points]
    assert added == [
        ("2026-02-02", "episodic", 5), ("2026-02-02", "generalisation", 1), ("2026-02-02", "fact", 1),
        ("2026-02-09", "episodic", 2), ("2026-02-09", "generalisation", 0), ("2026-02-09", "fact", 0),
    ]  # fmt: skip
    months = learning_series(learned, bucket="month")
    assert [(point.at, point.value) for point in months[0].points] == [
        ("2026-02-01", 5),
        ("2026-02-01", 1),
        ("2026-02-01", 1),
    ]
    assert {one.bucket for one in with_data(months)} == {"month"}


def test_each_says_what_it_is(by_name: dict[str, Series]) -> None:
    told = by_name["churn"].to_dict()
    assert list(told) == ["name", "title", "unit", "definition", "points", "bucket", "undated"]
    assert told["points"][0] == {"at": "2026-02-09", "group": "superseded", "value": 1, "count": 1}
    assert all("UTC" in one.definition and one.title for one in by_name.values())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"since": "2026-02-09", "until": "2026-02-08"}, "is after until"),
        ({"since": "yesterday"}, "since: is not a date"),
        ({"until": "2026-02-30"}, "until: is not a date"),
        ({"bucket": "century"}, "must be one of day, week, month, year, decade"),
    ],
)
def test_what_is_no_period_is_refused(learned: Store, given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        learning_series(learned, **given)


@pytest.mark.parametrize("until", ["20260203", "2026-W06-2", "2026-02-03T23:59:59.999Z"])
def test_a_day_however_it_is_written_counts_to_its_end(until: str) -> None:
    assert bounds("2026-02-03", until) == bounds("20260203", "2026-02-03")
    assert bounds(None, "2026-W06") == bounds(None, "2026-02-08")


def test_one_odd_date_makes_the_bucket_larger(opened: Any, tmp_path: Path) -> None:
    with opened(tmp_path, FakeClock("2026-02-02T09:00:00.000Z")) as store:
        told = {"type": "episodic", "content": "It was cold", "tags": ["cold"]}
        store.insert_memories([{**told, "occurred_at": day} for day in ("0001-01-01", "2026-02-01")])
        history = read_history(store)
        found = with_data(learning_series(store, history=history))
        assert {one.bucket for one in found} == {"decade"}
        assert max(len(one.points) for one in found) == 203
        assert [point.at for point in found[0].points[:3]] == ["0001-01-01", "0010-01-01", "0020-01-01"]
        with pytest.raises(InvalidInputError, match=r"more than 10,000 from 0001-01-01 to 2026-02-0\d; .*--since"):
            learning_series(store, bucket="day", history=history)
        assert {
            one.bucket for one in with_data(learning_series(store, bucket="day", since="2026-01-01", history=history))
        } == {"day"}


@pytest.mark.parametrize(
    ("days", "bucket"),
    [(62, "day"), (63, "week"), (731, "month"), (18_262, "month"), (18_263, "year"), (182_626, "decade")],
)
def test_the_bucket_follows_from_the_span(days: int, bucket: str) -> None:
    first = date(1000, 1, 1)
    assert bucket_between(first.isoformat(), (first + timedelta(days=days)).isoformat()) == bucket


def test_a_lesson_counts_while_it_is_known(opened: Any, tmp_path: Path) -> None:
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    with opened(tmp_path, clock) as store:
        failed = {"type": "episodic", "project_id": "shop", "content": "It failed", "failure_fingerprint": "f1"}

        def on(day: int, **more: Any) -> str:
            clock.set(f"2026-02-{day:02}T09:00:00.000Z")
            return str(store.insert_memory({**failed, "content": f"It failed on day {day}", **more}).id)

        rule = on(1, type="semantic", failure_fingerprint=None)
        first, _ = on(2), on(3)
        store.link(rule, "DERIVED_FROM", first)
        on(4)
        clock.set("2026-02-05T09:00:00.000Z")
        store.suppress(rule)
        on(6)
        store.unsuppress(rule)
        on(7)
        store.delete_memory(rule)
        last = on(8)
        store.update_memory(last, failure_fingerprint=None)
        (found,) = (one for one in learning_series(store) if one.name == "repeated_failures")
        assert numbers(found, SEEN) == {
            2: 0.0,
            3: 1.0,
            4: 1.0,
            5: None,
            6: 1.0,
            7: 1.0,
        }  # the last one is of no failure
        assert numbers(found, LESSON) == {2: 0.0, 3: 0.0, 4: 1.0, 5: None, 6: 0.0, 7: 1.0}


def test_what_is_added_anew_is_what_it_is_now(opened: Any, tmp_path: Path) -> None:
    with opened(tmp_path, FakeClock("2026-02-01T09:00:00.000Z")) as store:
        one = {"id": IDS["A"], "content": "It failed", "project_id": "shop", "tags": ["old"]}
        store.insert_memory(
            {**one, "type": "episodic", "outcome": "failure", "failure_fingerprint": "f1", "privacy_tier": "private"}
        )
        store.delete_memory(IDS["A"])
        store.insert_memory({**one, "type": "semantic", "project_id": "bank", "tags": ["new"]})
        life = read_history(store).lives[IDS["A"]]
        told = (life.type, life.project_id, life.tags, life.outcome, life.fingerprint, life.tier, life.is_deleted)
        assert told == ("semantic", "bank", ("new",), "unknown", None, "public", False)
        store.update_memory(IDS["A"], tags=["newer"])
        found = {series.name: series for series in learning_series(store)}
        assert not found["tags"].points  # it came with none that it still has
        assert [point.group for point in found["memories_added"].points] == ["fact"]


def test_what_was_read_once_serves_twice(learned: Store, by_name: dict[str, Series]) -> None:
    again = learning_series(learned, history=read_history(learned))
    assert again == list(by_name.values())
