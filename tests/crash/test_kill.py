"""A writer is killed at random times: acknowledged writes exist exactly once, and no write is partial."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.opening import open_journal
from memgraph.model.events.memories import MemoryAdded
from memgraph.testing import FakeClock, FakeEmbedder
from tests.crash.conftest import graph_ids

DIMENSION = 16
LONGEST_LIFE_S = 0.3


class Ledger:
    """Writes that the killed writers reported."""

    def __init__(self) -> None:
        self.added: set[str] = set()
        self.changed: dict[str, str] = {}
        self.deleted: set[str] = set()
        self.deleting: set[str] = set()

    def read(self, said: list[Any], turn: int) -> None:
        for word, *ids in said:
            if word == "added":
                self.added.update(ids)
            elif word == "changed":
                self.changed[ids[0]] = f"changed in round {turn}"
            else:
                getattr(self, word).add(ids[0])


def live_and_die(nursery: Any, folder: Path, turn: int, chance: random.Random) -> list[Any]:
    """Start a writer, kill it some time after it is ready, and return the writes it reported."""
    writer = nursery.start("restless", folder, turn)
    writer.hears("ready")
    while turn % 4 and len(writer.said()) < 3:  # ready, and two writes; one in four is killed on its way to its first
        assert writer.poll() is None, writer.errors()
        time.sleep(0.005)
    time.sleep(chance.uniform(0, LONGEST_LIFE_S))
    assert writer.poll() is None, writer.errors()  # it runs until it is killed
    writer.send(signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    return [word for word in writer.said() if word != "ready"]


def ids_added(config: Any) -> Counter[str | None]:
    """Count the memories added by whole commits; an incomplete final commit was never acknowledged."""
    keys = FileKeys(config.keys_home)
    journal = open_journal(
        config.home, keys, keys_home=config.keys_home, now=lambda: "2026-12-01T00:00:00.000Z", created_by="tests"
    )
    events = [event for commit in journal.replay() for event in commit.events]
    return Counter(event.payload.memory.id for event in events if isinstance(event.payload, MemoryAdded))


@pytest.fixture
def rounds(is_long: bool) -> int:
    return 300 if is_long else 4


def test_no_acknowledged_write_is_lost_or_duplicated(tmp_path: Path, nursery: Any, rounds: int, show: Any) -> None:
    chance, ledger = random.Random(20260201), Ledger()
    folder = tmp_path / "first"
    config: Any = None
    acknowledged = replayed = 0
    for turn in range(rounds):
        if turn % 10 == 0:  # a new store now and then, so that late rounds cost what early ones do
            folder, ledger = tmp_path / f"store{turn}", Ledger()
            folder.mkdir()
            config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        said = live_and_die(nursery, folder, turn, chance)
        ledger.read(said, turn)
        acknowledged += len(said)
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock()) as store:
            found = {memory.id: memory for memory in store.every_memory()}
            assert ledger.added - ledger.deleting <= found.keys(), f"round {turn}: acknowledged memories are gone"
            assert not ledger.deleted & found.keys(), f"round {turn}: deleted memories are back"
            for memory_id, title in ledger.changed.items():
                assert memory_id not in found or found[memory_id].title == title, f"round {turn}: a change is gone"
            digest = store.digest()
            if turn % 5 == 4 or turn == rounds - 1:
                assert graph_ids(store) == Counter(found.keys())
                store.verify(deep=True)
                store.rebuild()
                assert store.digest() == digest, f"round {turn}: replay gives another state"
                assert {memory.id for memory in store.every_memory()} == found.keys()
                replayed += 1
            assert store.notices == []
        assert set(ids_added(config).values()) <= {1}, f"round {turn}: a memory was recorded twice"
    show(
        "Killed at random moments",
        (
            "kills",
            "acknowledged",
            "lost",
            "doubled",
            "reopened by themselves",
            "compared with replay",
        ),
        [(rounds, acknowledged, 0, 0, rounds, replayed)],
    )
    assert acknowledged > rounds
