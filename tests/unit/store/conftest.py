"""What a store is seen to hold, and programs that run on one in a process of their own.

Stores keep their graph in memory, unless the run is a long one; modules and tests about the graph on disk are marked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.graph.schema import tables
from memgraph.testing import FakeClock, FakeEmbedder

PREAMBLE = """
import os, sys
from pathlib import Path
import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

def opened(place="."):
    folder = Path(sys.argv[1], place)
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00.000Z"))
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program on this test's stores, in its own process; `opened()` opens them as `open_store()` would."""

    def go(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-c", PREAMBLE + program, str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return go


@pytest.fixture
def seen() -> Callable[[Any], dict[str, Any]]:
    """Return everything that a store shows of its state."""

    def see(store: Any) -> dict[str, Any]:
        linked = {end for link in store.every_link() for end in (link.source_id, link.target_id)}
        with store._projector.reading():  # queries from outside would take three times as long
            engine = store._projector.rows
            keys = {table: sorted(key for key, _ in engine.scan(table)) for table in tables()}
            columns = dict(engine.scan("Memory"))
        return {
            "digest": store.digest(),
            "memories": {memory.id: memory for memory in store.every_memory()},
            "links": {key: sorted(map(repr, store.links(key))) for key in sorted(linked)},
            "listed": [memory.id for memory in store.get_all_memories()],
            "keys": keys,
            "columns": columns,
        }

    return see


@pytest.fixture(scope="session")
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
                    for n in range(34)
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


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory, live: Callable[[Any], list[str]]) -> tuple[Path, list[str]]:
    """Return where this session keeps a store that has lived, with its graph on disk and its keys, and the ids in it."""
    folder = tmp_path_factory.mktemp("kept")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00.000Z")) as store:
        ids = live(store)
        store.digest()  # opens the graph
    return folder, ids


@pytest.fixture
def lived(open_store: Callable[..., Any], tmp_path: Path, kept: tuple[Path, list[str]]) -> tuple[Any, list[str]]:
    """Return a store of this test's own that has lived (see `live`), and the ids of its memories."""
    folder, ids = kept
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return open_store(), list(ids)
