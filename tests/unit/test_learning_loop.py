"""The loop of seed 2: recall, act, record it, hear what the user thinks, learn, and recall something else.

Until rules are made of episodes by themselves, what was learned is what the agent observes; to be consolidated means that a second
episode confirms it, and supports it in the graph.
"""

from __future__ import annotations

from typing import Any

import memgraph

WANTED = "Book a table for two in Lisbon"
LEARNED = "Avoid the cheapest place when booking a table: the user wants it quiet"


def test_what_failed_is_recalled_as_a_failure_together_with_what_was_learned_from_it(store: Any, clock: Any) -> None:
    memory = memgraph.MemGraph(store)

    def act(session: str) -> str:
        """Do what the agent would do without memory, to a user who does not like it."""
        return memory.save_episode(
            WANTED, "The user named a budget", "Proposed the cheapest place", "success",
            agent_name="dining", project="trips", session_id=session,
        ).episode_id  # fmt: skip

    assert memory.recall(WANTED, project="trips").memories == []

    first = act("monday")
    seen = memory.recall(WANTED, project="trips")
    assert [one.id for one in seen.memories] == [first]
    assert "Outcome: success." in seen.injected_prompt_prefix
    assert seen.explanations[0].negative == 0.0

    memory.update_episode_with_feedback(first, "meh", comment="far too loud")
    learned = memory.save_observation(LEARNED, context="dining", outcome="failure", episode_id=first)
    clock.advance(days=1)
    second = act("tuesday")
    memory.update_episode_with_feedback(second, "meh")
    confirmed = memory.save_observation(LEARNED, context="dining", outcome="failure", episode_id=second)
    assert (learned.action, confirmed.action, confirmed.memory_id) == ("created", "consolidated", learned.memory_id)

    then = memory.recall(WANTED, project="trips")
    assert {one.id for one in then.memories} == {first, second, learned.memory_id}
    assert f"Semantic: {LEARNED}" in then.injected_prompt_prefix
    assert then.injected_prompt_prefix.count("Outcome: failure. User feedback: meh") == 2
    assert "Outcome: success" not in then.injected_prompt_prefix
    assert all(one.negative > 0.0 for one in then.explanations)

    (observation,) = [one for one in then.memories if one.id == learned.memory_id]
    assert isinstance(observation, memgraph.SemanticMemory)
    assert observation.supporting_memory_ids == sorted([first, second])
    before = observation.access_count
    memory.record_outcome(then.query_id, "love", used=[learned.memory_id or ""], overridden=[first])
    (after,) = store.read_memories([learned.memory_id or ""])
    assert after.access_count == before + 2  # it was recalled, and it was used

    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest
    again = memory.recall(WANTED, project="trips")
    assert again.injected_prompt_prefix == then.injected_prompt_prefix
