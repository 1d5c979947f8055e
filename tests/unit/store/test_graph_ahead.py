"""After a large insert or an import, the graph of a large store that was queried before is written before the next query."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.graph import copy
from memgraph.model.memory import AgentMemory
from memgraph.store.commit import writer
from memgraph.testing import FakeEmbedder, FakeKeys

pytestmark = pytest.mark.embedded


@pytest.mark.parametrize(
    ("quick_rows", "has_queried", "is_written"), [(1_000, True, False), (0, False, False), (0, True, True)]
)
@pytest.mark.parametrize("door", ["insert", "import", "batch"])
def test_a_large_write_writes_the_graph(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, door: str, quick_rows: int, has_queried: bool, is_written: bool
) -> None:
    def bases() -> list[str]:
        return [path.name for path in (tmp_path / "store" / "graph").glob("base-*")]

    monkeypatch.setattr(copy, "QueryLimits", partial(copy.QueryLimits, changes=0))
    monkeypatch.setattr(copy, "_QUICK_ROWS", quick_rows)
    monkeypatch.setattr(writer, "BULK_FROM", 3)
    config = AgentMemoryConfig(home=tmp_path / "store")
    memories = [{"type": "episodic", "content": f"The build {number} failed"} for number in range(3)]
    with AgentMemoryStore(config=config, embedder=FakeEmbedder(dimension=16), keys=FakeKeys()) as store:
        if has_queried:
            store.cypher("MATCH (m:Memory) RETURN m.id")
        before = bases()
        if door == "insert":
            store.insert_memories(memories)
        elif door == "import":
            store.import_memories([AgentMemory.parse(one) for one in memories], [])
        else:
            with store.batch():
                store.insert_memory(memories[0])
    assert (bases() != before) == is_written
