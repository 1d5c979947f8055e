"""Names that only removed memories had are nowhere any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryStore, MemGraph
from memgraph.graph.schema import tables
from memgraph.index import snapshot
from memgraph.model.events.records import BuildConsolidated

pytestmark = pytest.mark.embedded
NAMES = {
    "tags": ["Zwergwal"], "agents_involved": ["Quastenflosser"], "speaker": "Nachtigall", "domain": "health",
    "session_id": "Seeadler-1", "entities": [{"kind": "file", "name": "/home/wiesel/hamster.py", "about": True}],
}  # fmt: skip
WORDS = ("zwergwal", "quastenflosser", "nachtigall", "seeadler", "wiesel", "hamster")


def filled(store: AgentMemoryStore) -> str:
    """Add a private memory with names of its own, and some that others have too; return its id."""
    kept = {"type": "episodic", "content": "The build of the server took four minutes", "tags": ["ci"]}
    shared = {"project_id": "P", "agents_involved": ["MARS", *NAMES["agents_involved"]]}
    secret = {
        "type": "episodic",
        "content": "Hamster came to see the doctor today",
        **NAMES,
        **shared,
        "tags": ["ci", "Zwergwal"],
    }
    for number in range(60):
        store.insert_memory({**kept, "content": f"{kept['content']}, round {number}", "agents_involved": ["MARS"]})
    return store.insert_memory(secret).id


def named(store: AgentMemoryStore) -> list[str]:
    """List where the names are found in the rows, the graph and the snapshot of the index."""
    with store._projector.reading():
        rows = {f"row of {table}": repr(list(store._projector.rows.scan(table))).lower() for table in tables()}
    for table in ("Tag", "Agent", "Entity", "Session"):
        rows[table] = repr(store.cypher(f"MATCH (x:{table}) RETURN x.name")).lower()
    loaded = snapshot.load(store.config.home / "index" / "index.npz", store.store_id, store._journal.seal("index"))
    assert loaded is not None
    rows["index"] = repr(loaded.name_lists()).lower()
    return [f"{table}: {word}" for table, text in rows.items() for word in WORDS if word in text]


def test_after_a_deletion_neither_graph_nor_index_has_them(open_store: Callable[..., AgentMemoryStore]) -> None:
    with open_store() as store:
        secret = filled(store)
        assert store.get_all_memories()
    with open_store() as store:
        assert {one.partition(":")[0] for one in named(store)} >= {"Tag", "Agent", "Entity", "Session", "index"}
        store.delete_memory(secret)  # a process that does not need the index
    with open_store() as store:
        assert named(store) == []
        assert "mars" in repr(store._projector.index.name_lists()).lower()
        store.verify(deep=True)
        assert [one.memory.id for one in MemGraph(store).search_memories("doctor")] != [secret]
        store.undelete(secret)
        store.verify(deep=True)


def test_after_a_purge_no_file_has_them(
    open_store: Callable[..., AgentMemoryStore], traces: Callable[..., list[str]], tmp_path: Path
) -> None:
    with open_store() as store:
        secret = filled(store)
        assert store.get_all_memories()
        with store.as_agent("coach") as view:
            assert view.get_all_memories()
        assert traces(store.config.home, *WORDS) != []
        store.purge([secret])
        assert traces(store.config.home, *WORDS) == []
    assert traces(tmp_path / "store", *WORDS) == []
    with open_store() as store:
        assert named(store) == []
        store.verify(deep=True)
    assert traces(tmp_path / "store", *WORDS) == []


def test_a_build_does_not_keep_the_names_of_its_agents(
    store: AgentMemoryStore, traces: Callable[..., list[str]]
) -> None:
    secret = filled(store)
    times = dict.fromkeys(("started_at", "completed_at", "consolidated_at"), "2026-01-01T00:00:00.000Z")
    build: dict[str, Any] = {
        "project_id": "P", "build_id": "b1", "log_sha256": "0" * 64, "outcome": "success", "task_count": 1, "extracted": 1,
        "merged": 0, "extractor": "rules", "complete": True, "agents": ["MARS", "Quastenflosser"], **times,
    }  # fmt: skip
    store.commit("global", [BuildConsolidated.parse(build)])
    store.purge([secret])
    assert traces(store.config.home, *WORDS) == []
    (row,) = store.cypher("MATCH (b:Build {name: 'b1'}) RETURN b.agents AS agents, b.log_sha256 AS log")
    assert row == {"agents": ["MARS"], "log": "0" * 64}
    store.verify(deep=True)
