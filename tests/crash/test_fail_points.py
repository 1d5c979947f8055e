"""A process is killed or interrupted at a chosen place.

The places are before each call that touches the disk or ends a transaction, and in the midst of each write.
"""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KILLS, INTERRUPTS = 6, 2
DECISIVE = ("before COMMIT", "after COMMIT", "before pwrite")
"""Around the end of a transaction, and before the head file follows: what a short run tries."""
LONG_KILLS, LONG_INTERRUPTS = 500, 250
"""Number of places tried: from the histories in turn; in a long run one of each kind first, as far as possible. Every run also
interrupts commands (`test_interrupts`), and kills writers at random (`test_kill`)."""


class Plot(NamedTuple):
    """A history to interrupt, the store that it begins with, and whether only long runs interrupt it."""

    title: str
    history: str
    prepare: Callable[[Path], None]
    is_long: bool = True


def nothing(folder: Path) -> None:
    shutil.rmtree(folder / "store")
    shutil.rmtree(folder / "keys")


def as_it_is(folder: Path) -> None:
    pass


def no_projections(folder: Path) -> None:
    shutil.rmtree(folder / "store" / "index")
    with closing(sqlite3.connect(folder / "store" / "memgraph.db")) as raw, raw:
        raw.execute("DELETE FROM state")


PLOTS = [
    Plot("a new store", "stock", nothing),
    Plot("single writes", "singles", as_it_is, is_long=False),
    Plot("writes of many", "bulk", as_it_is),
    Plot("an import", "import", as_it_is, is_long=False),
    Plot("vectors that were awaited", "embedding", as_it_is),
    Plot("intake of builds", "intake", as_it_is),
    Plot("corrections by a person", "corrections", as_it_is),
    Plot("resets", "resets", as_it_is),
    Plot("a rebuild", "rebuild", as_it_is, is_long=False),
    Plot("rows, index and graph made anew", "living", no_projections),
]


class Stage:
    """Copies of a prepared store."""

    def __init__(self, folder: Path, nursery: Any) -> None:
        self._folder = folder
        self._nursery = nursery
        self._numbers = count(1)
        self._stocked = folder / "stocked"
        self._stocked.mkdir()
        nursery.run("history", self._stocked, "stock")
        nursery.run("history", self._stocked, "more")

    def set(self, plot: Plot) -> Path:
        """Return a folder with the store that a plot begins with."""
        folder = self._folder / f"scene{next(self._numbers)}"
        shutil.copytree(self._stocked, folder)
        plot.prepare(folder)
        return folder


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, nursery: Any) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    yield Stage(folder, nursery)
    shutil.rmtree(folder)


def chosen(places: dict[Plot, list[str]], most: int, *, is_long: bool) -> list[tuple[Plot, int]]:
    """Choose places, numbered from 1, at random, the plots in turn; in a long run one of each kind first."""
    chance = random.Random(20260202)
    left = {
        plot: [(number, kind) for number, kind in enumerate(kinds, 1) if is_long or kind in DECISIVE]
        for plot, kinds in places.items()
    }
    for numbered in left.values():
        chance.shuffle(numbered)
    scenes: list[tuple[Plot, int]] = []
    kinds_seen: set[str] = set()
    every = [(plot, number, kind) for plot, numbered in left.items() for number, kind in numbered]
    for plot, number, kind in chance.sample(every, len(every)) if is_long else ():
        if kind not in kinds_seen:
            kinds_seen.add(kind)
            left[plot].remove((number, kind))
            scenes.append((plot, number))
    while len(scenes) < most and any(left.values()):
        plot = min((plot for plot in left if left[plot]), key=lambda plot: sum(plot is other for other, _ in scenes))
        scenes.append((plot, left[plot].pop()[0]))
    return scenes[:most]


@pytest.fixture(scope="module")
def whole(stage: Stage, nursery: Any, pytestconfig: pytest.Config) -> dict[Plot, tuple[list[str], list[str]]]:
    """An uninterrupted run: the digests of the store in sequence, and the places passed."""
    plots = [plot for plot in PLOTS if pytestconfig.getoption("--long") or not plot.is_long]
    runs = {plot: nursery.run("history", stage.set(plot), plot.history) for plot in plots}
    return {plot: (said[:-1], said[-1]) for plot, said in runs.items()}


Whole = dict[Plot, tuple[list[str], list[str]]]


class Trial:
    """Interrupts histories, and checks what is left."""

    def __init__(
        self, stage: Stage, nursery: Any, whole: Whole, rows: dict[str, Any], number: signal.Signals, *, is_long: bool
    ) -> None:
        self._stage = stage
        self._nursery = nursery
        self._whole = whole
        self._signal = number
        self._is_long = is_long
        self.places = {plot: places for plot, (_, places) in whole.items()}
        self.wrong: list[str] = []
        self.kept: Counter[str] = Counter()
        self.heard: list[str] = []
        assert rows["the process is killed, anywhere"].note == "nothing"

    def run(self, scenes: list[tuple[Plot, int]]) -> None:
        """Interrupt at each of these places."""
        with ThreadPoolExecutor(2) as pool:
            for _ in pool.map(lambda turn: self._scene(*scenes[turn], turn), range(len(scenes))):
                pass

    def _scene(self, plot: Plot, at: int, turn: int) -> None:
        folder = self._stage.set(plot)
        try:
            self._break_off(folder, plot, at, is_quick=bool(turn % 4) and not self._is_long)
        except AssertionError as error:
            self.wrong.append(f"{plot.title}, place {at} ({self.places[plot][at - 1]}): {error}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _break_off(self, folder: Path, plot: Plot, at: int, *, is_quick: bool) -> None:
        digests, _ = self._whole[plot]
        child = self._nursery.start("history", folder, plot.history, at, int(self._signal))
        code = child.wait()
        said = child.said()
        acknowledged = said.count("done")
        # opening changes no memory: before it is acknowledged, the store is as after it
        before, after = digests[max(0, acknowledged - 1)], digests[min(acknowledged, len(digests) - 1)]
        # a rebuild works in two threads, so one run may have a few places less than the run that counted them
        is_late = at > 0.9 * len(self.places[plot])
        wanted = -signal.SIGKILL if self._signal is signal.SIGKILL else 130
        assert code == wanted or (is_late and code == 0), f"exit {code}: {child.errors()[-1_500:]}"
        if code == 130:
            for word in said:
                assert word == "done" or word["digest"] in {before, after}, "the process sees another state"
        how = [*(["quickly"] if is_quick else []), *(["graph"] if plot.history == "living" else [])]
        left = self._nursery.start("survey", folder, *how)
        assert left.wait() == 0, f"exit {left.exit_code}: {left.errors()[-1_500:]}"
        digest = left.said()[0]["digest"]
        self.heard += left.said()[0]["heard"]
        steps = [number for number, known in enumerate(digests) if known == digest]
        assert digest in {before, after}, f"{acknowledged} steps were acknowledged, the store is as after {steps}"
        self.kept[plot.title] += digest == after != before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_acknowledged_writes_exist_once_and_others_are_atomic(
    stage: Stage, nursery: Any, whole: Whole, rows: Any, number: signal.Signals, is_long: bool, show: Any
) -> None:
    trial = Trial(stage, nursery, whole, rows, number, is_long=is_long)
    total = sum(map(len, trial.places.values()))
    kills, interrupts = (LONG_KILLS, LONG_INTERRUPTS) if is_long else (KILLS, INTERRUPTS)
    most = kills if number is signal.SIGKILL else interrupts
    scenes = chosen(trial.places, most, is_long=is_long)
    trial.run(scenes)
    tried = Counter(plot.title for plot, _ in scenes)
    rows = [(plot.title, len(trial.places[plot]), tried[plot.title], trial.kept[plot.title]) for plot in whole]
    show(
        f"{number.name} at chosen places, {len(trial.wrong)} of {len(scenes)} wrong",
        ("history", "places", "tried", "unacknowledged yet kept whole"),
        [*rows, ("all", total, len(scenes), sum(trial.kept.values()))],
    )
    assert not trial.wrong, f"{len(trial.wrong)} of {len(scenes)}:\n" + "\n".join(trial.wrong[:20])
    assert trial.heard == []


def test_a_merge_and_its_undoing_are_atomic(stage: Stage, nursery: Any) -> None:
    """Each is one commit: killed before its end the store is as before it, killed after its end as after it."""
    plot = Plot("corrections", "corrections", as_it_is)
    *digests, places = nursery.run("history", stage.set(plot), plot.history)
    before, merged, undone = digests
    assert merged != before == undone
    ends = [number for number, place in enumerate(places, 1) if place == "before it is acknowledged"]
    for step, end in enumerate(ends[1:]):
        passed = list(enumerate(places[ends[step] : end], ends[step] + 1))
        for offset, kind in ((0, "before COMMIT"), (1, "after COMMIT")):
            place = next(number for number, what in passed if what == kind)
            folder = stage.set(plot)
            assert nursery.start("history", folder, plot.history, place, int(signal.SIGKILL)).wait() == -signal.SIGKILL
            assert nursery.run("survey", folder, "quickly")[0]["digest"] == digests[step + offset]


@pytest.mark.long
def test_an_import_of_several_scopes_is_atomic(stage: Stage, nursery: Any) -> None:
    plot = Plot("an import of several scopes", "import of scopes", as_it_is)
    before, after, places = nursery.run("history", stage.set(plot), plot.history)
    folder = stage.set(plot)
    commit = places.index("before COMMIT") + 1
    assert nursery.start("history", folder, plot.history, commit, int(signal.SIGKILL)).wait() == -signal.SIGKILL
    assert nursery.run("survey", folder)[0]["digest"] in {before, after}


def test_a_new_store_can_be_made_after_a_kill(stage: Stage, nursery: Any) -> None:
    """Also if nothing but a temporary file was made."""
    plot = Plot("a new store", "stock", nothing)
    *_, places = nursery.run("history", stage.set(plot), plot.history)
    for kind in ("before fsync", "before link", "after COMMIT"):
        folder, place = stage.set(plot), places.index(kind) + 1
        assert nursery.start("history", folder, plot.history, place, int(signal.SIGKILL)).wait() == -signal.SIGKILL
        (left,) = nursery.run("survey", folder, "quickly")
        assert (left["memories"], left["heard"]) == (0, []), kind
