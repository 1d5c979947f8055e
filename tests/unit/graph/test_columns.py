"""Conversion of rows to the engine's columns and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.errors import GraphError
from memgraph.graph.columns import columns_of, from_engine, text_of, to_param, visible
from memgraph.graph.schema import tables
from memgraph.model.timestamps import to_iso
from tests.engines import Engine

MEMORY = tables()["Memory"]


def test_times_round_trip_as_naive_utc() -> None:
    moment = datetime(2026, 2, 1, 9, 0, 0, 123_000)  # noqa: DTZ001 - what the engine gives
    assert to_param("2026-02-01T09:00:00.123Z", "TIMESTAMP") == moment
    assert to_param("2026-02-01T09:00:00.123Z", "TIMESTAMP").tzinfo is None
    assert from_engine({"at": moment}) == {"at": "2026-02-01T09:00:00.123Z"}


def test_an_invalid_time_is_a_graph_error() -> None:
    """Damage produces years outside of the calendar."""

    class Damaged(datetime):
        def utcoffset(self) -> Any:
            return None

        def astimezone(self, *_: Any) -> Any:
            raise OverflowError

    with pytest.raises(GraphError, match="the column at"):
        from_engine({"at": Damaged(1, 1, 1)})


def test_unset_is_an_empty_text_and_null_elsewhere() -> None:
    assert to_param(None, "STRING") == ""
    assert to_param(None, "STRING[]") == []
    assert to_param(None, "TIMESTAMP") is None


@pytest.mark.parametrize(
    "items",
    [
        [{"type": "T", "message": ""}],
        [{"type": "T", "message": ""}, {"type": "", "message": "m", "resolution": "r"}],
        [{"message": "m"}, {}, {"type": "T"}],
    ],
)
def test_lists_of_records_become_equally_long_lists_without_gaps(items: list[dict[str, str]]) -> None:
    columns = columns_of(MEMORY, {"errors_encountered": items})
    assert columns == {
        f"errors_encountered_{part}": [item.get(part, "") for item in items]
        for part in ("type", "message", "resolution")
    }


def test_unset_fields_are_left_out() -> None:
    values = {"a": None, "b": [], "c": "", "d": 0, "e": False, "_id": {"offset": 1}, "_label": "Memory"}
    assert from_engine(values) == {"d": 0, "e": False}
    assert visible(MEMORY, {"title": "", "access_count": 0}) == {"access_count": 0}


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(to_iso)  # noqa: DTZ001
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.fixed_dictionaries(
    {"id": st.uuids().map(str)},
    optional={
        "content": TEXTS, "title": TEXTS, "duration_seconds": FLOATS, "confidence": FLOATS, "access_count": st.integers(0, 2**31 - 1),
        "is_pinned": st.booleans(), "created_at": TIMES, "event_date": TIMES, "tags": st.lists(TEXTS, min_size=1),
        "entities": st.lists(st.fixed_dictionaries({"name": TEXTS, "kind": TEXTS, "about": st.booleans()}), min_size=1),
        "action_log": st.lists(st.fixed_dictionaries({"t": FLOATS, "action": TEXTS}, optional={"error": TEXTS}), min_size=1),
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Engine(tmp_path_factory.mktemp("texts") / "graph", idle_s=600.0)
    yield made
    made.close()


@settings(max_examples=25)
@given(rows=st.lists(ROWS, min_size=1, max_size=20, unique_by=lambda row: row["id"]))
def test_the_engine_converts_columns_to_the_same_texts(engine: Any, rows: list[dict[str, Any]]) -> None:
    """Otherwise every comparison with what was written would find a difference."""
    from memgraph.graph.rows.statements import sums_of
    from memgraph.graph.rows.writing import hash_sum
    from memgraph.ports import Change

    engine.apply([Change("Memory", row["id"], None, row) for row in rows], {"seq": 1})
    with engine._session.use() as connection:
        [[count, total]] = connection.run(*sums_of(MEMORY))
        assert (count, int(total)) == (len(rows), hash_sum(connection, [text_of(MEMORY, row) for row in rows]))
    engine.apply([Change("Memory", row["id"], row, None) for row in rows], {"seq": 2})
