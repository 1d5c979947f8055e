"""A store whose receipts are elsewhere, in the directory or on the machine that purged: opening it repeats no work on the database."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryStore
from memgraph.journal.sql import SQLite
from memgraph.store.projector import Projector
from memgraph.store.restoring import restore

pytestmark = pytest.mark.embedded
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
TEXTS = (SECRET, "The nightly backup of the billing database needs about forty minutes on Sundays", "The third one")
Open = Callable[..., AgentMemoryStore]
Traces = Callable[..., list[str]]


@pytest.fixture
def home(open_store: Open, tmp_path: Path) -> Path:
    """A store with two purges and a backup; ``former`` is its index and its cache of before."""
    with open_store() as store:
        secret, other, _ = (store.insert_memory({"type": "episodic", "content": text}).id for text in TEXTS)
        home = store.config.home
        assert store.get_memory(secret).embedding is not None
    for name in ("index", "cache"):
        shutil.copytree(home / name, tmp_path / "former" / name)
    with open_store() as store:
        store.purge([secret])
        store.purge([other])
        store.backup(tmp_path / "backup.tar.gz")
    return home


@pytest.fixture
def calls(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def count(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any, **options: Any) -> Any:
            found.append(name)
            return real(*args, **options)

        monkeypatch.setattr(owner, name, call)

    count(Projector, "rebuild")
    count(SQLite, "erase")
    return found


def receipts(home: Path) -> list[str]:
    return sorted(path.suffix for path in (home / "receipts").iterdir())


def test_what_is_left_on_another_machine_is_removed_there(
    home: Path, calls: list[str], open_store: Open, traces: Traces, tmp_path: Path
) -> None:
    shutil.rmtree(home / "receipts")
    shutil.copytree(tmp_path / "former", home, dirs_exist_ok=True)
    assert {name.partition("/")[0] for name in traces(home, "margaret")} == {"index"}
    with open_store() as store:
        assert calls == []
        assert traces(home, SECRET, "margaret") == []
        assert receipts(home) == [".json", ".json"]
        assert len(store.get_all_memories()) == 1
        store.verify(deep=True)
    with open_store():
        assert calls == []


def test_a_restored_backup_has_receipts_at_once(home: Path, calls: list[str], open_store: Open, tmp_path: Path) -> None:
    restored = tmp_path / "restored"
    with open_store() as store:
        restore(tmp_path / "backup.tar.gz", restored, keys_home=store.config.keys_home)
    calls.clear()
    with open_store("restored") as store:
        assert store.config.home == restored
        assert calls == []
        assert receipts(restored) == [".json", ".json"]


def test_purges_that_were_interrupted_here_are_completed_at_once(
    home: Path, calls: list[str], open_store: Open, traces: Traces
) -> None:
    for path in (home / "receipts").glob("*.json"):
        path.rename(path.with_suffix(".begun"))
    with open_store() as store:
        assert calls == ["erase", "erase"]  # the rows are those that remain: they were made with the purge
        assert receipts(home) == [".json", ".json"]
        for path in (home / "receipts").iterdir():
            store.check_receipt(path.read_bytes())
    assert traces(home, SECRET) == []
