"""Values and messages between a process and its child round-trip."""

from __future__ import annotations

import enum
import os
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.graph.wire import decoded, encoded, frame, plain, received, taken


class Colour(enum.StrEnum):
    RED = "red"


scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**200), max_value=2**200)
    | st.floats()
    | st.text(st.characters(exclude_categories=("Cs",)))
    | st.sampled_from(["$kind", "value", "map"])
    | st.binary()
    | st.dates()
    | st.datetimes().map(lambda moment: moment.replace(fold=0))
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$kind", "value", "a"]) | st.integers() | st.dates(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_values_round_trip(value: Any) -> None:
    assert repr(decoded(encoded(value))) == repr(value)  # distinguishes nan, 0.0 and -0.0


def test_a_string_enumeration_member_is_text() -> None:
    assert repr(decoded(encoded([Colour.RED]))) == "['red']"


def test_an_aware_time_becomes_utc() -> None:
    moment = datetime(2026, 2, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert decoded(encoded(moment)) == moment.astimezone(UTC).replace(tzinfo=None)


def test_unsupported_types_are_refused() -> None:
    deep: list[Any] = []
    deep.append(deep)
    for value in (object(), {1, 2}, (1, 2), range(3), "\ud800", {"\ud800": 1}, [lambda: 1], deep):
        with pytest.raises((TypeError, ValueError)):
            encoded(value)


def test_frames_are_read_whole_from_a_stream() -> None:
    messages = [b"", b"x", b"y" * 70_000, b"z"]
    stream = b"".join(map(frame, messages))
    buffer, found = bytearray(), []
    for start in range(0, len(stream), 7):
        buffer += stream[start : start + 7]
        while (message := taken(buffer)) is not None:
            found.append(message)
    assert found == messages
    assert not buffer


def test_the_end_of_a_descriptor_gives_none() -> None:
    reader, writer = os.pipe()
    os.write(writer, frame(b"one") + frame(b"two")[:5])
    os.close(writer)
    assert received(reader) == b"one"
    assert received(reader) is None
    os.close(reader)


def test_results_are_plain_data() -> None:
    moment = datetime(2026, 2, 1, tzinfo=timezone(timedelta(hours=1)))
    value = {"_id": 1, "at": moment, "list": [moment, {"_src": 1, "x": [1]}], "none": None}
    assert plain(value) == {
        "at": "2026-01-31T23:00:00.000Z",
        "list": ["2026-01-31T23:00:00.000Z", {"x": [1]}],
        "none": None,
    }
    kept = [1, 2.5, date(2026, 2, 1), UUID(int=1), Decimal("1.50"), b"x", {1: "one"}]
    assert plain(kept) == kept


def test_a_path_is_its_nodes_and_edges() -> None:
    path = {"_nodes": [{"_id": 1, "_label": "Tag", "id": "a"}], "_rels": [{"_src": 1, "score": 1.0}]}
    assert plain(path) == {"nodes": [{"id": "a"}], "edges": [{"score": 1.0}]}


def test_a_memorys_record_is_not_shown() -> None:
    assert plain([{"_label": "Memory", "_id": 1, "id": "a", "record": "{}"}]) == [{"id": "a"}]
    assert plain({"record": "{}"}) == {"record": "{}"}
