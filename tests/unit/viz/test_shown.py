"""Pictures and exports leave out what is suppressed, archived, sensitive or private, unless it is named."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import InvalidInputError
from memgraph.viz.shown import count_shown, shown_memories

Store = Any
ALL = {"plain", "next", "sensitive", "private", "suppressed", "archived"}


def titles(store: Store, **asked: Any) -> set[str | None]:
    found = {memory.title for memory in shown_memories(store, project_id="shop", **asked)}
    assert count_shown(store, project_id="shop", **asked) == len(found)
    return found


@pytest.mark.parametrize("named", [(), ("sensitive",), ("private", "archived"), ("suppressed",), ("public",)])
def test_only_what_is_named_is_shown_besides(motley: Store, named: tuple[str, ...]) -> None:
    assert titles(motley, include=named) == {"plain", "next", *named} - {"public"}


def test_all_can_be_named(motley: Store) -> None:
    assert titles(motley, include={"sensitive", "private", "suppressed", "archived"}) == ALL
    assert titles(motley, include="archived") == {"plain", "next", "archived"}


def test_the_most_relevant_come_first_and_a_limit_keeps_these(motley: Store) -> None:
    everything = shown_memories(motley)
    assert everything[0].title == "plain"  # it alone was used
    assert [one.relevance_score for one in everything] == sorted(
        (one.relevance_score for one in everything), reverse=True
    )
    assert [one.id for one in shown_memories(motley, limit=3)] == [one.id for one in everything[:3]]
    assert shown_memories(motley, limit=0) == []


def test_a_period_counts_by_when_it_happened(learned: Store) -> None:
    assert count_shown(learned, since="2026-02-02", until="2026-02-02") == 3
    assert (
        count_shown(learned, since="2026-02-02T09:00:00.001Z") == count_shown(learned) - 3 - 1
    )  # G, said to be of the 1st
    assert count_shown(learned, until="2026-02-01") == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"include": {"secret"}}, "include"),
        ({"since": "2027-01-01", "until": "2026-01-01"}, "since"),
        ({"limit": -1}, "limit"),
    ],
)
def test_what_cannot_be_asked_is_refused(motley: Store, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        shown_memories(motley, **given)
    assert refused.value.field == field
