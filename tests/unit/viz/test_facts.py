"""What a user asked to remember is a fact: no generalisation that was learned, and nothing that went well."""

from __future__ import annotations

from pathlib import Path

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemoryCommands
from memgraph.testing import FakeClock, FakeEmbedder
from memgraph.viz.page.data import page_data
from memgraph.viz.page.wording import sentence_of
from memgraph.viz.series import learning_series


def test_a_rule_that_was_remembered_is_counted_as_a_fact(tmp_path: Path) -> None:
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=FakeClock("2026-03-01T09:00:00.000Z")) as store:
        MemoryCommands(store).remember("Deploy on Tuesdays only", project_id="shop")
        data = page_data(store)
        assert sentence_of(data) == "On 1 March 2026: 1 memory, including 1 fact."
        assert data.document["types"][int(data.document["memories"]["type"])] == "fact"
        assert data.document["outcomes"][int(data.document["memories"]["outcome"])] == "unknown"
        found = {one.name: one for one in learning_series(store)}
        for name in ("live_memories", "memories_added", "survival"):
            assert [point.group for point in found[name].points] == ["fact"]
        (counts,) = store.query("coverage_by_project")
        assert (counts["episodes"], counts["generalisations"], counts["facts"]) == (0, 0, 1)
        assert store.query("generalisations") == []
        (episode,) = store.insert_memories(
            [{"type": "episodic", "content": "It broke on a Friday", "project_id": "shop"}]
        )
        made = {
            "type": "semantic",
            "content": "Fridays break",
            "project_id": "shop",
            "supporting_memory_ids": [episode.id],
        }
        store.insert_memory(made)
        assert sentence_of(page_data(store)) == "On 1 March 2026: 3 memories, including 1 generalisation and 1 fact."
