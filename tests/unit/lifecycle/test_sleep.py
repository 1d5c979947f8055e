"""Sleep: its phases together, a run that is stopped, its bounds, and when a store sleeps of its own accord."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import BusyError, InvalidInputError
from memgraph.lifecycle import sleep
from memgraph.lifecycle.sleep import PHASES, episodes_since
from memgraph.model.events.records import SleepAdvanced
from memgraph.testing import FakeClock, FakeEmbedder

MODULE: Any = sys.modules[sleep.__module__]
NAMES = [phase.name for phase in PHASES]
START = "2026-02-01T09:00:00.000Z"
Opened = Callable[..., Any]
STEPS = ["list_orders", "check_refund_policy", "issue_refund", "send_confirmation"]


def experience() -> list[dict[str, Any]]:
    """Return memories of which every phase makes something."""
    fact = {"type": "semantic", "project_id": "shop"}
    run = "Deploys of the shop run on Tuesdays after the tests have passed"
    facts = [
        {"content": "The freeze holds until 2026-02-28"},
        {"content": run},
        {"content": f"{run}. Everybody agreed"},
        {"content": run, "task_id": "T"},
        {"content": f"{run}. Everybody agreed", "task_id": "T"},
        {"content": "The port of the billing service is 8080", "occurred_at": "2026-01-01", "confidence": 0.5},
        {"content": "The port of the billing service is 9090", "occurred_at": "2026-01-20", "confidence": 0.9},
        {"content": "Nobody asks for this any more", "relevance_score": 0.01},
    ]
    failed = [
        {
            "type": "episodic", "project_id": "shop", "outcome": "failure", "build_id": f"b{n}", "tags": ["auth", "jwt"],
            "content": f"The refresh of the token failed with 401 in {name}", "failure_fingerprint": "f00",
        }
        for n, name in enumerate(["checkout", "search and filters", "the account page", "billing of the other shop"])
    ]  # fmt: skip
    solved = [
        {
            "type": "episodic", "project_id": "shop", "outcome": "success", "build_id": f"s{n}", "tags": [f"t{n}"],
            "content": f"Order {n} was refunded.", "goal": f"Refund the broken order {n} of a customer",
            "action_log": [{"t": float(place), "action": action} for place, action in enumerate(STEPS)],
        }
        for n in range(3)
    ]  # fmt: skip
    memories = [*({**fact, **one} for one in facts), *failed, *solved]
    return [{"id": str(UUID(int=number)), **one} for number, one in enumerate(memories, start=1)]


@pytest.fixture(scope="module")
def opened() -> Opened:
    """Open the store in a folder, a month after it was filled."""

    def call(folder: Path, embedder: Any = None, **settings: Any) -> Any:
        config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", **settings)
        clock = FakeClock("2026-03-03T03:00:00.000Z")
        return memgraph.AgentMemoryStore(config, embedder=embedder or FakeEmbedder(64), clock=clock)

    return call


@pytest.fixture(scope="module")
def tired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store that has much to sleep over; it is copied, not used."""
    folder = tmp_path_factory.mktemp("tired")
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    clock = FakeClock(START)
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=clock) as store:
        for task in (None, "T"):
            store.insert_memories([one for one in experience() if one.get("task_id") == task])
    return folder


@pytest.fixture
def bed(tired: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Make copies of the tired store."""
    return lambda name: Path(shutil.copytree(tired, tmp_path / name))


def says(store: Any) -> tuple[str, list[Any]]:
    """Return a store's digest, and what was recorded of each memory in the order in which it was recorded."""
    events = [event for event in store.reader.events_after(0) if event.payload.memory_ids()]
    return store.digest(), [(event.type, event.content) for event in events]


class Killed(BaseException):
    """A kill, as far as a process can suffer it in a test."""


def dying(store: Any, after: int) -> Callable[..., Any]:
    """Return a commit that goes well so many times, and then no more."""
    real, left = store.commit, [after]

    def commit(scope: str, events: Any, **fields: Any) -> Any:
        if events and not left[0]:
            raise Killed
        left[0] -= bool(events)
        return real(scope, events, **fields)

    return commit


def test_every_phase_does_something_and_twice_is_once(opened: Opened, bed: Callable[[str], Path]) -> None:
    folder = bed("one")
    with opened(folder) as store:
        report = sleep(store)
        done = {phase.name: phase for phase in report.phases}
        assert [*done] == NAMES
        assert (report.complete, report.left, report.resumed) == (True, [], False)
        assert done["temporal"].counts["expired"] == 1
        assert done["near-duplicates"].counts["merged"] == 2
        assert done["compress"].counts["compressed"] == 1
        assert done["errors"].counts["failures"] == 4
        assert "superseded" not in done["errors"].counts, "an analysis of errors replaces nothing"
        assert done["procedures"].counts["proposed"] == 1
        assert done["contradictions"].counts["replaced"] == 1
        assert done["collect"].counts["archived"] == 1
        assert str(UUID(int=1)) in done["temporal"].memory_ids
        assert all(phase.changed == len(phase.memory_ids) for phase in report.phases)
        assert report.changed == sum(phase.changed for phase in report.phases)
        before = says(store)
        again = sleep(store)
        assert (again.changed, says(store)) == (0, before)
        store.verify(deep=True)
        store.rebuild()
        assert store.digest() == before[0]
    with opened(folder, embedder=NoEmbedder()) as store:  # a replay asks no model
        store.rebuild()
        assert store.digest() == before[0]


@pytest.fixture(scope="module")
def rested(opened: Opened, tired: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any]]:
    """Return what an uninterrupted sleep comes to."""
    folder = Path(shutil.copytree(tired, tmp_path_factory.mktemp("rested") / "copy"))
    with opened(folder) as store:
        assert sleep(store).complete
        return says(store)


def test_killed_again_and_again_it_ends_as_if_it_had_not_been(
    opened: Opened, bed: Callable[[str], Path], rested: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = 0
    with opened(bed("restless")) as store:
        while kills < 100:
            with monkeypatch.context() as patch:
                patch.setattr(store, "commit", dying(store, after=1 + kills % 2))  # a phase's last words, and the run's
                try:
                    report = sleep(store)
                except Killed:
                    kills += 1
                    continue
            break
        assert 100 > kills > len(NAMES)
        assert report.resumed
        assert report.complete
        assert says(store) == rested


def test_a_kill_between_portions_does_not_change_the_result(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.lifecycle.dedup.near_duplicates._PORTION", 4)
    monkeypatch.setattr("memgraph.lifecycle.run._MOST_IN_A_COMMIT", 1)
    words = ["", "!", ". The cellar is damp", ", please", ". The cellar is damp. It smells"]
    texts = [
        f"The {what} of the shop is counted by hand at night{words[n % 5]}"
        for n in range(15)
        for what in ("till", "stock")
    ]
    ended = []
    for name, after in {"at ease": 1_000, "restless": 1}.items():
        with opened(tmp_path / name) as store:
            fact = {"type": "semantic", "project_id": "shop"}
            numbered = enumerate(texts, start=1)
            store.insert_memories(
                [{**fact, "id": str(UUID(int=n)), "content": text, "is_pinned": n == 21} for n, text in numbered]
            )
            for _ in range(100):
                with monkeypatch.context() as patch:
                    patch.setattr(store, "commit", dying(store, after))
                    try:
                        report = sleep(store, phases=["near-duplicates"])
                    except Killed:
                        continue
                break
            assert report.complete
            ended.append(says(store))
    assert ended[0] == ended[1]
    assert sum(kind == "memory.merged" for kind, _ in ended[0][1]) > 20


@pytest.mark.long
def test_killed_once_at_any_commit_it_ends_as_if_it_had_not_been(
    opened: Opened, bed: Callable[[str], Path], rested: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for after in range(100):
        folder = bed(f"{after}")
        with opened(folder) as store, monkeypatch.context() as patch:
            patch.setattr(store, "commit", dying(store, after))
            try:
                sleep(store)
            except Killed:
                pass
            else:
                break
        with opened(folder) as store:
            assert sleep(store).complete
            assert says(store) == rested, f"killed after {after} commits"
        shutil.rmtree(folder)
    assert after > 2 * len(NAMES)


def test_it_stops_when_the_time_is_up_and_the_next_run_continues(
    opened: Opened, bed: Callable[[str], Path], rested: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(bed("short")) as store:
        assert sleep(store, max_seconds=0).left == NAMES
        done, reports = list[str](), list[Any]()
        while not reports or not reports[-1].complete:
            asked = iter(range(6))  # time enough to be asked after so often
            monkeypatch.setattr(
                MODULE.SleepContext, "is_time_up", lambda _context, asked=asked: next(asked, None) is None
            )
            reports.append(sleep(store))
            done += [phase.name for phase in reports[-1].phases if phase.complete]
            assert len(reports) < 20
        assert (done, says(store)[0]) == (NAMES, rested[0])
        assert len(reports) > 2
        assert [report.resumed for report in reports] == [False, *[True] * (len(reports) - 1)]


def test_a_run_of_another_day_is_not_continued(store: Any, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", dying(store, after=2))
        with pytest.raises(Killed):
            sleep(store)
    clock.advance(hours=25)
    report = sleep(store)
    assert (report.resumed, [phase.name for phase in report.phases]) == (False, NAMES)


def test_only_chosen_phases_run_in_their_order(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report = sleep(store, phases=["collect", "temporal"])
    assert [phase.name for phase in report.phases] == ["temporal", "collect"]
    with monkeypatch.context() as patch:
        patch.setattr(store, "commit", dying(store, after=2))
        with pytest.raises(Killed):
            sleep(store)
    assert sleep(store, phases=["temporal"]).complete
    assert sleep(store).resumed  # what was left stayed so
    with pytest.raises(InvalidInputError, match="must be one of temporal, copies, near-duplicates"):
        sleep(store, phases=["dream"])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        *(({"phases": phases}, "phases") for phases in (None, 5, "collect", [3])),
        *(({"max_seconds": seconds}, "max_seconds") for seconds in (-1, "x", True, float("nan"), float("inf"))),
    ],
    ids=str,
)
def test_invalid_arguments_are_rejected_by_name(wrong: dict[str, Any], named: str) -> None:
    nowhere: Any = None  # it is refused before the store is looked at
    with pytest.raises(InvalidInputError) as refused:
        sleep(nowhere, **wrong)
    assert refused.value.field.startswith(named)


def test_a_run_records_its_progress(store: Any) -> None:
    told: list[tuple[int, int | None]] = []
    memgraph.MemGraph(store).maintenance.sleep(progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, len(NAMES))
    said = [event.payload for event in store.reader.events_after(0) if isinstance(event.payload, SleepAdvanced)]
    assert [(one.phase, one.left) for one in said] == [(name, NAMES[place + 1 :]) for place, name in enumerate(NAMES)]


class TestOfItsOwnAccord:
    def episodes(self, memory: Any, count: int) -> list[str]:
        saved = [
            memory.save_episode(f"Booking {n}", "a small budget", "took the cheapest", "success") for n in range(count)
        ]
        return [one.episode_id for one in saved]

    def slept(self, memory: Any) -> int:
        return sum(isinstance(event.payload, SleepAdvanced) for event in memory.store.reader.events_after(0))

    def test_automatic_sleep_requires_the_setting(self, store: Any) -> None:
        memory = memgraph.MemGraph(store)
        memory.update_episode_with_feedback(self.episodes(memory, 6)[0], "meh")
        assert self.slept(memory) == 0

    def test_it_runs_after_five_episodes_or_at_once_after_bad_feedback(self, open_store: Callable[..., Any]) -> None:
        memory = memgraph.MemGraph(open_store(sleep_trigger="auto"))
        ids = self.episodes(memory, 4)
        assert (self.slept(memory), episodes_since(memory.store)) == (0, 4)
        self.episodes(memory, 1)
        assert (self.slept(memory), episodes_since(memory.store)) == (len(NAMES), 0)
        memory.update_episode_with_feedback(ids[0], "love")
        assert self.slept(memory) == len(NAMES)
        memory.update_episode_with_feedback(ids[0], "meh")
        assert self.slept(memory) == 2 * len(NAMES)

    def test_its_failure_does_not_fail_the_write(
        self, open_store: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        memory = memgraph.MemGraph(open_store(sleep_trigger="auto"))
        self.episodes(memory, 4)

        def busy(*_: Any, **__: Any) -> Any:
            raise BusyError("the store", pid=None, timeout_s=1.0)

        monkeypatch.setattr(MODULE, "sleep", busy)
        with caplog.at_level(logging.WARNING, "memgraph"):
            (saved,) = self.episodes(memory, 1)
        assert memory.store.get_memory(saved) is not None
        assert "automatic sleep failed" in caplog.text

    def test_it_is_short(self, open_store: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        memory = memgraph.MemGraph(open_store(sleep_trigger="auto"))
        monkeypatch.setattr(MODULE, "AUTO_SECONDS", 0.0)
        self.episodes(memory, 5)
        assert self.slept(memory) == 0
