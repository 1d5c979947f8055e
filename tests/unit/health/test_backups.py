"""The check of backups: silent while there is little to lose, then it names what is missing and how old the last one is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph, restore
from memgraph.interfaces.cli.group import cli
from memgraph.model.results.maintenance import HealthCheck, HealthLimits


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return MemGraph(store)


def fill(memory: MemGraph, count: int = 1_000) -> None:
    memory.store.insert_memories([{"type": "semantic", "content": f"Fact number {one}"} for one in range(count)])


def check(memory: MemGraph) -> HealthCheck:
    (found,) = [one for one in memory.health().checks if one.name == "backups"]
    return found


def test_a_young_or_small_store_without_a_backup_is_well(memory: MemGraph, clock: Any) -> None:
    assert check(memory).status == "ok", "an empty store"
    fill(memory, 900)
    clock.advance(days=8)
    memory.commands.remember("The vault holds the deploy key")
    assert check(memory).status == "ok", "a small store"
    memory.store.config.__dict__["health"] = HealthLimits(backup_days=9)
    fill(memory)
    assert check(memory).status == "ok", "a young one"


def test_a_store_that_was_never_backed_up(memory: MemGraph, clock: Any) -> None:
    fill(memory)
    assert check(memory).status == "ok", "it is new"
    clock.advance(days=8)
    found = check(memory)
    assert (found.status, found.value, found.limit) == ("warning", 8, 7)
    assert found.message == "this store of 1,002 events was never backed up; its first event is 8 days old"
    assert "`memgraph backup FILE`" in found.advice
    assert found.message in memory.health().warnings
    memory.store.config.__dict__["health"] = HealthLimits(backup_days=0)
    assert check(memory).status == "ok"


def test_a_backup_that_is_too_old(memory: MemGraph, clock: Any, tmp_path: Path) -> None:
    memory.commands.remember("The vault holds the deploy key")
    clock.advance(days=30)
    memory.backup(tmp_path / "first.tar.gz")
    assert (check(memory).status, check(memory).value) == ("ok", 0)
    clock.advance(days=8)
    assert check(memory).status == "ok", "it has everything"
    memory.commands.remember("The key was replaced")
    memory.commands.remember("The vault is in Bern")
    found = check(memory)
    assert (found.status, found.value, found.limit) == ("warning", 8, 7)
    assert found.message == (
        f"the last backup, {tmp_path / 'first.tar.gz'}, is 8 days old (2026-03-03T09:00), and 2 events were recorded since"
    )
    memory.backup(tmp_path / "second.tar.gz", incremental=True)
    assert check(memory).status == "ok"


def test_a_restored_store_has_the_backup_that_it_comes_from(
    memory: MemGraph, clock: Any, tmp_path: Path, open_store: Any
) -> None:
    fill(memory)
    clock.advance(days=30)
    memory.backup(tmp_path / "a.tar.gz")
    memory.close()
    clock.advance(days=1)
    restore(tmp_path / "a.tar.gz", tmp_path / "copy", keys_home=tmp_path / "keys", clock=clock)
    copy = MemGraph(open_store("copy"))
    assert (check(copy).status, check(copy).value) == ("ok", 1)
    clock.advance(days=8)
    copy.commands.remember("The vault is in Bern")
    assert check(copy).message == (
        "the last backup, from which the store was restored, is 9 days old (2026-03-03T09:00), and 1 event was recorded since"
    )


def test_it_reads_the_journal_no_second_time(memory: MemGraph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    memory.commands.remember("The vault holds the deploy key")
    memory.backup(tmp_path / "a.tar.gz")
    monkeypatch.setattr("memgraph.journal.journal.Journal.lines", None)
    assert check(memory).value == 0


@pytest.mark.embedded
def test_doctor_names_the_last_backup(memory: MemGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")

    def doctor(*args: str) -> str:
        return CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), "doctor", *args]).stdout

    memory.commands.remember("The vault holds the deploy key")
    memory.close()
    assert "\nbackup      none\n" in doctor()
    assert json.loads(doctor("--json"))["backup"] == {"at": None, "path": None, "present": None, "events_since": None}
    with MemGraph.open(tmp_path / "store") as again:
        again.backup(tmp_path / "a.tar.gz")
    found = json.loads(doctor("--json"))["backup"]
    assert (found["path"], found["present"], found["events_since"]) == (str(tmp_path / "a.tar.gz"), True, 0)
    assert f"\nbackup      {found['at'][:16]}, {tmp_path / 'a.tar.gz'}\n" in doctor()
    (tmp_path / "a.tar.gz").unlink()
    assert f"{tmp_path / 'a.tar.gz'} (not there any more)\n" in doctor()
