"""The projection's state: offset, digest, vector rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from memgraph.fold import EmptyRows, Projection, Workspace, project
from memgraph.fold.fold import digest_after
from memgraph.journal.envelope import Chain, Event
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted
from memgraph.ports import Change

NOW = "2026-02-01T09:00:00.000Z"
Added = Callable[..., MemoryAdded]


def event(payload: Any, seq: int = 1) -> Event:
    return Event(seq, "c", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", NOW, NOW, "s")


def at(seq: int) -> Chain:
    return Chain("store", seq, f"sig{seq}", NOW)


def test_it_round_trips_through_its_row() -> None:
    state = Projection("store", 5, "sig", NOW, 2**255 + 1)
    assert Projection.from_row(state.as_row()) == state
    assert Projection.from_row(Projection("store").as_row()) == Projection("store")


def test_it_moves_with_the_journal(added: Added) -> None:
    changes, after = project([event(added(1))], at(3), Projection("store"), EmptyRows())
    assert (after.seq, after.signature, after.timestamp) == (3, "sig3", NOW)
    assert after.digest == digest_after(0, changes) != 0


def test_the_digest_is_independent_of_order() -> None:
    changes = [Change("Memory", f"id{n}", None, {"id": f"id{n}", "content": "x" * n}) for n in range(20)]
    shuffled = changes[:]
    random.Random(3).shuffle(shuffled)
    assert digest_after(0, changes) == digest_after(0, shuffled) < 2**256


def test_undone_changes_leave_the_digest_unchanged(added: Added) -> None:
    workspace = Workspace(EmptyRows())
    changes, after = project(
        [event(added(1, tags=["a"])), event(MemoryDeleted(id=added(1).memory.id))],
        at(2),
        Projection("store"),
        EmptyRows(),
    )
    assert after.digest == 0
    assert not any(change.table == "Memory" for change in changes)
    assert list(workspace.changes()) == []


@pytest.mark.parametrize("column", ["seq", "vector_row", "vector_sha256", "embedding_model", "embedded_at"])
def test_columns_that_may_differ_between_equal_states_are_left_out(column: str) -> None:
    plain = [Change("Memory", "a", None, {"id": "a", "content": "x"})]
    other = [Change("Memory", "a", None, {"id": "a", "content": "x", column: "anything"})]
    assert digest_after(0, plain) == digest_after(0, other)


@pytest.mark.parametrize(
    "other",
    [
        Change("Memory", "a", None, {"id": "a", "content": "y"}),
        Change("Memory", "a", None, {"id": "a", "content": "x", "title": ""}),
        Change("SUPPORTS", ("a", "b"), None, {}),
        Change("SUPPORTS", ("b", "a"), None, {}),
        Change("CONTRADICTS", ("a", "b"), None, {}),
        Change("SUPPORTS", ("a", "b"), None, {"score": 0.5}),
    ],
)
def test_changes_of_content_change_the_digest(other: Change) -> None:
    plain = [
        Change("Memory", "a", None, {"id": "a", "content": "x"}),
        Change("SUPPORTS", ("a", "b"), None, {"score": 0.25}),
    ]
    assert digest_after(0, [other]) not in {0, digest_after(0, plain), *(digest_after(0, [one]) for one in plain)}


@pytest.mark.parametrize("table", ["Tag", "TAGGED", "NEXT", "Recall", "RECALLED", "Project", "Build"])
def test_derived_rows_do_not_count(table: str) -> None:
    key = ("a", "b") if table.isupper() else "a"
    assert digest_after(5, [Change(table, key, None, {"id": "a"})]) == 5
