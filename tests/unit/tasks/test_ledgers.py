"""Ledgers: the last checkpoint of an agent."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph, NotFoundError
from memgraph.errors import MemGraphError, ScopeError
from memgraph.model.events.tasks import LedgerCheckpointed
from memgraph.model.ids import new_id
from memgraph.model.memory import SemanticMemory
from memgraph.model.results.tasks import LedgerContext


@pytest.fixture
def ledgers(tasks: Any) -> Any:
    return tasks.ledgers


def test_a_checkpoint_replaces_the_last_one_but_for_what_was_completed_and_learned(
    memory: MemGraph, tasks: Any, ledgers: Any, clock: Any
) -> None:
    learned = [memory.store.insert_memory(SemanticMemory(content=f"Pattern {n}", source="test")).id for n in range(2)]
    first = ledgers.checkpoint(
        "eng", current_task="login", goal="Tokens", tech_stack=["python"], learned=learned[:1], completed=["docs"]
    )
    context = LedgerContext(tech_stack=["python"], patterns_learned=learned[:1], current_goal="Tokens")
    assert (first.current_task, first.tasks_completed, first.context, first.state) == ("login", 1, context, None)
    clock.advance(seconds=60)
    second = ledgers.checkpoint("eng", completed=["login", "docs"], learned=learned[1:])
    assert (second.current_task, second.tasks_completed, second.context.current_goal) == (None, 2, None)
    assert set(second.context.patterns_learned) == set(learned)
    assert second.last_checkpoint > first.last_checkpoint
    ledgers.checkpoint("qa", goal="Test it")
    assert [one.agent_id for one in ledgers.list()] == ["qa", "eng"]
    assert ledgers.get("eng") == second
    memory.store.delete_memory(learned[0])
    assert ledgers.get("eng").context.patterns_learned == learned[1:]


def test_the_state_of_the_work_tree_is_read_on_request(ledgers: Any, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    assert ledgers.checkpoint("eng", work_tree=folder).state is None
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    (folder / "new.py").write_text("x")
    state = ledgers.checkpoint("eng", work_tree=folder).state
    assert (state.branch, state.last_git_commit, state.uncommitted_changes) == ("main", None, True)
    assert state.files_modified == ["new.py"]
    assert ledgers.checkpoint("eng", goal="x").state is None, "another checkpoint states it anew"


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({}, InvalidInputError, "states nothing"),
        ({"goal": ""}, InvalidInputError, "goal"),
        ({"current_task": "nowhere"}, NotFoundError, "nowhere"),
        ({"completed": ["nowhere"]}, NotFoundError, "nowhere"),
        ({"learned": [new_id()]}, NotFoundError, "no memory"),
        ({"tech_stack": ["x" * 401]}, InvalidInputError, "tech_stack"),
        ({"work_tree": "/nowhere"}, MemGraphError, "is not a folder"),
    ],
)
def test_what_is_refused(ledgers: Any, given: Any, error: Any, says: str) -> None:
    with pytest.raises(error, match=says):
        ledgers.checkpoint("eng", **given)
    with pytest.raises(NotFoundError, match="no ledger"):
        ledgers.get("eng")


def test_what_is_of_another_task_is_not_learned_here(memory: MemGraph, tasks: Any, ledgers: Any) -> None:
    other = memory.store.insert_memory(SemanticMemory(content="Of the docs", source="test", task_id="docs")).id
    with pytest.raises(NotFoundError):
        ledgers.checkpoint("eng", current_task="login", learned=[other])
    with pytest.raises(ScopeError):
        memory.store.commit("system", [LedgerCheckpointed(agent="eng", current_task="login", learned=[other])])
    assert ledgers.checkpoint("eng", current_task="docs", learned=[other]).context.patterns_learned == [other]
