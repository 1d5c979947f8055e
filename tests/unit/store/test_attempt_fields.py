"""The fields of an attempt follow the text that tells of it."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.lifecycle.dedup.near_duplicates import merged
from memgraph.model.memory import EpisodicMemory, SemanticMemory
from memgraph.model.relevance import ForgettingCurveConfig

NOW = "2026-02-01T09:00:00.000Z"
TRIAL = {
    "type": "episodic",
    "content": "Failed trial: Light the lamp. Lesson: I should look at the desk first.",
    "asked": "Light the lamp.",
    "lesson": "I should look at the desk first.",
    "tools_called": ["look"],
    "attempt": 2,
}


def told(memory: Any) -> tuple[Any, ...]:
    return memory.asked, memory.lesson, memory.tools_called, memory.attempt


def test_a_changed_text_no_longer_describes_them(store: Any) -> None:
    kept = store.insert_memory(TRIAL)
    assert told(store.get_memory(kept.id)) == ("Light the lamp.", TRIAL["lesson"], ["look"], 2)
    store.update_memory(kept.id, confidence=0.5)
    assert told(store.get_memory(kept.id)) == ("Light the lamp.", TRIAL["lesson"], ["look"], 2)
    store.update_memory(kept.id, content="The lamp is broken.")
    assert told(store.get_memory(kept.id)) == (None, None, [], None)


def test_what_is_given_with_another_text_stays(store: Any) -> None:
    kept = store.insert_memory(TRIAL)
    store.update_memory(kept.id, content="Failed trial: Light the lamp. Lesson: Take a match.", lesson="Take a match.")
    assert told(store.get_memory(kept.id)) == (None, "Take a match.", [], None)


def test_of_a_generalisation_too(store: Any) -> None:
    text = "Failed in 3 trials of Kitchen 7, solved in another. The lesson: “Open it.”"
    made = SemanticMemory(content=text, asked="Kitchen 7", lesson="Open it.", is_solved=True)
    kept = store.insert_memory(made)
    store.update_memory(kept.id, content="Kitchen 7 was solved.")
    found = store.get_memory(kept.id)
    assert (found.asked, found.lesson, found.is_solved) == (None, None, None)


@pytest.mark.embedded
def test_they_are_columns_of_the_graph(store: Any) -> None:
    store.insert_memory(TRIAL)
    rows = store.cypher("MATCH (m:Memory) WHERE m.asked <> '' RETURN m.lesson, m.attempt, m.tools_called, m.worked")
    assert [tuple(row.values()) for row in rows] == [(TRIAL["lesson"], 2, ["look"], "")]


def test_a_duplicate_whose_text_is_taken_brings_its_own() -> None:
    trial = EpisodicMemory(**{**TRIAL, "occurred_at": NOW})
    longer = EpisodicMemory(content=f"{trial.content} I also should take a match.", occurred_at=NOW, lesson="Longer.")
    curve = ForgettingCurveConfig()
    assert told(merged(trial, longer, NOW, curve)) == (None, "Longer.", [], None)
    assert told(merged(longer, trial, NOW, curve)) == (None, "Longer.", [], None)
    assert told(merged(trial, longer, NOW, curve, takes_text=False)) == told(trial)
