"""The history of a memory in an agent's view: of what the agent may have, and of its own recalls only."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.errors import NotFoundError

WHY = "planning the payments of March"


@pytest.fixture
def memory(store: Any) -> Any:
    return memgraph.MemGraph(store)


def test_recalls_of_others_are_in_no_agents_view(memory: Any) -> None:
    plan = memory.store.insert_memory({"type": "semantic", "content": "The plan for the week"}).id
    memory.store.insert_memory({"type": "semantic", "content": "The plan for the mortgage", "domain": "financial"})
    mine = memory.recall("the plan", agent="planner", project_id="garden", session_id="monday")
    theirs = memory.recall("the plan", agent="banker", project_id="bank", session_id="friday", justification=WHY)
    memory.record_outcome(theirs.query_id, "failure", used=[plan])
    assert len(theirs.memories) == 2
    with memory.as_agent("planner") as view:
        recalls = [one.what for one in view.curation.history(plan) if "recalled" in one.what or "used in" in one.what]
        assert recalls == ["recalled, in place 1 of 1"]
        assert [one["id"] for one in view.store.cypher("MATCH (r:Recall) RETURN r.id AS id")] == [mine.query_id]
        told = repr([event.content for event in view.store.reader.history(plan)]) + repr(
            [line.data for line in view.store.reader._projector.journal.lines()]
        )
        assert not any(word in told for word in ("banker", "bank", "friday", "mortgage"))


def test_a_memory_that_was_lowered_to_public_has_a_history_and_a_private_one_none(memory: Any) -> None:
    secret = memory.store.insert_memory(
        {"type": "semantic", "content": "A secret word", "privacy_tier": "private", "reason": "told in confidence"}
    ).id
    memory.store.update_memory(secret, content="The plan for the week")
    memory.store.update_memory(secret, privacy_tier="public")
    memory.store.update_memory(secret, is_pinned=True)
    other = memory.store.insert_memory({"type": "semantic", "content": "Another", "privacy_tier": "private"}).id
    memory.recall("the plan")  # by an unnamed agent, as is the view's, but who knows whether it is the same
    with memory.as_agent() as view:
        found = view.curation.history(secret)
        assert [one.what for one in found] == ["added: “The plan for the week”", "pinned", "accessed"]
        origin = view.curation.why(secret)
        assert origin.made is not None
        assert origin.made.event == found[0].event
        assert "secret word" not in repr((found, origin)) + repr(view.store.reader.history(secret))
        with pytest.raises(NotFoundError):
            view.curation.history(other)


def test_no_field_of_a_view_names_a_memory_that_is_not_in_it(memory: Any) -> None:
    def episode(text: str, **fields: Any) -> str:
        given = {"type": "episodic", "content": text, "project_id": "p", **fields}
        kept: str = memory.store.insert_memory(given).id
        return kept

    first, secret = episode("First the plan"), episode("Then a secret", privacy_tier="private")
    third, gone = episode("Third the plan"), episode("Then what was deleted")
    last = episode("Last the plan", privacy_tier="private")
    given = {"type": "semantic", "content": "In general", "source_event_ids": [first, secret, gone, "turn 7"]}
    general = memory.store.insert_memory(given).id
    memory.store.delete_memory(gone)
    memory.store.update_memory(last, privacy_tier="public")  # it is there from this event on
    with memory.as_agent() as view:
        rows = {one.id: one for one in view.store.every_memory()}
        assert rows.keys() == {first, third, last, general}
        assert rows[general].source_event_ids == [first, "turn 7"]
        told = repr(list(view.store.reader.events_after(0))) + repr(view.store.cypher("MATCH (m:Memory) RETURN m.*"))
        assert not any(one in told for one in (secret, gone))
