"""What fuzzing has found and no single case can show: each in its smallest form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.opening import open_journal
from memgraph.model.events.records import DecayApplied
from memgraph.testing import FakeClock, FakeEmbedder

NOW = "2026-02-01T09:00:00.000Z"


def opened(folder: Path) -> Any:
    keys_home = folder / "keys"
    return open_journal(folder / "store", FileKeys(keys_home), keys_home=keys_home, now=lambda: NOW, created_by="tests")


@pytest.mark.parametrize("name", ["../../../outside", "a/b", "..", "", "\ud800", 7])
def test_a_manifest_from_elsewhere_names_no_file_outside(tmp_path: Path, name: object) -> None:
    folder = tmp_path / "case"
    (folder / "store/journal").mkdir(parents=True)
    (folder / "keys/keys").mkdir(parents=True)
    (folder / "keys/heads").mkdir()
    (folder / "store/journal/manifest.json").write_text(json.dumps({"format": 1, "store_id": name}))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(memgraph.MemGraphError) as caught:
        opened(folder)
    assert str(caught.value).encode()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_head_file_that_is_taken_can_be_read_again(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    path = tmp_path / "keys" / "heads" / journal.store_id
    path.write_text(json.dumps({**json.loads(path.read_text()), "more": "x" * 100}))
    journal = opened(tmp_path)
    with journal.locked():
        journal.append([CommitDraft("system", [DecayApplied(applied_at=NOW, updated=0, below_threshold=0)])], NOW)
    assert opened(tmp_path).tail == journal.tail


def test_an_update_keeps_to_the_highest_relevance(tmp_path: Path) -> None:
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(4), clock=FakeClock()) as store:
        memory = store.insert_memory({"type": "semantic", "content": "x"})
        with pytest.raises(memgraph.InvalidInputError, match="relevance_score"):
            store.update_memory(str(memory.id), relevance_score=1.5)
        assert store.get_memory(str(memory.id)).relevance_score == 1.0


def test_one_who_never_was_cannot_stop_superseding(tmp_path: Path) -> None:
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(4), clock=FakeClock()) as store:
        memory = store.insert_memory({"type": "semantic", "content": "x"})
        with pytest.raises(memgraph.NotFoundError):
            store.unsupersede(str(memory.id), by="11111111-1111-4111-8111-111111111111")
