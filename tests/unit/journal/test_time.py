"""Time in the journal never runs backwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memgraph.journal.journal import Journal

EARLY, NOON, LATE = ("2026-01-01T00:00:00.000Z", "2026-02-01T12:00:00.000Z", "2026-03-01T00:00:00.000Z")


def times(journal: Journal) -> list[str]:
    return [event.timestamp for commit in journal.replay() for event in commit.events]


def test_a_clock_set_back_is_clamped(open_one: Callable[..., Journal], write: Callable[..., Any], added: Any) -> None:
    journal = open_one(now=EARLY)
    for number, now in enumerate((NOON, EARLY, LATE, NOON), start=1):
        write(journal, added(number), now=now)
    assert times(journal) == [EARLY, NOON, NOON, LATE, LATE]
    again = open_one(now=EARLY)
    write(again, added(9), now=EARLY)
    assert times(open_one())[-1] == LATE


def test_the_store_shows_the_clamped_time(open_store: Callable[..., Any], clock: Any) -> None:
    store = open_store()
    clock.advance(days=10)
    first = store.insert_memory({"type": "episodic", "content": "first"})
    clock.advance(days=-9)
    second = store.insert_memory({"type": "episodic", "content": "second"})
    assert store.now() == second.created_at == first.created_at
    assert second.relevance_score == first.relevance_score == 1.0
    clock.advance(days=20)
    assert store.insert_memory({"type": "episodic", "content": "third"}).created_at > first.created_at


def test_commits_appended_together_share_a_timestamp(journal: Journal, added: Any) -> None:
    from memgraph.journal.envelope import CommitDraft

    with journal.locked():
        commits = journal.append([CommitDraft("global", [added(1)]), CommitDraft("global", [added(2), added(3)])], LATE)
    assert [len(commit.events) for commit in commits] == [1, 2]
    assert {commit.after for commit in commits} == {journal.tail}
    assert times(journal)[1:] == [LATE] * 3
