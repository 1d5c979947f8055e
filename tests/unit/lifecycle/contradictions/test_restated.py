"""What a user states in a later session replaces what the same user stated before about the same thing, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import memgraph
from memgraph.lifecycle.intake.consolidate import ConsolidationPipeline

Say = Callable[..., None]


@pytest.fixture
def memory(store: Any) -> memgraph.MemGraph:
    return memgraph.MemGraph(store)


@pytest.fixture
def say(memory: memgraph.MemGraph) -> Say:
    """Read a session of the given day in which the user says something."""

    def session(day: int, words: str, project: str = "shop") -> None:
        at = f"2026-01-{day:02d}T12:00:00Z"
        log = {
            "build_id": f"{project}-{day}",
            "project_id": project,
            "source": "transcript",
            "started_at": at,
            "completed_at": at,
            "build_outcome": "success",
            "tasks": [],
            "user_interventions": [{"timestamp": at, "action": words}],
        }
        ConsolidationPipeline(memory.store).consolidate(log)

    return session


def in_force(memory: memgraph.MemGraph) -> list[str]:
    """Return what holds, oldest first."""
    memory.contradictions.find()
    held = [one for one in memory.store.every_memory() if one.invalid_at is None]
    return [one.content.split(": ", 1)[1] for one in sorted(held, key=lambda one: one.occurred_at)]


REPLACED = [
    ("Never push to the main branch.", "Always push to the main branch."),
    ("We use npm for the frontend.", "We switched from npm to pnpm."),
    ("Use nose, not unittest.", "We no longer use nose."),
]

UNTOUCHED = [
    ("Always run make lint before committing.", "You can skip make docs from now on, CI does it."),
    ("Always run make lint before committing.", "You can skip make lint on documentation branches from now on."),
    ("Always run the integration tests before merging.", "You can skip the unit tests from now on."),
    ("Never push to the main branch.", "You can always push to the docs branch."),
    ("Never push to the main branch.", "You must never push to the release branch."),
    ("The staging database is on port 5433.", "The production database has moved to port 5434."),
    ("The worker runs in a loop.", "The worker has moved to its own repository, worker-core."),
    ("The staging database is on port 5433.", "The staging database is on the host db1.shop.example."),
    ("We use docker.", "We no longer use docker compose."),
    ("Always write tests for the parser.", "Never write comments in the parser."),
]


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_a_later_statement_replaces_the_earlier_one(
    older: str, newer: str, memory: memgraph.MemGraph, say: Say
) -> None:
    say(1, older)
    say(2, newer)

    assert in_force(memory) == [newer]
    (ended,) = [one for one in memory.store.every_memory() if one.invalid_at]
    assert ended.invalid_at == "2026-01-02T12:00:00.000Z"
    assert memory.contradictions.list() == []


@pytest.mark.parametrize(("older", "newer"), UNTOUCHED)
def test_what_is_about_something_else_stays(older: str, newer: str, memory: memgraph.MemGraph, say: Say) -> None:
    say(1, older)
    say(2, newer)

    assert in_force(memory) == [older, newer]
    assert memory.contradictions.list() == []


def test_a_rule_that_is_taken_back_in_other_words_is_asked_about(memory: memgraph.MemGraph, say: Say) -> None:
    older, newer = "Always run make lint before committing.", "You can skip make lint before committing from now on."
    say(1, older)
    say(2, newer)

    assert in_force(memory) == [older, newer]
    memory.maintenance.sleep(phases=["work-orders"])
    assert [order.kind for order in memory.distillation.list()] == ["contradiction"]


def test_another_project_keeps_its_rules_and_an_older_session_replaces_nothing(
    memory: memgraph.MemGraph, say: Say
) -> None:
    older, newer = REPLACED[0]
    say(2, older)
    say(3, newer, "depot")
    say(1, newer)

    assert older in in_force(memory)
