"""An embedding process is killed at random times: no memory is lost or has another's vector, and the next run continues."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.ports import Embedder
from memgraph.testing import FakeClock, FakeEmbedder
from tests.crash.conftest import Scene

DIMENSION = 16
BATCH = 2
COUNT = 8
LONGEST_LIFE_S = 0.03


def opened(config: memgraph.AgentMemoryConfig, embedder: Embedder) -> memgraph.AgentMemoryStore:
    """Open a store in this process. The children have the database; vectors are not in it."""
    return memgraph.AgentMemoryStore(config, embedder=embedder, clock=FakeClock())


def test_a_killed_run_keeps_its_commits_and_the_next_continues(tmp_path: Path, nursery: Any, is_long: bool) -> None:
    count = 400 if is_long else 8
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    chance = random.Random(20260201)
    with opened(config, NoEmbedder()) as store:
        store.insert_memories([{"type": "episodic", "content": f"try {number}"} for number in range(count)])
        digest = store.digest()

    left = count
    while left:
        child = nursery.start("embedding", tmp_path)
        batches = chance.randint(0, min(3, left // BATCH))
        child.hears(BATCH * batches)
        time.sleep(chance.uniform(0, LONGEST_LIFE_S))
        child.send(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        with opened(config, FakeEmbedder(DIMENSION)) as store:
            assert store.awaiting_vectors() <= left - BATCH * batches, "a committed vector is gone"
            left = store.awaiting_vectors()
            assert store.digest() == digest
            store.verify()
    with opened(config, FakeEmbedder(DIMENSION)) as store:
        for memory in store.every_memory():
            assert memory.embedding.tobytes() == FakeEmbedder(DIMENSION).embed([memory.content])[0].tobytes()
        store.rebuild()
        assert store.awaiting_vectors() == 0
        assert store.digest() == digest


@pytest.mark.parametrize(("place", "reused"), [("making", COUNT // 2), ("made", COUNT), ("changed", 0)])
def test_a_killed_change_of_model_is_atomic(tmp_path: Path, nursery: Any, place: str, reused: int) -> None:
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    old, new = FakeEmbedder(DIMENSION), FakeEmbedder(DIMENSION * 2, "new")
    with opened(config, old) as store:
        for task_id in (None, "T"):
            texts = [f"{task_id} try {number}" for number in range(COUNT // 2)]
            store.insert_memories([{"type": "episodic", "content": text, "task_id": task_id} for text in texts])
        digest = store.digest()

    child = nursery.start("reembedding", tmp_path, place)
    child.hears("there")
    child.send(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL

    with opened(config, new if place == "changed" else old) as store:
        assert store.awaiting_vectors() == 0
        store.verify()
        result = store.reembed(new)
        assert (result.reused, result.awaiting) == (reused, 0)
        for memory in store.every_memory():
            assert memory.embedding.tobytes() == new.embed([memory.content])[0].tobytes()
        assert store.digest() == digest
        store.verify(deep=True)


def test_a_killed_repair_keeps_its_repairs_and_the_next_continues(tmp_path: Path, nursery: Any, is_long: bool) -> None:
    count = 200 if is_long else 8
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    chance = random.Random(20260202)
    with opened(config, FakeEmbedder(DIMENSION)) as store:
        given = {"type": "episodic", "embedding": range(1, DIMENSION + 1)}  # by no model: it is replaced
        store.insert_memories([{**given, "content": f"given {number}"} for number in range(count // 2)])
        store.insert_memories([{"type": "episodic", "content": f"try {number}"} for number in range(count // 2)])
        digest = store.digest()
    Scene(tmp_path, "", digest).sql("DELETE FROM vector")
    for path in (tmp_path / "store" / "cache").glob("*.f32"):
        path.unlink()

    left = count
    while left:
        child = nursery.start("repairing", tmp_path)
        batches = chance.randint(0, min(3, left // BATCH))
        child.hears(BATCH * batches)
        time.sleep(chance.uniform(0, LONGEST_LIFE_S))
        child.send(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
        with opened(config, FakeEmbedder(DIMENSION)) as store:
            assert store.damaged_vectors() <= left - BATCH * batches, "a vector that was healed is damaged again"
            left = store.damaged_vectors()
            assert store.digest() == digest
    with opened(config, FakeEmbedder(DIMENSION)) as store:
        store.repair_vectors()
        store.verify(deep=True)
        for memory in store.every_memory():
            assert memory.embedding.tobytes() == FakeEmbedder(DIMENSION).embed([memory.content])[0].tobytes()
