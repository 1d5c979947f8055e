"""What the user has replaced is not reopened by an agent that says it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import memgraph

YES, NO = "The importer handles empty files", "The importer does not handle empty files"


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> memgraph.MemGraph:
    return memgraph.MemGraph(open_store())


def test_a_resolved_contradiction_stays_resolved(memory: memgraph.MemGraph, clock: Any) -> None:
    stale, kept = (memory.save_observation(text).memory_id or "" for text in (YES, NO))
    memory.contradictions.resolve(stale, kept, keep=kept)
    clock.advance(days=1)
    again = memory.save_observation(YES)
    assert (again.action, again.memory_id) == ("superseded", None)
    assert f"`memgraph unsupersede {stale} --by {kept}` takes that back" in (again.notice or "")
    assert memory.contradictions.list() == []
    assert [one.content for one in memory.recall("does the importer handle empty files").memories] == [NO]
    assert memory.save_observation(YES, trust_class="user").action == "created"


def test_once_the_decision_is_taken_back_it_is_confirmed_again(memory: memgraph.MemGraph) -> None:
    stale, kept = (memory.save_observation(text).memory_id or "" for text in (YES, NO))
    memory.contradictions.resolve(stale, kept, keep=kept)
    memory.curation.undo()
    assert memory.save_observation(YES).memory_id == stale


def test_what_the_user_remembered_later_is_not_contradicted_by_the_old_text(
    memory: memgraph.MemGraph, clock: Any
) -> None:
    memory.save_observation("The deploy port is 8080.")
    clock.advance(minutes=1)
    memory.commands.remember("The deploy port is 9090.")
    clock.advance(days=1)
    assert memory.save_observation("The deploy port is 8080.").action == "superseded"
    assert memory.contradictions.list() == []


def test_what_another_observation_replaced_may_be_true_again(memory: memgraph.MemGraph) -> None:
    stale, kept = (memory.save_observation(text).memory_id or "" for text in (YES, NO))
    memory.store.supersede(stale, by=kept)
    assert memory.save_observation(YES).action == "created"
