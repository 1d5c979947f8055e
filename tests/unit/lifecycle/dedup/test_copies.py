"""Copies: a text that comes in through several doors is one memory."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph import EpisodicMemory, SemanticMemory
from memgraph.lifecycle.dedup.near_duplicates import merge_copies
from memgraph.model.build import Candidate

TEXT = "Use pnpm and never npm in the shop"
WRITTEN = f"- **{TEXT.lower()}**."


@pytest.fixture
def memory(store: Any) -> memgraph.MemGraph:
    return memgraph.MemGraph(store, extractor=Said())


class Said:
    """An extractor that takes a task's description for what happened."""

    name = "said"

    def extract(self, build_log: Any) -> Any:
        found = [EpisodicMemory(content=task.description, outcome="success") for task in build_log.tasks]
        return memgraph.ExtractionResult(candidates=[Candidate(memory=one) for one in found])


def remember(memory: memgraph.MemGraph) -> None:
    memory.commands.remember(TEXT, project_id="shop")


def observe(memory: memgraph.MemGraph) -> None:
    memory.save_observation(WRITTEN, project="shop")


def ingest(memory: memgraph.MemGraph) -> None:
    task = {"task_id": "t", "agent_name": "Ann", "description": WRITTEN, "output": "", "outcome": "success"}
    times = {"started_at": "2026-01-05T10:00:00Z", "completed_at": "2026-01-05T11:00:00Z"}
    log = {"build_id": "b1", "project_id": "shop", "build_outcome": "success", "tasks": [task], **times}
    memory.consolidation.consolidate(log)


def in_force(memory: memgraph.MemGraph) -> list[Any]:
    superseded = {one.id for one in memory.store.list_memories(state="superseded")}
    return [one for one in memory.store.list_memories() if one.id not in superseded]


@pytest.mark.parametrize(
    "doors",
    [
        (remember, observe, ingest),
        (ingest, observe, remember),
        (observe, remember, ingest),
        (observe, remember, observe),
        (remember, remember),
        (ingest, remember, remember),
    ],
)
def test_one_text_through_several_doors_is_one_memory(memory: memgraph.MemGraph, clock: Any, doors: Any) -> None:
    assert in_force(memory) == []  # the graph is open; otherwise copies that are remembered are left to sleep
    for door in doors:
        clock.advance(days=1)
        door(memory)
    (kept,) = in_force(memory)
    assert (kept.content, kept.trust_class, kept.is_pinned) == (TEXT, "user", True)
    assert ("b1" in kept.evidence_build_ids) is (ingest in doors)
    digest = memory.store.digest()
    assert merge_copies(memory.store).merged == 0
    memory.store.rebuild()
    assert memory.store.digest() == digest


def test_an_observation_of_what_is_remembered_names_that_memory(memory: memgraph.MemGraph) -> None:
    remembered = memory.commands.remember(TEXT, tags=["a"]).data["ids"]
    saved = memory.save_observation(WRITTEN, confidence=0.1)
    assert (saved.action, [saved.memory_id]) == ("consolidated", remembered)
    again = memory.commands.remember(WRITTEN, tags=["b"])
    assert again.data["ids"] == remembered
    (kept,) = in_force(memory)
    assert (kept.tags, kept.confidence) == (["a", "b"], 1.0)


def test_sleep_merges_what_was_stored_apart(store: Any) -> None:
    for number, (text, trust) in enumerate([(TEXT, "web"), (WRITTEN, "agent"), (TEXT.upper(), "user")]):
        confidence = 1.0 - number / 4
        fields = {"content": text, "trust_class": trust, "confidence": confidence, "project_id": "shop"}
        store.insert_memory(SemanticMemory.parse(fields))
    assert merge_copies(store).merged == 2
    memory = memgraph.MemGraph(store)
    (kept,) = in_force(memory)
    assert (kept.content, kept.confidence) == (TEXT.upper(), 0.5), "a copy that is trusted less adds no confidence"
    assert {one.content for one in store.list_memories(state="superseded")} == {TEXT, WRITTEN}, "both texts survive"
    for one in store.list_memories(state="superseded"):
        store.unsupersede(one.id)
    assert merge_copies(store).merged == 0, "what was separated stays apart"


@pytest.mark.parametrize(
    "other",
    [
        {"project_id": "bank"},
        {"task_id": "T"},
        {"privacy_tier": "private"},
        {"domain": "work"},
        {"outcome": "failure"},
        {"content": "Use npm and never pnpm in the shop"},
        {"type": "episodic"},
        {"is_suppressed": True},
        {"source": "compression"},
        {"source": "work order"},
        {"correct_approach": "run pnpm"},
    ],
    ids=str,
)
def test_other_texts_or_scopes_are_kept_apart(store: Any, other: dict[str, Any]) -> None:
    fact = {"type": "semantic", "content": TEXT, "project_id": "shop"}
    store.insert_memory({**fact, "trust_class": "user"})
    store.insert_memory({**fact, **other})
    assert merge_copies(store).merged == 0


def test_texts_that_look_equal_but_differ_in_meaning_stay_apart(store: Any) -> None:
    pairs = [
        ("We deploy the app on Fridays?", "We deploy the app on Fridays."),
        ("Edit ../hosts to change the names", "Edit /hosts to change the names"),
        ("Use grep -V in the hook", "Use grep -v in the hook"),
        ("The ledger table has 10² rows", "The ledger table has 102 rows"),
        ("The freezer runs at –5 degrees", "The freezer runs at 5 degrees"),
        ("The offset is - 7 hours", "The offset is 7 hours"),
        ("Start the job in src/Shop", "Start the job in src/shop"),
        ("Name the method _close_ in adapters", "name the method close in adapters!"),
    ]
    for trust, texts in zip(("user", "agent"), zip(*pairs, strict=True), strict=True):
        for text in texts:
            store.insert_memory(SemanticMemory(content=text, trust_class=trust))
    assert merge_copies(store).merged == 1, "of the last pair only"


def test_what_two_speakers_say_does_not_meet_through_a_third_memory(memory: memgraph.MemGraph) -> None:
    said = [SemanticMemory(content=TEXT, project_id="shop", speaker=speaker) for speaker in ("Ann", "Bob", None)]
    memory.store.insert_memories(said)
    merge_copies(memory.store)
    assert len(in_force(memory)) == 2


def test_copies_of_one_speaker_are_merged_beside_an_older_one_of_another(memory: memgraph.MemGraph) -> None:
    for speaker, trust in (("Ann", "user"), ("Bob", "agent"), ("Bob", "agent")):  # the first stays by its trust
        memory.store.insert_memory(SemanticMemory(content=TEXT, project_id="shop", speaker=speaker, trust_class=trust))
    merge_copies(memory.store)
    assert sorted(str(one.speaker) for one in in_force(memory)) == ["Ann", "Bob"]
