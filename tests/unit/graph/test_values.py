"""Values on their way into the engine and out of it."""

from __future__ import annotations

from datetime import datetime

import pytest

from memgraph.graph.values import from_engine, to_engine, to_json


def test_times_become_naive_utc_and_come_back() -> None:
    moment = datetime(2026, 2, 1, 9, 0, 0, 123_000)  # noqa: DTZ001 - what the engine gives
    assert to_engine("2026-02-01T09:00:00.123Z", "TIMESTAMP") == moment
    assert to_engine("2026-02-01T09:00:00.123Z", "TIMESTAMP").tzinfo is None
    assert from_engine({"at": moment}) == {"at": "2026-02-01T09:00:00.123Z"}


ERRORS = "STRUCT(type STRING[], message STRING[], resolution STRING[])"


@pytest.mark.parametrize(
    "items",
    [
        [{"type": "T", "message": ""}],
        [{"type": "T", "message": ""}, {"type": "", "message": "m", "resolution": "r"}],
        [{"type": "T", "message": "m", "resolution": "r"}] * 3,
        [{"message": "m"}, {}, {"type": "T"}],
    ],
)
def test_lists_of_records_become_records_of_lists_and_come_back_sparse(items: list[dict[str, str]]) -> None:
    whole = to_engine(items, ERRORS)
    assert whole == to_json(items, ERRORS)
    assert list(whole) == ["type", "message", "resolution"]
    assert {len(part) for part in whole.values()} == {len(items)}
    assert from_engine({"errors": whole}) == {"errors": items}


def test_no_records_are_nothing() -> None:
    assert to_engine([], ERRORS) is None
    assert from_engine({"errors": {"type": None, "message": None, "resolution": None}}) == {}
    assert from_engine({"errors": {"type": [], "message": [], "resolution": []}}) == {}


def test_times_stay_text_in_json() -> None:
    assert to_json("2026-02-01T09:00:00.123Z", "TIMESTAMP") == "2026-02-01T09:00:00.123Z"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "STRING"),
        (3, "INT64"),
        (0.5, "DOUBLE"),
        (True, "BOOLEAN"),
        (["a"], "STRING[]"),
        (None, "STRUCT(a STRING[])"),
    ],
)
def test_other_values_pass_as_they_are(value: object, kind: str) -> None:
    assert to_engine(value, kind) == value


def test_what_is_not_set_is_left_out() -> None:
    values = {"a": None, "b": [], "c": "", "d": 0, "e": False, "_id": {"offset": 1}, "_label": "Memory"}
    assert from_engine(values) == {"c": "", "d": 0, "e": False}
