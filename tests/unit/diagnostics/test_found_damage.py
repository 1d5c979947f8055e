"""Damage that an examination finds without opening the store: `doctor`, `repair` and `health` report it as opening does, and once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.diagnostics import delivery
from memgraph.diagnostics.delivery import Repeats
from memgraph.diagnostics.reports import report_finding
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError
from memgraph.interfaces.cli.group import cli
from memgraph.journal.opening import FILE
from memgraph.store.repair import Unwitnessed
from tests.tables import change, change_payload, cut_events

AT = "2026-02-01T09:00:00.000Z"
BY_DOCTOR_AND_REPAIR = pytest.mark.parametrize("command", ["doctor", "repair"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "diagnostics.jsonl"
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_DIAGNOSTICS_FILE", str(path))
    return path


@pytest.fixture
def filled(open_store: Callable[..., Any]) -> Any:
    """Return a store with memories, closed."""
    store = open_store(embedding_model="none")
    for number in range(3):
        store.insert_memory({"type": "episodic", "content": f"What was learned {number}"})
    store.close()
    return store


def run(tmp_path: Path, command: str) -> int:
    code: int = CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), command]).exit_code
    return code


def read(file: Path) -> list[dict[str, Any]]:
    assert delivery.flush(10.0)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@BY_DOCTOR_AND_REPAIR
def test_a_store_that_is_well_has_no_record(filled: Any, file: Path, tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command) == 0
    assert read(file) == []


@BY_DOCTOR_AND_REPAIR
def test_an_invalid_signature(filled: Any, file: Path, tmp_path: Path, command: str, open_store: Any) -> None:
    change(tmp_path / "store", "UPDATE event SET signature = zeroblob(32) WHERE seq = 1")
    change(tmp_path / "store", "DELETE FROM head")
    assert run(tmp_path, command) == 1
    (found,) = read(file)
    expected = {"kind": "security", "reason": "signature", "severity": "critical", "store_id": filled.store_id}
    assert {**expected, "segment": FILE, "seq": 1}.items() <= found.items()
    run(tmp_path, "doctor")
    run(tmp_path, "repair")
    assert read(file) == [found], "once in a process"
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file))
    by_opening = read(file)[1]
    assert {**found, "at": ""} == {**by_opening, "at": ""}


@BY_DOCTOR_AND_REPAIR
def test_a_missing_key(filled: Any, file: Path, tmp_path: Path, command: str) -> None:
    (tmp_path / "keys" / "keys" / f"{filled.store_id}.json").unlink()
    assert run(tmp_path, command) == 1
    assert [(one["reason"], one["severity"]) for one in read(file)] == [("boot_key", "critical")]


@BY_DOCTOR_AND_REPAIR
def test_a_truncated_journal(filled: Any, file: Path, tmp_path: Path, command: str) -> None:
    assert cut_events(tmp_path / "store", 2)
    change(tmp_path / "store", "DELETE FROM head")
    assert run(tmp_path, command) == 1
    assert [(one["reason"], one["store_id"]) for one in read(file)] == [("journal", filled.store_id)]


@BY_DOCTOR_AND_REPAIR
def test_a_lost_head_file_is_no_alert(filled: Any, file: Path, tmp_path: Path, command: str) -> None:
    """Opening makes a new one, with a notice."""
    (tmp_path / "keys" / "heads" / filled.store_id).unlink()
    run(tmp_path, command)
    assert read(file) == []


def test_the_health_of_an_open_store(open_store: Any, file: Path, tmp_path: Path) -> None:
    memory = MemGraph(open_store(embedding_model="none", diagnostics_file=str(file)))
    memory.store.insert_memory({"type": "episodic", "content": "What was learned"})
    change_payload(tmp_path / "store", "learned", "earned!")
    for _ in range(2):
        assert not memory.health().healthy
        with pytest.raises(JournalError):
            memory.store.verify()
    change_payload(tmp_path / "store", "earned!", "learned")
    assert [one["reason"] for one in read(file)] == ["journal"]


def test_what_opening_has_reported_is_not_reported_again(
    filled: Any, file: Path, tmp_path: Path, open_store: Any
) -> None:
    change_payload(tmp_path / "store", "learned 1", "burned! 1")
    change(tmp_path / "store", "DELETE FROM head")
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file))
    run(tmp_path, "doctor")
    assert len(read(file)) == 1


def test_other_damage_is_another_finding(filled: Any, file: Path) -> None:
    config = filled.config.model_copy(update={"diagnostics_file": str(file)})

    def find(error: JournalError, store_id: str = filled.store_id) -> None:
        report_finding(config, error, now=lambda: AT, store_id=store_id)

    for seq in (1, 2, 1):
        find(DamagedJournalError("damaged", path=Path("a.db"), seq=seq))
    for key_id in ("a", "b", "a"):
        find(KeyMissingError("missing", key_id=key_id))
    find(JournalError("truncated"))
    find(JournalError("reordered"))
    find(JournalError("truncated"), "another")
    assert [one["reason"] for one in read(file)] == ["journal", "journal", "boot_key", "boot_key", "journal", "journal"]


def test_the_same_finding_is_reported_again_after_an_hour(filled: Any, file: Path) -> None:
    config = filled.config.model_copy(update={"diagnostics_file": str(file)})
    passed = [0.0]
    repeats = Repeats(timer=lambda: passed[0])
    for moment, reports in ((0.0, 1), (3_599.0, 1), (3_600.0, 2), (7_199.0, 2), (7_200.0, 3)):
        passed[0] = moment
        report_finding(config, JournalError("truncated"), now=lambda: AT, store_id=filled.store_id, repeats=repeats)
        assert len(read(file)) == reports


@BY_DOCTOR_AND_REPAIR
def test_an_examination_beside_a_writer_raises_no_false_alarm(
    filled: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, open_store: Any
) -> None:
    """Another process commits after the events were read: head and head file are ahead of these then."""
    name = {"doctor": "load", "repair": "read_to_end"}[command]
    real, committed = getattr(Unwitnessed, name), []

    def then_commit(journal: Unwitnessed, **options: Any) -> None:
        real(journal, **options)
        if not committed and isinstance(journal, Unwitnessed):
            with open_store(embedding_model="none") as busy:
                committed.append(busy.insert_memory({"type": "episodic", "content": "Meanwhile"}))

    monkeypatch.setattr(Unwitnessed, name, then_commit)
    assert run(tmp_path, command) == 0
    assert committed
    assert read(file) == []
