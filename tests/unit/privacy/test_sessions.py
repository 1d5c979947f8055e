"""What belongs to a session stays in it."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph


@pytest.fixture
def memory(store: Any) -> Any:
    return memgraph.MemGraph(store)


def turn(memory: Any, session: str, **fields: Any) -> str:
    given = {"type": "episodic", "content": "The plan is to meet on Monday", "source": "turn", "session_id": session}
    kept: str = memory.store.insert_memory({**given, **fields}).id
    return kept


def test_a_turn_that_is_moved_to_another_project_stays_in_its_session(memory: Any) -> None:
    old = turn(memory, "s1", project_id="p")
    new = memory.curation.edit(old, {"project_id": "q"}, as_new=True).memories[0].id
    assert memory.recall("the plan is to meet").memories == []
    assert memory.recall("the plan is to meet", session_id="s2").memories == []
    assert [one.id for one in memory.recall("the plan is to meet", session_id="s1").memories] == [new]


@pytest.mark.parametrize(("project", "session"), [(None, "bob\x1fs1"), ("p", "bob\x1fs1"), ("p\x1fbob", "x")])
def test_a_session_whose_name_ends_like_another_is_not_that_one(memory: Any, project: str | None, session: str) -> None:
    turn(memory, session, project_id=project)
    assert memory.recall("the plan is to meet", session_id=session).memories != []
    for other in ("s1", f"bob\x1f{session}", "bob"):
        if other != session:
            assert memory.recall("the plan is to meet", session_id=other).memories == []
