"""Values on their way into the engine and out of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from memgraph.graph.values import from_engine, plain, to_engine


def test_times_become_naive_utc_and_come_back() -> None:
    moment = datetime(2026, 2, 1, 9, 0, 0, 123_000)  # noqa: DTZ001 - what the engine gives
    assert to_engine("2026-02-01T09:00:00.123Z", "TIMESTAMP") == moment
    assert to_engine("2026-02-01T09:00:00.123Z", "TIMESTAMP").tzinfo is None
    assert from_engine({"at": moment}) == {"at": "2026-02-01T09:00:00.123Z"}


def test_structs_become_whole_and_come_back_sparse() -> None:
    kind = "STRUCT(type STRING, message STRING, resolution STRING)[]"
    whole = to_engine([{"type": "T", "message": ""}], kind)
    assert whole == [{"type": "T", "message": "", "resolution": None}]
    assert from_engine({"errors": whole}) == {"errors": [{"type": "T", "message": ""}]}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("x", "STRING"),
        (3, "INT64"),
        (0.5, "DOUBLE"),
        (True, "BOOLEAN"),
        (["a"], "STRING[]"),
        (None, "STRUCT(a STRING)[]"),
    ],
)
def test_other_values_pass_as_they_are(value: object, kind: str) -> None:
    assert to_engine(value, kind) == value


def test_what_is_not_set_is_left_out() -> None:
    values = {"a": None, "b": [], "c": "", "d": 0, "e": False, "_id": {"offset": 1}, "_label": "Memory"}
    assert from_engine(values) == {"c": "", "d": 0, "e": False}


def test_results_are_plain_data() -> None:
    moment = datetime(2026, 2, 1, tzinfo=timezone(timedelta(hours=1)))
    value = {"_id": 1, "at": moment, "list": [moment, {"_src": 1, "x": [1]}], "none": None}
    assert plain(value) == {
        "at": "2026-01-31T23:00:00.000Z",
        "list": ["2026-01-31T23:00:00.000Z", {"x": [1]}],
        "none": None,
    }
