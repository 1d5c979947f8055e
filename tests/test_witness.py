"""Stores that earlier releases have made: opened with the present code they hold, and answer, the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.witness import ANSWERS, answers, copied, differences, opened

STORES = Path(__file__).parent / "fixtures" / "stores"
RELEASES = sorted(path.name for path in STORES.iterdir() if (path / ANSWERS).exists())
_SHOWN = 30


def test_there_is_a_witness() -> None:
    assert RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_a_store_of_an_earlier_release_answers_as_it_did(release: str, tmp_path: Path) -> None:
    folder = copied(STORES / release, tmp_path / "copy")
    kept = json.loads((folder / ANSWERS).read_text("utf-8"))
    with opened(folder, kept["asked"]) as memory:
        found = list(differences(kept["answers"], answers(memory, kept["asked"])))
    more = [f"… and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    assert not found, "\n".join([f"the store of {release} answers otherwise:", *found[:_SHOWN], *more])


@pytest.mark.parametrize(
    ("kept", "found", "told"),
    [
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, ['a[1].b: kept "x", found "y"']),
        ({"a": 1}, {"b": 2}, ["a: missing now: 1", "b: new: 2"]),
        ([1, 2], [1], [": 2 entries were kept, 1 are found"]),
        ({"a": 1.5, "b": None}, {"a": 1.5, "b": None}, []),
    ],
)
def test_each_difference_is_told_with_its_place(kept: object, found: object, told: list[str]) -> None:
    assert list(differences(kept, found)) == told
