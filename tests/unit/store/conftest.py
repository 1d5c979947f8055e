"""What a store is seen to hold, and programs that run on one in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PREAMBLE = """
import os, sys
from pathlib import Path
import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

def opened():
    folder = Path(sys.argv[1])
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00.000Z"))
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a program on this test's store, in its own process; `opened()` opens it as `open_store()` would."""

    def go(program: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-c", PREAMBLE + program, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return go


@pytest.fixture
def seen() -> Callable[[Any], dict[str, Any]]:
    """Return everything that a store shows of its state."""

    def see(store: Any) -> dict[str, Any]:
        memories = {memory.id: memory for memory in store.every_memory()}
        return {
            "digest": store.digest(),
            "memories": memories,
            "links": {key: sorted(map(repr, store.links(key))) for key in memories},
            "listed": [memory.id for memory in store.get_all_memories()],
            "nodes": store.cypher("MATCH (n) RETURN label(n) AS label, n.id AS id ORDER BY label, id"),
            "edges": store.cypher(
                "MATCH (a)-[e]->(b) RETURN label(e) AS label, a.id AS source, b.id AS target ORDER BY label, source, target"
            ),
            "columns": [
                {name: value for name, value in row["m"].items() if name != "record"}
                for row in store.cypher("MATCH (m:Memory) RETURN m ORDER BY m.id")
            ],
        }

    return see


@pytest.fixture
def live() -> Callable[[Any], list[str]]:
    """Give a store a history of every kind of write; return the ids of what is left."""

    def write(store: Any) -> list[str]:
        context = {"project_id": "P", "session_id": "s", "build_id": "b", "agents_involved": ["MARS"]}
        ids = [
            store.insert_memory(
                {"type": "episodic", "content": f"The build failed in login.py, try {n}", "tags": ["auth"], **context}
            ).id
            for n in range(4)
        ]
        ids += [
            memory.id
            for memory in store.insert_memories(
                [
                    {"type": "episodic", "content": f"Ünï {n} 数据库", "title": f"t{n}", "is_pinned": n == 1}
                    for n in range(60)
                ]
            )
        ]
        ids.append(
            store.insert_memory({"type": "semantic", "content": "In general", "supporting_memory_ids": ids[:3]}).id
        )
        ids.append(
            store.insert_memory({"type": "procedural", "content": "How to", "steps": ["one", "two"], "task_id": "T"}).id
        )
        store.update_memory(ids[1], content="Fixed by a retry", tags=["fix", "auth"], relevance_score=0.5)
        store.update_memory(ids[6], is_suppressed=True)
        store.link(ids[1], "SUPERSEDES", ids[0], reason="newer", score=0.5)
        store.link(ids[2], "CONTRADICTS", ids[3])
        store.delete_memory(ids[2])
        store.record_access(ids[0])
        return [key for key in ids if key != ids[2]]

    return write
