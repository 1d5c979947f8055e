"""Work orders in the fold: requested once, closed once."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.model.events.records import DistilAnswered, DistilAttempted, DistilRequested, DistilSkipped
from memgraph.model.ids import natural_id
from tests.unit.fold.conftest import NOW

ORDER = natural_id("work order", "one")
LATER = "2026-02-02T09:00:00.000Z"
ANSWERED = DistilAnswered(id=ORDER, answered_at=LATER, answered_by="A", trust_class="tool", new_memory_ids=[ORDER])
SKIPPED = DistilSkipped(id=ORDER, skipped_at=LATER, reason="no")


def requested(**changes: Any) -> DistilRequested:
    known = {
        "id": ORDER,
        "kind": "community",
        "question": "Why?",
        "excerpt": "[1]\ntext",
        "trust_class": "agent",
        "value": 0.5,
    }
    return DistilRequested(**{**known, "source_at": NOW, "requested_at": NOW, "subject_ids": [], **changes})


def test_an_order_is_requested_once(state: Any) -> None:
    state.fold(requested())
    assert state.fold(requested(excerpt="another", value=0.9)) == []
    [row] = state.table("WorkOrder").values()
    assert (row["state"], row["excerpt"], row["value"]) == ("open", "[1]\ntext", 0.5)


def test_an_order_that_is_answered_in_part_stays_open_and_gathers_memories(state: Any) -> None:
    other = natural_id("work order", "two")
    part = DistilAttempted(
        id=ORDER,
        attempted_at=NOW,
        answered_by="B",
        trust_class="web",
        refused=1,
        new_memory_ids=[other],
        verdict="both hold",
    )
    assert state.fold(part) == [], "there is no such order"
    state.fold(requested(), part, part)
    row = dict(state.get("WorkOrder", ORDER))
    assert (row["state"], row["attempts"], row["new_memory_ids"], row["answered_by"]) == ("open", 2, [other], "B")
    state.fold(ANSWERED)
    assert state.fold(part) == []
    row = dict(state.get("WorkOrder", ORDER))
    assert (row["state"], row["attempts"], row["new_memory_ids"]) == ("answered", 2, [other, ORDER])
    assert (row["answered_by"], row["verdict"]) == ("A", "both hold")


@pytest.mark.parametrize(
    ("first", "second", "closed"), [(ANSWERED, SKIPPED, "answered"), (SKIPPED, ANSWERED, "skipped")]
)
def test_an_order_is_closed_once(state: Any, first: Any, second: Any, closed: str) -> None:
    assert state.fold(first) == [], "there is no such order"
    state.fold(requested())
    state.fold(first)
    row = dict(state.get("WorkOrder", ORDER))
    assert state.fold(second, first, requested()) == []
    assert (row["state"], row["closed_at"]) == (closed, LATER)
    assert row.get("answered_by") == ("A" if closed == "answered" else None)
    assert row.get("skip_reason") == ("no" if closed == "skipped" else None)
