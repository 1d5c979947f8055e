"""What the page says of learning: what still fails, what came back, and what is no news; by hand from `fill_trials` and small series."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memgraph import AgentMemoryStore
from memgraph.fold.history import is_attempt, task_of_build
from memgraph.testing import FakeClock
from memgraph.viz.page.data import PageData, page_data
from memgraph.viz.page.wording import left_out_of, sentence_of
from memgraph.viz.series import Point, Series, display_order, has_news, learning_series
from tests.unit.viz.conftest import FAILED_IN, _build, fill_trials

DAY = 86_400


@pytest.fixture(scope="module")
def data(trials: AgentMemoryStore) -> PageData:
    return page_data(trials)


def series(
    name: str,
    *shares: tuple[str, float | None, int],
    group: str = "came back",
    bucket: str = "day",
    undated: bool = False,
) -> Series:
    points = tuple(Point(at, group, value, count) for at, value, count in shares)
    return Series(name, name, "share", "", points, bucket, undated)


def test_each_failure_is_there_with_when_it_failed_was_tried_and_was_solved(data: PageData) -> None:
    failing = data.document["failing"]
    found = {title.removeprefix("House "): rest for title, *rest in failing["failures"]}
    assert {task: [at // DAY for at in failed] for task, (_, failed, _, _) in found.items()} == {
        task: list(times) for task, times in FAILED_IN.items()
    }
    assert all([at // DAY for at in tried] == [0, 1, 2] for _, _, tried, _ in found.values())
    assert [at // DAY for at in found["env_3"][3]] == [2]
    assert found["env_1"][3] == []
    assert failing["periods"] == [[f"2000-01-0{day + 1}", day * DAY] for day in range(3)]
    texts = [[data.memories[place].content[begin:] for place, begin in found[task][0]] for task in ("env_1", "env_2")]
    assert [len(told) for told in texts] == [1, 2]
    assert texts[0][0].startswith("I was stuck in a loop at the 1th door")


def test_what_builds_told_is_there_with_when_they_did(data: PageData) -> None:
    told = {data.memories[place].content: [at // DAY for at in times] for place, *times in data.document["told"]}
    of = {text[14:25] if text.startswith("Failed") else "lesson": times for text, times in told.items()}
    assert of == {"House env_1": [0, 1, 2], "House env_2": [1, 2], "House env_3": [0, 1], "lesson": [0, 1, 2]}


def test_a_group_is_named_when_its_generalisation_is_there(data: PageData) -> None:
    assert [disc[5] // DAY for disc in data.document["discs"] if disc[3] == "env_1"] == [2]


def test_the_sentence_names_the_trials(data: PageData) -> None:
    assert sentence_of(data) == (
        "21 builds over trials 0 to 2: 8 memories, including 1 generalisation. "
        "Attempts that succeeded rose from 14\u00a0% (of 7) in trial 0 to 71\u00a0% (of 7) in trial 2. "
        "Of the 6 tasks known to fail, 3 failed again in trial 1 and 2 in trial 2."
    )


@pytest.mark.parametrize(
    ("bucket", "points", "said"),
    [
        ("day", [("2026-01-05", 0.5, 10)], "Of the 10 failures known before, 5 came again on 5 January 2026."),
        (
            "week",
            [("2025-12-29", None, 0), ("2026-01-05", 0.5, 10), ("2026-01-12", 0.25, 20)],
            "Of the 10 failures known before, 5 came again in the week from 5 January 2026; of 20, 5 in the week from 12 January 2026.",
        ),
        (
            "month",
            [("2026-01-01", 0.5, 10), ("2026-02-01", 0.1, 10)],
            "Of the 10 failures known before, 5 came again in January 2026 and 1 in February 2026.",
        ),
        (
            "day",
            [(f"2026-01-{day:02}", 0.5 if day <= 5 else 0.25, 8) for day in range(1, 11)],
            "Of the 8 failures known before 6 January 2026, none came again from then on.",
        ),
        ("day", [("2026-01-05", 0.5, 4), ("2026-01-06", 0.5, 9)], ""),
    ],
)
def test_the_sentence_says_when_known_failures_came_again(
    data: PageData, bucket: str, points: list[tuple[str, float | None, int]], said: str
) -> None:
    periods = [(at, number) for number, (at, *_) in enumerate(points)]
    document = {**data.document, "failing": {"periods": periods, "failures": []}}
    told = replace(
        data, document=document, series=[series("returning_failures", *points, bucket=bucket)], is_of_tasks=False
    )
    assert sentence_of(told).partition("including 1 generalisation.")[2].strip() == said


def test_two_points_are_no_fall(data: PageData) -> None:
    rates = [
        series("success_rate", ("2026-01-05", 0.98, 45), ("2026-01-06", last, 99), group="builds")
        for last in (0.96, 0.95)
    ]
    said = [sentence_of(replace(data, series=[one])).partition("including 1 generalisation. ")[2] for one in rates]
    assert said[0] == "Attempts that succeeded stayed at 96\u00a0%."
    assert said[1].startswith("Attempts that succeeded fell from 98\u00a0% (of 45) on 5 January 2026 to 95\u00a0%")


def test_names_of_builds_say_what_they_are() -> None:
    assert task_of_build("alfworld-env_22-trial-0@632d3980") == "alfworld-env_22"
    assert task_of_build("ci-7") is None
    assert [is_attempt(name) for name in ("git-3c4f4f9a1073", "git-hooks", "ci-7")] == [False, True, True]


def test_shares_without_changes_are_distinguished() -> None:
    def of(*values: float | None, name: str = "repeated_failures") -> Series:
        return series(name, *((f"2026-01-0{day}", value, 5) for day, value in enumerate(values, start=1)))

    assert [has_news(of(*values)) for values in ((0.0, 1.0), (0.0, 1.0, None, 1.0), (0.5, 0.5, 0.5), (0.0,))] == [
        False
    ] * 4
    assert [has_news(of(*values)) for values in ((0.0, 1.0, 0.8), (0.5, 0.5), (0.3, 0.5, 0.5), (1.0,))] == [True] * 4
    two = replace(of(1.0, 1.0, 1.0), points=(*of(1.0, 1.0, 1.0).points, Point("2026-01-03", "semantic", 1.0, 2)))
    assert not has_news(two)
    assert has_news(of(1.0, 1.0, 1.0, name="returning_failures"))
    assert [one.name for one in display_order([of(1.0), of(name="returning_failures")])] == [
        "returning_failures",
        "repeated_failures",
    ]


def test_the_page_leaves_out_what_is_no_news_and_begins_with_what_came_back(data: PageData) -> None:
    drawn = {one["name"]: one["has_news"] for one in data.document["series"]}
    assert next(iter(drawn)) == "returning_failures"
    assert not drawn["repeated_failures"]


def test_sittings_are_no_attempts_and_builds_after_the_last_memory_count(
    opened: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Of two projects, one undated, that with more memories is shown, and the other is named."""
    folder = tmp_path_factory.mktemp("mixed")
    with opened(folder, FakeClock("2026-03-01T09:00:00.000Z")) as store:
        fill_trials(store)
        store.insert_memory(
            {"type": "episodic", "content": "It began", "project_id": "shop", "occurred_at": "2026-02-03"}
        )
        for number, day in enumerate((2, 4)):
            store.commit("global", [_build(store, f"git-{number:012x}", "success", day)])
        mixed, shop = page_data(store), page_data(store, project_id="shop")
        rate = next(one for one in learning_series(store, project_id="shop") if one.name == "success_rate")
    assert {memory.project_id for memory in mixed.memories} == {"house"}
    assert left_out_of(mixed)[0].endswith("Choose another project with --project: shop.")
    assert mixed.document["undated"]
    assert rate.points == ()
    assert sentence_of(shop) == "2 commits from 2 February 2026 to 4 February 2026: 1 memory."
    assert shop.document["failing"] is None
