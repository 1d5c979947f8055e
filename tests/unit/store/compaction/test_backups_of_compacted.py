"""Backups of a compacted store: restored whole, up to an event before the baseline, and in place of a damaged journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import JournalError
from memgraph.store.compaction import compact
from memgraph.store.repair import cut_journal, find_damage, restore_journal
from memgraph.store.restoring import restore
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import change, raw_lines, tables

DAYS = 8


def config_of(folder: Path, name: str = "store") -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=folder / name, keys_home=folder / "keys")


def opened(folder: Path, name: str = "store") -> Any:
    clock = FakeClock("2026-02-20T00:00:00.000Z")
    return memgraph.AgentMemoryStore(config_of(folder, name), embedder=FakeEmbedder(16), clock=clock)


@pytest.fixture
def compacted(tmp_path: Path) -> tuple[int, str]:
    """Make a compacted store of some days under ``store``; return the baseline's event and the digest."""
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config_of(tmp_path), embedder=FakeEmbedder(16), clock=clock) as store:
        for number in range(DAYS):
            store.insert_memory({"type": "episodic", "content": f"Day {number}", "tags": [f"t{number}"]})
            clock.advance(days=1)
        digest = store.digest()
    return compact(config_of(tmp_path), before="2026-02-06", clock=clock).seq, digest


def test_restored_whole_and_incrementally(compacted: tuple[int, str], tmp_path: Path) -> None:
    seq, digest = compacted
    full, more = tmp_path / "full.tar.gz", tmp_path / "more.tar.gz"
    with opened(tmp_path) as store:
        store.backup(full)
    result = restore(full, tmp_path / "restored", keys_home=tmp_path / "keys")
    assert result.digest == digest
    with opened(tmp_path, "restored") as store:
        assert store.digest() == digest
        store.verify(deep=True)
    compact(config_of(tmp_path), before="2026-03-01", clock=FakeClock())
    with opened(tmp_path) as store:
        store.insert_memory({"type": "episodic", "content": "Later"})
        digest = store.digest()
        store.backup(more, incremental=True)
    assert restore(more, tmp_path / "again", keys_home=tmp_path / "keys").digest == digest
    with opened(tmp_path, "again") as store:
        store.verify(deep=True)
    assert raw_lines(tmp_path / "again")[:-1] == raw_lines(tmp_path / "store")[:-1]
    assert compact(config_of(tmp_path, "again"), before="2026-02-06", clock=FakeClock()).seq == seq
    with opened(tmp_path, "again") as store:
        assert store.digest() == digest


def test_restored_up_to_an_event_before_the_baseline(compacted: tuple[int, str], tmp_path: Path) -> None:
    seq, _ = compacted
    with opened(tmp_path) as store:
        store.backup(tmp_path / "full.tar.gz")
    assert (
        restore(tmp_path / "full.tar.gz", tmp_path / "restored", keys_home=tmp_path / "keys", until=seq - 2).last_seq
        <= seq - 2
    )
    with opened(tmp_path, "restored") as store:
        assert 0 < len(list(store.every_memory())) < DAYS
        store.verify(deep=True)


def test_a_damaged_archive_is_restored_in_place(compacted: tuple[int, str], tmp_path: Path) -> None:
    seq, digest = compacted
    with opened(tmp_path) as store:
        store.backup(tmp_path / "full.tar.gz")
    change(tmp_path / "store", "UPDATE archive SET body = substr(body, 1, length(body) / 2)")
    with opened(tmp_path) as store:
        assert store.digest() == digest, "opening does not read the archive"
        with pytest.raises(JournalError):
            store.verify()
    damage = find_damage(config_of(tmp_path))
    assert damage is not None
    assert damage.is_in_history
    before = tables(tmp_path / "store")
    with pytest.raises(JournalError, match="cutting there would cut off everything"):
        cut_journal(damage, config_of(tmp_path))
    assert before == tables(tmp_path / "store")
    restored = restore_journal(tmp_path / "full.tar.gz", config_of(tmp_path))
    assert restored.lost == 0
    with opened(tmp_path) as store:
        assert store.digest() == digest
        store.verify(deep=True)
    assert compact(config_of(tmp_path), before="2026-02-06", clock=FakeClock()).seq == seq, "it is made anew"
