"""Security records: what a store reports when its journal cannot be trusted, and that it reports nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from memgraph import MemGraph
from memgraph.diagnostics import delivery
from memgraph.diagnostics.reports import report_security
from memgraph.errors import (
    ConfigError,
    DamagedJournalError,
    InvalidInputError,
    JournalError,
    KeyMissingError,
    PayloadError,
    UnknownEventError,
)
from memgraph.journal.opening import FILE
from memgraph.logs import DIAGNOSTICS_LOGGER
from tests.tables import change, change_payload, lines_of

AT = "2026-02-01T09:00:00.000Z"
TEXT = "What was learned"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records" / "diagnostics.jsonl"


@pytest.fixture
def filled(open_store: Callable[..., Any]) -> Any:
    """Return a store with one memory, closed."""
    store = open_store(embedding_model="none")
    store.insert_memory({"type": "episodic", "content": TEXT})
    store.close()
    return store


def read(file: Path) -> list[dict[str, Any]]:
    assert delivery.flush(10.0)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_missing_key_is_critical(filled: Any, open_store: Any, file: Path, tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "keys" / "keys" / f"{filled.store_id}.json").unlink()
    with pytest.raises(KeyMissingError):
        open_store(diagnostics_file=str(file))
    (found,) = read(file)
    expected = {"kind": "security", "version": 1, "reason": "boot_key", "severity": "critical", "mode": "prod"}
    assert expected.items() <= found.items()
    assert found["store_id"] == filled.store_id
    (logged,) = [one for one in caplog.records if one.name == DIAGNOSTICS_LOGGER]
    assert (logged.levelno, logged.record) == (logging.CRITICAL, found)
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "hostile",
    ["no key id", "n" * 400, "", "Schlüssel:1", "file:x:1\n", "file:store:1-0011223344556677 \x1b[2J", "\ud800"],
)
def test_a_key_id_that_no_record_may_hold_hides_no_alert(filled: Any, file: Path, hostile: str) -> None:
    error = KeyMissingError("a key is missing", key_ids=[hostile, "file:store:2-0011223344556677"])
    config = filled.config.model_copy(update={"diagnostics_file": str(file)})
    report_security(config, "boot_key", now=lambda: AT, store_id=filled.store_id, error=error)
    (found,) = read(file)
    hashed = hashlib.sha256(hostile.encode("utf-8", "surrogatepass")).hexdigest()
    assert found["key_ids"] == [f"sha256:{hashed}", "file:store:2-0011223344556677"]
    assert found["severity"] == "critical"


def test_a_hostile_name_of_a_file_hides_no_alert(filled: Any, file: Path) -> None:
    name = "an event.db"
    error = DamagedJournalError("damaged", path=Path(name), seq=7)
    config = filled.config.model_copy(update={"diagnostics_file": str(file)})
    report_security(config, "journal", now=lambda: AT, store_id=filled.store_id, error=error)
    (found,) = read(file)
    assert (found["segment"], found["seq"]) == (f"sha256:{hashlib.sha256(name.encode()).hexdigest()}", 7)


def test_a_forged_key_id_in_a_line_is_reported(filled: Any, open_store: Any, file: Path, tmp_path: Path) -> None:
    for seq, head in enumerate([line["head"] for line in lines_of(tmp_path / "store")], start=1):
        forged = orjson.dumps({**head, "key_id": "gone away"}, option=orjson.OPT_SORT_KEYS)
        change(tmp_path / "store", "UPDATE event SET head = ? WHERE seq = ?", forged, seq)
    change(tmp_path / "store", "DELETE FROM head")
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file))
    (found,) = read(file)
    assert found["severity"] == "critical"


def test_a_bypass_is_an_error_at_its_opening_and_at_each_replay(
    filled: Any, open_store: Any, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "keys" / "keys" / f"{filled.store_id}.json").unlink()
    store = open_store(security_mode="dev", allow_unsigned_replay=True, diagnostics_file=str(file))
    before = [(one["reason"], one["severity"]) for one in read(file)]
    assert before[0] == ("dev_bypass", "error")
    list(store.reader.events_after(0))
    after = [(one["reason"], one["severity"]) for one in read(file)]
    assert after[len(before) :] == [("unsigned_replay", "error")]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"seq":1', '"sea":1', "journal"),
        ('"envelope_version":1', '"envelope_version":9', "envelope"),
    ],
)
@pytest.mark.parametrize("mode", ["prod", "dev"])
def test_refused_events(
    filled: Any, open_store: Any, file: Path, tmp_path: Path, old: str, new: str, reason: str, mode: str
) -> None:
    change(tmp_path / "store", "UPDATE event SET head = CAST(replace(CAST(head AS TEXT), ?, ?) AS BLOB)", old, new)
    change(tmp_path / "store", "DELETE FROM head")
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file), security_mode=mode)
    (found,) = read(file)
    assert (found["reason"], found["severity"]) == (reason, "critical" if mode == "prod" else "error")
    assert found["segment"] == FILE
    assert found["seq"] == 1


def test_an_invalid_signature(filled: Any, open_store: Any, file: Path, tmp_path: Path) -> None:
    change(tmp_path / "store", "UPDATE event SET signature = zeroblob(32) WHERE seq = 1")
    change(tmp_path / "store", "DELETE FROM head")
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file))
    (found,) = read(file)
    assert (found["reason"], found["severity"], found["seq"]) == ("signature", "critical", 1)


def test_an_unknown_mode_is_reported_once_it_is_known_where(open_store: Any, file: Path) -> None:
    open_store(security_mode="production", diagnostics_file=str(file), embedding_model="none")
    (found,) = read(file)
    assert (found["reason"], found["severity"], found["mode"]) == ("mode_invalid", "error", "prod")
    open_store("other", security_mode="prod", diagnostics_file=str(file), embedding_model="none")
    assert len(read(file)) == 1


def test_no_text_of_a_memory_is_in_a_record(
    filled: Any, open_store: Any, file: Path, tmp_path: Path, caplog: Any
) -> None:
    change_payload(tmp_path / "store", TEXT, "What was burned!")
    change(tmp_path / "store", "DELETE FROM head")
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file))
    assert read(file)
    shown = file.read_text() + "".join(one.getMessage() for one in caplog.records if one.name == DIAGNOSTICS_LOGGER)
    assert "burned" not in shown
    assert "learned" not in shown


@pytest.mark.parametrize("name", ["diagnostics_file", "alert_webhook", "alertDeadLetters", "alert_pagerduty_url"])
def test_the_store_does_not_choose_where_records_go(filled: Any, tmp_path: Path, open_store: Any, name: str) -> None:
    (tmp_path / "store" / "config.toml").write_text(f'{name} = "https://elsewhere.example/"\n')
    with pytest.raises(ConfigError, match="where its diagnostics go"):
        open_store()


@pytest.mark.parametrize(
    "address", ["http://elsewhere.example/", "ftp://localhost/", "https://", "https://user:word@elsewhere.example/"]
)
def test_an_address_that_anybody_could_read_is_refused(address: str) -> None:
    from memgraph import AgentMemoryConfig

    with pytest.raises(InvalidInputError, match="alert_webhook"):
        AgentMemoryConfig(alert_webhook=address)


def test_a_webhook_needs_a_long_secret(open_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_ALERT_SECRET", "x" * 15)
    with pytest.raises(ConfigError, match="shorter than 16 bytes"):
        open_store(alert_webhook="https://alerts.example/memgraph")
    monkeypatch.setenv("MEMGRAPH_ALERT_SECRET", "x" * 16)
    open_store(alert_webhook="https://alerts.example/memgraph")


def test_a_webhook_needs_a_secret(open_store: Any) -> None:
    with pytest.raises(ConfigError, match="MEMGRAPH_ALERT_SECRET"):
        open_store(alert_webhook="https://elsewhere.example/")


def test_damage_that_an_open_store_meets_is_reported(open_store: Any, file: Path, tmp_path: Path) -> None:
    store = open_store(embedding_model="none", diagnostics_file=str(file))
    store.insert_memory({"type": "episodic", "content": TEXT})
    with MemGraph.open(tmp_path / "store", keys_home=tmp_path / "keys", embedding_model="none") as other:
        other.store.insert_memory({"type": "episodic", "content": "Another fact"})
    change_payload(tmp_path / "store", "Another fact", "Another tale")
    with pytest.raises(JournalError):
        store.insert_memory({"type": "episodic", "content": "One more fact"})
    found = read(file)
    assert (found[0]["reason"], found[0]["store_id"]) == ("journal", store.store_id)


@pytest.mark.parametrize(
    ("head", "payload"),
    [({"type": "memory.invented"}, None), ({"event_version": 99}, None), ({}, {"created_by": 7}), ({}, {"unknown": 1})],
)
@pytest.mark.parametrize("mode", ["prod", "dev"])
def test_a_verified_event_that_fits_no_schema_is_reported_in_any_mode(
    open_store: Any, file: Path, tmp_path: Path, head: dict[str, Any], payload: Any, mode: str
) -> None:
    """As a newer or faulty writer would sign it, who has the key."""
    store = open_store(embedding_model="none")
    key = store._journal.signing_key
    store.close()
    envelope = lines_of(tmp_path / "store")[0]
    envelope["head"] |= head
    if payload is not None:
        envelope["payload"] = payload
        content = orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)
        envelope["head"]["payload_sha256"] = hashlib.sha256(bytes.fromhex(envelope["salt"]) + content).hexdigest()
    signed = orjson.dumps(envelope["head"], option=orjson.OPT_SORT_KEYS)
    content = orjson.dumps(envelope["payload"], option=orjson.OPT_SORT_KEYS)
    signature = hmac.digest(key.secret, signed, "sha256")
    statement = "UPDATE event SET type = ?, head = ?, payload = ?, signature = ? WHERE seq = 1"
    change(tmp_path / "store", statement, envelope["head"]["type"], signed, content, signature)
    change(tmp_path / "store", "DELETE FROM event WHERE seq > 1")
    change(tmp_path / "store", "DELETE FROM head")
    (tmp_path / "keys" / "heads" / store.store_id).unlink(missing_ok=True)
    with pytest.raises((UnknownEventError, PayloadError)):
        open_store(diagnostics_file=str(file), security_mode=mode, allow_unsigned_replay=mode == "dev")
    (found,) = read(file)
    assert (found["reason"], found["severity"]) == ("schema", "critical" if mode == "prod" else "error")
    assert found["store_id"] == store.store_id
