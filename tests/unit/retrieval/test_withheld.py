"""What was forgotten, or made private, is not told by what was made of it, from the next recall or list on."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.lifecycle.episodes import COMPRESSION_SOURCE as COMPRESSION
from memgraph.lifecycle.errors import SOURCE as ERROR_ANALYSIS
from memgraph.lifecycle.lessons import compress
from memgraph.lifecycle.procedures import SOURCE as PROCEDURES
from memgraph.model.results.learning import COUNTING_SOURCE, FEEDBACK_SOURCE, MADE_BY_SLEEP
from memgraph.privacy import OWNER

TASK = "deploy the shop to the cluster"
PLACES = ("Ada's laptop", "the blue runner", "the office", "a train")


@pytest.fixture
def learned(store: Any) -> tuple[Any, list[str], str]:
    """Return a store, four episodes, and what was made of them."""
    episodes = [
        store.insert_memory(
            {
                "type": "episodic", "project_id": "shop", "outcome": "failure", "build_id": f"b{number}",
                "tags": ["deploy", "cluster"], "content": f"The deploy of the shop to the cluster from {place} timed out",
            }
        ).id
        for number, place in enumerate(PLACES)
    ]  # fmt: skip
    made = compress(store, embedder=store.embedder).new_memory_ids
    assert len(made) == 1
    assert made[0] in recalled(store)
    return store, episodes, made[0]


def recalled(store: Any) -> list[str]:
    found = memgraph.MemoryRetrieval(store, access=OWNER).retrieve({"task_description": TASK, "project_id": "shop"})
    return [one.id for one in found.memories]


def listed(store: Any, **asked: Any) -> list[str]:
    return [one.id for one in store.list_memories(**asked)]


def test_the_names_are_those_of_the_phases() -> None:
    assert {COMPRESSION, COUNTING_SOURCE, ERROR_ANALYSIS, FEEDBACK_SOURCE, PROCEDURES} == MADE_BY_SLEEP


def test_memories_derived_from_a_forgotten_episode_are_withheld_until_rewritten(learned: Any) -> None:
    store, episodes, made = learned
    store.suppress(episodes[0])
    assert made not in recalled(store)
    assert listed(store) == listed(store, type="episodic")  # and nothing else
    assert len(listed(store)) == len(episodes) - 1
    assert made in listed(store, include_suppressed=True)
    assert listed(store, state="suppressed") == [episodes[0]]
    assert made not in [one.memory.id for one in memgraph.MemoryRetrieval(store).search_memories(TASK)]
    store.unsuppress(episodes[0])
    assert made in recalled(store)
    assert made in listed(store)
    store.suppress(episodes[0])
    compress(store, embedder=store.embedder)
    assert made in recalled(store)
    assert PLACES[0] not in store.get_memory(made).content


def test_memories_derived_from_a_private_episode_are_withheld_until_private(learned: Any) -> None:
    store, episodes, made = learned
    store.update_memory(episodes[0], privacy_tier="private")
    assert made not in recalled(store) + listed(store)
    store.archive(made)
    assert listed(store, state="archived") == [made]
    store.unarchive(made)
    compress(store, embedder=store.embedder)
    assert (made in recalled(store)) == (store.get_memory(made).privacy_tier == "private")


def test_a_pinned_memory_is_shown_though_its_evidence_was_forgotten(learned: Any) -> None:
    store, episodes, made = learned
    store.update_memory(made, is_pinned=True)
    for one in episodes:
        store.suppress(one)
    assert recalled(store) == listed(store) == [made]
    compress(store, embedder=store.embedder)
    assert recalled(store) == [made]  # who pinned it has vouched for it


def test_handwritten_linked_memories_are_shown(store: Any) -> None:
    source = store.insert_memory({"type": "episodic", "content": "The deploy timed out", "project_id": "shop"}).id
    own = store.insert_memory({"type": "semantic", "content": "Deploy the shop at night", "project_id": "shop"}).id
    store.link(own, "DERIVED_FROM", source)
    store.suppress(source)
    assert recalled(store) == listed(store) == [own]


class TestExport:
    """An export is a backup, with all that is hidden; one for others is without it, and without what tells of it."""

    def test_a_shareable_export_omits_hidden_and_derived_memories(self, learned: Any, open_store: Any) -> None:
        store, episodes, made = learned
        private = store.insert_memory({"type": "semantic", "content": "a private fact", "privacy_tier": "private"}).id
        archived = store.insert_memory({"type": "semantic", "content": "put away"}).id
        store.archive(archived)
        store.suppress(episodes[1])
        commands = memgraph.MemoryCommands(store)

        export = commands.export_memories(shareable=True)
        shared = {memory.id for memory in export.memories}
        assert shared == {one for one in episodes if one != episodes[1]}
        assert not {made, private, archived} & shared
        assert {end for link in export.links for end in (link.source_id, link.target_id)} <= shared
        assert all(memory.previous_id is None or memory.previous_id in shared for memory in export.memories)
        assert episodes[1] not in export.model_dump_json()
        other = open_store("other")
        assert memgraph.MemoryCommands(other).import_memories(export).data == {"imported": 3, "skipped": 0}

        store.unsuppress(episodes[1])
        assert {made, *episodes} == {memory.id for memory in commands.export_memories(shareable=True).memories}

    def test_a_backup_is_complete_and_withholds_after_import(self, learned: Any, open_store: Any) -> None:
        store, episodes, made = learned
        store.suppress(episodes[0])
        export = memgraph.MemoryCommands(store).export_memories()
        assert {made, *episodes} == {memory.id for memory in export.memories}

        other = open_store("other")
        memgraph.MemoryCommands(other).import_memories(export.model_dump(mode="json"))
        assert other.digest() == store.digest()
        assert listed(other) == listed(store)
        assert made not in listed(other)

    def test_an_export_of_the_past_omits_memories_deleted_since(self, learned: Any, clock: Any) -> None:
        store, episodes, _ = learned
        then = store.now()
        clock.advance(days=1)
        store.delete_memory(episodes[0])
        with store.at(then) as past:
            assert episodes[0] in listed(past)
            exported = {memory.id for memory in memgraph.MemoryCommands(past).export_memories().memories}
        assert exported == set(episodes[1:])
