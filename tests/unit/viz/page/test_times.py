"""What the page says of time: curves, links, what is to come, what a choice leaves out; and trials that nobody dated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from memgraph.fold.history import Relevance, Relevances, is_undated, trial_of
from memgraph.model.events.memories import MemoryMerged
from memgraph.model.relevance import decayed
from memgraph.model.timestamps import epoch_days
from memgraph.testing import FakeClock
from memgraph.viz.page.data import PageData, page_data
from memgraph.viz.page.wording import left_out_of, span_of
from tests.unit.viz.conftest import IDS, RECALLS, _recall

START = "2026-02-02T09:00:00.000Z"
DAY = 86_400
Store = Any


@pytest.fixture(scope="module")
def seen(
    opened: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Store, dict[str, str], dict[str, float]]]:
    """Ten days: uses that move and that do not, a pin, a floor, links made late and unmade, an end to come."""
    folder = tmp_path_factory.mktemp("times")
    clock = FakeClock(START)
    with opened(folder, clock) as store:
        names = ["used", "lowered", "pinned", "left", "right", "older", "newer", "ending"]
        given = [{"type": "episodic", "content": f"The {name} one", "project_id": "shop"} for name in names]
        ids = dict(zip(names, (one.id for one in store.insert_memories(given)), strict=True))
        then: dict[str, float] = {}

        def on(day: int) -> None:
            clock.set(f"2026-02-{day:02}T09:00:00.000Z")

        store.insert_memory(
            {**given[0], "content": "Told to nobody", "privacy_tier": "private", "occurred_at": "2026-01-01"}
        )
        on(4)
        store.record_access(ids["used"])
        store.update_memory(ids["lowered"], relevance_score=0.3)
        store.link(ids["left"], "RELATED_TO", ids["right"])
        store.link(ids["left"], "CONTRADICTS", ids["right"])
        store.link(ids["older"], "CONTRADICTS", ids["newer"])
        on(6)
        store.update_memory(ids["pinned"], is_pinned=True)
        store.unlink(ids["left"], "CONTRADICTS", ids["right"])
        store.supersede(ids["older"], by=ids["newer"])
        store.invalidate(ids["ending"], at="2026-02-28")
        then |= {name: store.get_memory(ids[name]).relevance_score for name in ("used", "lowered", "pinned")}
        on(12)
        yield store, ids, then


@pytest.fixture(scope="module")
def data(seen: tuple[Store, dict[str, str], dict[str, float]]) -> PageData:
    return page_data(seen[0])


def relevance_of(data: PageData, store: Store) -> Callable[[str, float], float]:
    """Read relevance off the page as its script does: of a memory, so many days after the beginning."""
    curves = {place: rest for place, _, *rest in data.document["curves"]}
    places = {memory.id: place for place, memory in enumerate(data.memories)}

    def at(memory_id: str, days: float) -> float:
        flat = curves.get(places[memory_id], [0, 100, 0, 0])
        points = [flat[i : i + 4] for i in range(0, len(flat), 4)]
        time, value, hold, _ = [point for point in points if point[0] <= days * DAY][-1]
        rate = store.config.forgetting_curve.rate("episodic")
        return decayed(value / 100, days - time / DAY, rate=rate, is_pinned=hold == -1, floor=max(0, hold) / 100)

    return at


def points_of(data: PageData, memory_id: str) -> list[list[int]]:
    place = next(place for place, memory in enumerate(data.memories) if memory.id == memory_id)
    flat = next((rest for one, _, *rest in data.document["curves"] if one == place), [])
    return [flat[i : i + 4] for i in range(0, len(flat), 4)]


def test_the_curve_is_the_store_s(seen: tuple[Store, dict[str, str], dict[str, float]], data: PageData) -> None:
    store, ids, then = seen
    at = relevance_of(data, store)
    for name, expected in then.items():
        assert at(ids[name], 4) == pytest.approx(expected, abs=0.01)
    assert at(ids["pinned"], 3.9) < 1.0  # today's pin does not draw over the past
    assert [point[3] for point in points_of(data, ids["used"])] == [0, 1]
    assert [point[3] for point in points_of(data, ids["lowered"])] == [0, 0]  # that was no use


def test_a_use_that_moves_nothing_is_no_new_beginning() -> None:
    days = [f"2026-02-0{day}T09:00:00.000Z" for day in range(1, 6)]
    known = Relevances(frozenset("a"))
    known.note("a", days[0], {"relevance_anchor": 0.5, "relevance_at": days[0]})
    known.note("a", days[1], {"relevance_anchor": 0.7, "relevance_at": days[1]}, is_use=True)
    known.note("a", days[2], {"relevance_anchor": 0.7, "relevance_at": days[1]}, is_use=True)
    known.note("a", days[3], {"floor": 0.2})
    known.note("a", days[4], {"relevance_anchor": 0.9, "relevance_at": days[2], "floor": 0.2})
    known.note("b", days[0], {"relevance_anchor": 0.5})
    assert known.by_id() == {
        "a": (
            Relevance(days[0], 0.5, days[0]),
            Relevance(days[1], 0.7, days[1], is_use=True),
            Relevance(days[3], 0.7, days[1], 0.2),
            Relevance(days[4], 0.9, days[2], 0.2),
        )
    }


def test_links_are_there_from_when_they_were_made_until_they_were_unmade(
    seen: tuple[Store, dict[str, str], dict[str, float]], data: PageData
) -> None:
    number = {memory.id: place for place, memory in enumerate(data.memories)}
    left, right, older, newer = (number[seen[1][name]] for name in ("left", "right", "older", "newer"))
    links = data.document["links"]
    assert links["RELATED_TO"] == [left, right, 2 * DAY, -1]
    assert links["SUPERSEDES"] == [newer, older, 4 * DAY, -1]
    made = [links["CONTRADICTS"][i : i + 4] for i in range(0, len(links["CONTRADICTS"]), 4)]
    assert sorted(made) == sorted([[left, right, 2 * DAY, 4 * DAY], [older, newer, 2 * DAY, -1]])


def test_what_is_to_come_is_told_and_not_shown(
    seen: tuple[Store, dict[str, str], dict[str, float]], data: PageData
) -> None:
    place = next(place for place, memory in enumerate(data.memories) if memory.id == seen[1]["ending"])
    assert data.last == "2026-02-06T09:00:00.000Z"
    assert data.document["end"] == 4 * DAY
    assert data.document["more"][str(place)]["holds"] == "2026-02-28T00:00:00.000Z"
    assert [change for change in data.document["changes"] if change[2] == "invalidated"] == []


def test_a_page_until_a_day_shows_nothing_after_it(
    seen: tuple[Store, dict[str, str], dict[str, float]],
) -> None:
    early = page_data(seen[0], until="2026-02-05")
    assert early.last == "2026-02-04T09:00:00.000Z"
    assert "SUPERSEDES" not in early.document["links"]
    assert early.document["lives"] == []
    assert [end for end in early.document["links"]["CONTRADICTS"][3::4] if end >= 0] == []
    assert points_of(early, seen[1]["pinned"]) == []
    assert live_points(early)[-1]["count"] == len(early.memories)


def live_points(page: PageData) -> list[dict[str, Any]]:
    return next(one["points"] for one in page.document["series"] if one["name"] == "live_memories")


def test_a_period_is_that_in_which_memories_came(learned: Store) -> None:
    """One that was made of others, and is said to have happened before them, came with the latest of them, on the 3rd."""
    early, late = page_data(learned, until="2026-02-02"), page_data(learned, since="2026-02-03")
    assert IDS["G"] not in {memory.id for memory in early.memories}
    assert IDS["G"] in {memory.id for memory in late.memories}
    assert (early.last[:10], late.first[:10]) == ("2026-02-02", "2026-02-03")


def test_charts_count_what_the_page_shows(seen: tuple[Store, dict[str, str], dict[str, float]], data: PageData) -> None:
    live = next(one for one in data.document["series"] if one["name"] == "live_memories")
    assert live["points"][0]["at"] == "2026-02-02"  # the private one came on 1 January
    assert live["points"][-1]["count"] == len(data.memories) - 1
    since = page_data(seen[0], since="2026-02-02", include={"private"})
    assert live_points(since) == live["points"]
    everything = page_data(seen[0], include={"private"})
    assert live_points(everything)[-1]["count"] == len(data.memories)


def test_only_the_latest_of_very_many_points_are_sent(
    seen: tuple[Store, dict[str, str], dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.viz.page.times._MOST_POINTS", 1)
    few = page_data(seen[0])
    left_out = {few.memories[place].id: rest[0] for place, *rest in few.document["curves"]}
    assert left_out[seen[1]["used"]] == 1
    assert len(points_of(few, seen[1]["used"])) == 1


def test_a_trial_that_nobody_dated_has_a_number() -> None:
    assert [trial_of(day) for day in ("2000-01-01", "2000-01-18T00:00:00.000Z", "2000-02-20")] == [0, 17, 50]
    assert is_undated("2000-02-20")
    assert is_undated("2000-02-20T00:00:00.000Z")
    assert not is_undated("2000-02-20T09:00:00.000Z")
    assert not is_undated("2026-02-20")
    assert not is_undated("1999-12-31")


def test_trials_past_thirty_are_trials(opened: Any, tmp_path: Any) -> None:
    with opened(tmp_path, FakeClock(START)) as store:
        days = ["2000-01-02", "2000-02-15", "2000-04-10"]
        store.insert_memories([{"type": "episodic", "content": f"Trial on {day}", "occurred_at": day} for day in days])
        data = page_data(store)
        assert data.document["undated"]
        assert span_of(data) == "trials 1 to 100"
        live = next(one for one in data.document["series"] if one["name"] == "live_memories")
        assert (live["bucket"], len(live["points"])) == ("day", 100)
        store.insert_memory({"type": "episodic", "content": "Dated"})
        mixed = page_data(store)
        assert not mixed.document["undated"]
        assert any("Undated trials are shown at the beginning" in sentence for sentence in left_out_of(mixed))
        assert (
            np.sum(mixed.document["memories"]["added"]) * 1000 + mixed.document["start"]
            == epoch_days(START) * DAY * 1000
        )


def test_the_page_ends_where_builds_repeats_and_recalls_end(opened: Any, tmp_path: Any) -> None:
    clock = FakeClock("2026-03-01T09:00:00.000Z")
    with opened(tmp_path, clock) as store:
        store.insert_memory({"type": "episodic", "content": "It began", "project_id": "shop"})
        assert page_data(store).last[:10] == "2026-03-01"
        clock.set("2026-06-01T09:00:00.000Z")
        store.commit("system", [_recall(store, RECALLS[0], [])])
        store.record_outcome(RECALLS[0], "success")
        page = page_data(store)
        assert page.last[:10] == "2026-06-01"  # three months without a new text
        helped = next(one for one in page.document["series"] if one["name"] == "recalls_helped")
        assert [(point["value"], point["count"]) for point in helped["points"]] == [(1.0, 1)]
        clock.set("2026-09-01T09:00:00.000Z")
        store.commit("global", [MemoryMerged.parse({"id": page.memories[0].id, "changed": {"confidence": 0.9}})])
        assert page_data(store).last[:10] == "2026-09-01"
        assert page_data(store, until="2026-08-01").last[:10] == "2026-06-01"
        assert span_of(page_data(store, until="2026-08-01")) == "1 March 2026", (
            "nothing was stored on the day of a recall"
        )


def test_recalls_of_undated_trials_are_counted_beside_their_page(opened: Any, tmp_path: Any) -> None:
    with opened(tmp_path, FakeClock(START)) as store:
        store.insert_memory({"type": "episodic", "content": "Trial", "project_id": "shop", "occurred_at": "2000-01-02"})
        store.commit("system", [_recall(store, RECALLS[0], [])])
        page = page_data(store)
        assert span_of(page) == "trial 1"
        assert left_out_of(page) == ["1 recall is not in the charts: recalls are dated, and these trials are not."]
