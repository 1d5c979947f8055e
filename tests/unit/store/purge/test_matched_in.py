"""The preview of a purge by words says where a memory has them, if its excerpt does not show them."""

from __future__ import annotations

from typing import Any

from memgraph import AgentMemoryStore

LONG = "The nightly backup of the billing database needs about forty minutes, says "


def added(store: AgentMemoryStore, content: str, **fields: Any) -> str:
    return store.insert_memory({"type": "episodic", "content": content, **fields}).id


def matched(store: AgentMemoryStore, words: str) -> dict[str, list[str]]:
    return {one.id: one.matched_in for one in store.preview_purge(match=words).memories}


def test_each_kind_of_place(store: AgentMemoryStore) -> None:
    by_text = added(store, "Margaret   moved in spring", tags=["margaret"])
    by_names = added(store, "A walk", tags=["family", "Margaret"], speaker="margaret", project_id="Margaret's house")
    by_source = added(store, "A swim", source="letters of Margaret")
    further_on = added(store, f"{LONG}Margaret")
    earlier = added(store, "Margaret called")
    store.update_memory(earlier, content="A friend called")
    deleted = added(store, "A run", agents_involved=["MARGARET"])
    store.delete_memory(deleted)
    added(store, "A ride")
    assert matched(store, "margaret") == {
        by_text: [],
        by_names: ["project_id", "speaker", "tags"],
        by_source: ["source"],
        further_on: ["content"],
        earlier: ["history"],
        deleted: ["agents_involved"],
    }
    assert matched(store, "margaret  MOVED") == {by_text: []}


def test_a_purge_by_ids_or_project_has_no_places(store: AgentMemoryStore) -> None:
    one = added(store, "A walk", project_id="house", tags=["house"])
    added(store, "Another walk")
    assert [found.matched_in for found in store.preview_purge([one]).memories] == [[]]
    assert [found.matched_in for found in store.preview_purge(project="house").memories] == [[]]
