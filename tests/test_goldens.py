"""A store with all there is answers as it did, and every door's documents have the shapes that they had.

A wanted change is kept by ``python -m tests.goldens``; the difference to commit then says what has changed.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests import goldens
from tests.story import Normalised, merged, shape
from tests.witness import differences

HERE = Path("/nowhere/story-1")
_SHOWN = 40


def same(name: str, found: Any) -> None:
    """Compare with what was kept, and say where it differs."""
    told = list(differences(goldens.kept(name), found))
    more = [f"… and {len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    assert not told, "\n".join([f"{name}.json differs (wanted? python -m tests.goldens):", *told[:_SHOWN], *more])


@pytest.fixture(scope="module")
def story() -> dict[str, Any]:
    return goldens.told(TZ="Asia/Kathmandu")


def test_a_store_with_all_there_is_answers_as_it_did(story: dict[str, Any]) -> None:
    same("answers", story["answers"])


def test_every_command_prints_documents_of_the_same_shape(story: dict[str, Any]) -> None:
    same("commands", story["shapes"])


def test_every_command_with_json_is_in_the_story() -> None:
    names = set(goldens.commands())
    assert {"recall", "task", "task new", "keys rotate", "viz series"} <= names
    assert names - goldens.kept("commands").keys() == goldens.SERVERS.keys(), "add a line to story.txt"


def test_the_tools_are_described_as_they_were() -> None:
    same("mcp", goldens.tools())


def test_the_http_contract_is_what_it_was() -> None:
    same("openapi", goldens.contract())


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"a": 1, "b": "x"}, {"a": 2}, {"a": "int", "b?": "str"}),
        ({"a": None}, {"a": 0.5}, {"a": {"|": ["float", "null"]}}),
        ([{"a": 1}, {"a": 1, "b": []}], [{"b": [True]}], [{"a?": "int", "b?": ["bool"]}]),
        ([], [], []),
        ({"a": {"b": None}}, {"a": None}, {"a": {"|": [{"b": "null"}, "null"]}}),
    ],
)
def test_the_shape_of_several_documents_is_what_they_have_in_common(one: Any, other: Any, both: Any) -> None:
    assert merged(shape(one, HERE), shape(other, HERE)) == both
    assert merged(merged(shape(one, HERE), shape(other, HERE)), shape(one, HERE)) == both


def test_a_dropped_key_and_a_changed_value_are_reported() -> None:
    document = {"found": [{"memory_id": "x", "score": 0.25}], "left_out": []}
    dropped, changed = copy.deepcopy(document), copy.deepcopy(document)
    del dropped["found"][0]["score"]
    changed["found"][0]["score"] = 0.250002
    told = ['found[0].score: missing now: "float"']
    assert list(differences(shape(document, HERE), shape(dropped, HERE))) == told
    told = ["found[0].score: kept 0.25, found 0.250002"]
    assert list(differences(Normalised(HERE)(document), Normalised(HERE)(changed))) == told


def test_what_only_a_machine_or_a_storage_decides_is_left_out() -> None:
    given = {
        "file": f"{HERE}/a.json",
        "seconds": 1.5,
        "vectors": 3,
        "store_id": "0b000001-0000-4000-9000-000000000000",
        "score": 0.1234567,
        "problem": None,
    }
    told = {"file": "<folder>/a.json", "store_id": "<id of the storage>", "score": 0.123457}
    assert Normalised(HERE)(given, "verify") == told
    assert Normalised(HERE)(given, "backup") == told | {"vectors": 3}
    assert Normalised(HERE)(given, "doctor") == "<shape only>"


def test_a_record_is_told_once_and_again_when_it_has_changed() -> None:
    normalised = Normalised(HERE)
    record = {"id": "a", "content": "x", "type": "semantic", "outcome": "neutral"}
    assert normalised(record) == record
    assert normalised([record]) == ["<as before: a>"]
    assert normalised(record | {"content": "y"}) == record | {"content": "y"}
