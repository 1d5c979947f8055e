"""What became of single memories; the story is in conftest.py and test_series.py."""

from __future__ import annotations

from typing import Any

from memgraph.viz.page.times import timelines
from memgraph.viz.reading import read_history
from tests.unit.viz.conftest import IDS

Store = Any


def at(day: int) -> str:
    return f"2026-02-{day:02}T09:00:00.000Z"


def test_each_memory_came_and_changed_when_that_happened(learned: Store) -> None:
    found = timelines(
        read_history(learned, details_of=IDS.values()), [*IDS.values(), "00000000-0000-4000-8000-000000000000"]
    )
    assert set(found) == set(IDS.values())
    changes = {name: found[one].changes for name, one in IDS.items()}
    assert changes == {
        "A": ((at(3), "compressed", IDS["G"]), (at(9), "superseded", IDS["C"])),
        "B": ((at(9), "suppressed", None), (at(9), "contradicted", IDS["D"]), (at(10), "unsuppressed", None)),
        "C": ((at(3), "compressed", IDS["G"]), (at(10), "invalidated", None), (at(12), "deleted", None)),
        "D": ((at(9), "contradicted", IDS["B"]), (at(10), "archived", None)),
        "E": (),
        "F": (),
        "G": (),
        "H": (),
        "S": (),
    }
    assert found[IDS["G"]].added == at(3)
    assert found[IDS["F"]].added == "2026-02-03T12:00:00.000Z"


def test_uses_have_the_anchor_after_them(learned: Store) -> None:
    found = timelines(read_history(learned, details_of=IDS.values()), [IDS[name] for name in "ABF"])
    a, b, f = ([(one.at, one.anchor, one.is_use) for one in found[IDS[name]].relevances] for name in "ABF")
    assert a == [(at(2), 1.0, False), (at(4), 1.0, True)]
    assert b == [(at(2), 1.0, False)]
    told_again = ("2026-02-05T12:00:00.000Z", 0.9, True)  # when the build was that told it again
    assert f == [("2026-02-03T12:00:00.000Z", 1.0, False), told_again]
