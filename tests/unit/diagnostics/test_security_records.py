"""Security records: what a store reports when its journal cannot be trusted, and that it reports nothing else."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.diagnostics import reporting
from memgraph.diagnostics.records import LifecycleRecord, QuotaRecord, RetrievalRecord, SecurityRecord
from memgraph.errors import ConfigError, InvalidInputError, JournalError, KeyMissingError
from memgraph.logs import DIAGNOSTICS_LOGGER

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
    assert reporting.flush(10.0)
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
        (rb'"head":', rb'"heat":', "journal"),
        (rb'"envelope_version":1', rb'"envelope_version":9', "envelope"),
    ],
)
@pytest.mark.parametrize("mode", ["prod", "dev"])
def test_refused_events(
    filled: Any, open_store: Any, file: Path, tmp_path: Path, old: bytes, new: bytes, reason: str, mode: str
) -> None:
    journal = tmp_path / "store" / "journal"
    path = next(journal.glob("*.jsonl"))
    path.write_bytes(path.read_bytes().replace(old, new))
    (journal / "verified.json").unlink(missing_ok=True)
    with pytest.raises(JournalError):
        open_store(diagnostics_file=str(file), security_mode=mode)
    (found,) = read(file)
    assert (found["reason"], found["severity"]) == (reason, "critical" if mode == "prod" else "error")
    assert found["segment"] == path.name
    assert found["seq"] == 1


def test_an_invalid_signature(filled: Any, open_store: Any, file: Path, tmp_path: Path) -> None:
    journal = tmp_path / "store" / "journal"
    path = next(journal.glob("*.jsonl"))
    first, rest = path.read_bytes().split(b"\n", 1)
    place = first.index(b'"signature":"') + len(b'"signature":"')
    digit = b"1" if first[place : place + 1] == b"0" else b"0"
    path.write_bytes(first[:place] + digit + first[place + 1 :] + b"\n" + rest)
    (journal / "verified.json").unlink(missing_ok=True)
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
    path = next((tmp_path / "store" / "journal").glob("*.jsonl"))
    path.write_bytes(path.read_bytes().replace(TEXT.encode(), b"What was burned!"))
    (path.parent / "verified.json").unlink(missing_ok=True)
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


def test_a_webhook_needs_a_secret(open_store: Any) -> None:
    with pytest.raises(ConfigError, match="MEMGRAPH_ALERT_SECRET"):
        open_store(alert_webhook="https://elsewhere.example/")


class TestInvalid:
    """Records that do not fit their class are refused."""

    GOOD = {"at": AT, "severity": "critical", "reason": "signature", "mode": "prod"}  # noqa: RUF012 - never changed

    def test_a_valid_one(self) -> None:
        assert SecurityRecord.parse(self.GOOD).version == 1

    @pytest.mark.parametrize(
        "wrong",
        [
            {"version": 2},
            {"severity": "error"},
            {"severity": "fatal"},
            {"reason": "other"},
            {"mode": "test"},
            {"seq": "1"},
            {"seq": -1},
            {"store_id": "a text with spaces"},
            {"key_ids": ["a text with spaces"]},
            {"content": "a memory"},
            {"at": "yesterday"},
        ],
    )
    def test_security(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError):
            SecurityRecord.parse(self.GOOD | wrong)

    @pytest.mark.parametrize(
        "wrong", [{"severity": "info"}, {"error": None}, {"error": "a message"}, {"run": "walk"}, {"duration_s": -1.0}]
    )
    def test_lifecycle(self, wrong: dict[str, Any]) -> None:
        good = {
            "at": AT,
            "severity": "error",
            "run": "sleep",
            "outcome": "failed",
            "error": "BusyError",
            "duration_s": 1.0,
        }
        LifecycleRecord.parse(good)
        with pytest.raises(InvalidInputError):
            LifecycleRecord.parse(good | wrong)

    @pytest.mark.parametrize(
        "wrong", [{"severity": "error"}, {"quota": "luck"}, {"value": float("nan")}, {"unit": "ells"}]
    )
    def test_quota(self, wrong: dict[str, Any]) -> None:
        good = {"at": AT, "quota": "max_memory_mb", "value": 2.0, "limit": 1.0, "unit": "bytes", "severity": "warning"}
        QuotaRecord.parse(good)
        with pytest.raises(InvalidInputError):
            QuotaRecord.parse(good | wrong)

    @pytest.mark.parametrize(
        "wrong", [{"weights": {"tag weight": 1.0}}, {"configuration_sha256": "abc"}, {"query": "x"}]
    )
    def test_retrieval(self, wrong: dict[str, Any]) -> None:
        good = {
            "at": AT, "severity": "info", "query_id": "q", "settings_version": "4-1f0c9a3e", "configuration_sha256": "0" * 64,
            "analyser_version": 1, "embedder": "none", "dimension": 0, "fusion": "scores", "weights": {"tag_weight": 0.05},
            "results": 0, "tokens": 0, "duration_ms": 1.0,
        }  # fmt: skip
        RetrievalRecord.parse(good)
        with pytest.raises(InvalidInputError):
            RetrievalRecord.parse(good | wrong)


def test_damage_that_an_open_store_meets_is_reported(open_store: Any, file: Path, tmp_path: Path) -> None:
    store = open_store(embedding_model="none", diagnostics_file=str(file))
    store.insert_memory({"type": "episodic", "content": TEXT})
    path = next((tmp_path / "store" / "journal").glob("*.jsonl"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"head":1}\n')
    with pytest.raises(JournalError):
        store.insert_memory({"type": "episodic", "content": "Another fact"})
    path.write_bytes(whole)
    found = read(file)
    assert found[0]["reason"] == "journal"
    assert (found[0]["offset"], found[0]["store_id"]) == (len(whole), store.store_id)


def test_a_record_is_a_span(monkeypatch: Any) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from memgraph import AgentMemoryConfig

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    record = SecurityRecord.parse(TestInvalid.GOOD)
    for tracing in ("off", "spans"):
        reporting.report(AgentMemoryConfig(tracing=tracing), lambda: record, severity="critical")
    (span,) = exporter.get_finished_spans()
    assert span.name == "memgraph.security"
    assert span.attributes["memgraph.reason"] == span.attributes["error.type"] == "signature"
