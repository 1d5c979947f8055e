"""Alerts over HTTP: signed, repeated, never redirected, kept if they are not accepted, and never in the way."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig
from memgraph.diagnostics import delivery
from memgraph.diagnostics.delivery import (
    SEVERITY_NUMBERS,
    DeliveryError,
    Outlet,
    PagerDuty,
    Repeats,
    Sender,
    Webhook,
    append_line,
)
from memgraph.diagnostics.records import DiagnosticRecord, LifecycleRecord, QuotaRecord, SecurityRecord, Severity
from memgraph.errors import KeyMissingError

SECRET = "a secret that both know"
ROUTING_KEY = "R0UTINGKEY"
RECORD = SecurityRecord(
    at="2026-02-01T09:00:00.000Z", severity="critical", store_id="store-1", reason="signature", mode="prod", seq=7
)


def report(config: AgentMemoryConfig, record: DiagnosticRecord) -> None:
    said = {name: value for name, value in vars(record).items() if name not in ("at", "severity")}
    delivery.report(config, type(record), severity=record.severity, now=lambda: record.at, **said)


class Receiver(ThreadingHTTPServer):
    """Answers with the given statuses in turn, the last one for ever; keeps what it got. 0: it never answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = [202]
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/alerts"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        status = self.server.statuses.pop(0) if len(self.server.statuses) > 1 else self.server.statuses[0]
        if status == 0:
            self.server.ended.wait(60)
            return
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("location", f"{self.server.address}/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.ended.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    return tmp_path / "dead" / "letters.jsonl"


def webhook(receiver: Receiver, *, timeout_s: float = 5.0) -> Webhook:
    return Webhook(receiver.address, SECRET, timeout_s=timeout_s, now=lambda: 1_770_000_000.0)


def kept(dead: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dead.read_text().splitlines()] if dead.exists() else []


def send(target: Any, dead: Path, *, attempts: int = 3) -> list[float]:
    """Send the record; return the waits between the attempts."""
    waits: list[float] = []
    Sender(target, attempts=attempts, dead_letters=dead, wait=waits.append).send(RECORD)
    return waits


def test_an_alert_is_signed(receiver: Receiver, dead: Path) -> None:
    assert send(webhook(receiver), dead) == []
    ((headers, body),) = receiver.got
    signed = f"1770000000.{headers['x-memgraph-delivery']}.".encode() + body
    proof = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["x-memgraph-timestamp"] == "1770000000"
    assert headers["x-memgraph-signature"] == f"v1={proof}"
    assert headers["content-type"] == "application/json"
    assert SecurityRecord.model_validate_json(body) == RECORD
    assert not dead.exists()


@pytest.mark.parametrize("status", [500, 503, 408, 429])
def test_what_may_pass_is_repeated_with_growing_waits(receiver: Receiver, dead: Path, status: int) -> None:
    receiver.statuses = [status, status, 204]
    first, second = send(webhook(receiver), dead)
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert len(receiver.got) == 3
    assert len({headers["x-memgraph-delivery"] for headers, _ in receiver.got}) == 1
    assert not dead.exists()


def test_after_the_last_attempt_an_alert_is_kept(receiver: Receiver, dead: Path) -> None:
    receiver.statuses = [500]
    assert len(send(webhook(receiver), dead)) == 2
    (letter,) = kept(dead)
    assert (letter["target"], letter["attempts"], letter["problem"]) == ("webhook", 3, "answered with status 500")
    assert SecurityRecord.model_validate_json(json.dumps(letter["record"])) == RECORD
    assert SECRET not in dead.read_text()
    assert dead.stat().st_mode & 0o077 == 0


def test_an_alert_that_is_given_up_says_how_often_it_was_tried(dead: Path) -> None:
    begun, answers = threading.Event(), threading.Event()

    class Hanging:
        name = "webhook"

        def attempt(self, record: DiagnosticRecord, delivery: str) -> None:
            begun.set()
            answers.wait(30)

    sender = Sender(Hanging(), attempts=3, dead_letters=dead)
    outlet = Outlet("webhook", sender.send, on_left=sender.give_up)
    outlet.put(RECORD)
    outlet.put(RECORD.model_copy(update={"seq": 8}))
    assert begun.wait(30)
    outlet.close(0.01)
    answers.set()
    assert [(letter["record"]["seq"], letter["attempts"], letter["problem"]) for letter in kept(dead)] == [
        (7, 1, "no answer; then the process ended"),
        (8, 0, "the process ended before the first attempt"),
    ]


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404])
def test_a_redirect_is_not_followed_and_a_refusal_not_repeated(receiver: Receiver, dead: Path, status: int) -> None:
    receiver.statuses = [status, 200]
    assert send(webhook(receiver), dead) == []
    assert len(receiver.got) == 1
    assert kept(dead)[0]["problem"] == f"answered with status {status}"


def test_a_server_that_hangs_is_left_after_the_timeout(receiver: Receiver, dead: Path) -> None:
    receiver.statuses = [0]
    began = time.monotonic()
    send(webhook(receiver, timeout_s=0.2), dead, attempts=2)
    assert time.monotonic() - began < 50
    assert kept(dead)[0]["attempts"] == 2


def test_nobody_listens(dead: Path) -> None:
    send(Webhook("http://127.0.0.1:9/", SECRET, timeout_s=1.0), dead, attempts=1)
    assert kept(dead)[0]["problem"] == "no answer: ConnectError"


@pytest.mark.parametrize(
    "record",
    [
        RECORD,
        SecurityRecord(at=RECORD.at, severity="error", store_id=None, reason="mode_invalid", mode="prod"),
        SecurityRecord(at=RECORD.at, severity="error", store_id="s" * 200, reason="unsigned_replay", mode="dev"),
        QuotaRecord(at=RECORD.at, severity="warning", quota="max_memory_mb", value=2.0, limit=1.0, unit="bytes"),
    ],
)
def test_pagerduty_gets_what_its_events_api_v2_documents(
    receiver: Receiver, dead: Path, record: DiagnosticRecord
) -> None:
    Sender(PagerDuty(receiver.address, ROUTING_KEY, timeout_s=5.0), attempts=1, dead_letters=dead).send(record)
    ((headers, body),) = receiver.got
    event = json.loads(body)
    assert headers["content-type"] == "application/json"
    assert event.keys() == {"routing_key", "event_action", "dedup_key", "payload"}
    assert (event["routing_key"], event["event_action"]) == (ROUTING_KEY, "trigger")
    assert 0 < len(event["dedup_key"]) <= 255
    payload = event["payload"]
    assert payload.keys() == {
        "summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"
    }  # fmt: skip
    assert 0 < len(payload["summary"]) <= 1_024
    assert payload["source"]
    assert payload["severity"] == record.severity in {"critical", "error", "warning", "info"}
    assert datetime.fromisoformat(payload["timestamp"]).tzinfo is not None
    assert type(record).model_validate_json(json.dumps(payload["custom_details"])) == record


def test_records_of_one_store_and_reason_are_one_incident(receiver: Receiver, dead: Path) -> None:
    target = PagerDuty(receiver.address, ROUTING_KEY, timeout_s=5.0)
    for seq, store_id in ((1, "one"), (2, "one"), (3, "other")):
        Sender(target, attempts=1, dead_letters=dead).send(RECORD.model_copy(update={"seq": seq, "store_id": store_id}))
    keys = [json.loads(body)["dedup_key"] for _, body in receiver.got]
    assert keys == ["memgraph:one:security:signature"] * 2 + ["memgraph:other:security:signature"]


def test_what_pagerduty_refuses_is_kept_without_its_key(receiver: Receiver, dead: Path) -> None:
    receiver.statuses = [400]
    send(PagerDuty(receiver.address, ROUTING_KEY, timeout_s=5.0), dead)
    assert (kept(dead)[0]["target"], len(receiver.got)) == ("pagerduty", 1)
    assert ROUTING_KEY not in dead.read_text()


def test_a_receiver_that_hangs_blocks_neither_the_caller_nor_another(
    receiver: Receiver, dead: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    receiver.statuses = [0]
    monkeypatch.setenv("MEMGRAPH_ALERT_SECRET", SECRET)
    lines = tmp_path / "lines.jsonl"
    config = AgentMemoryConfig(
        alert_webhook=receiver.address, alert_timeout_s=60, alert_attempts=1, alert_dead_letters=str(dead), diagnostics_file=str(lines)
    )  # fmt: skip
    for _ in range(3):
        report(config, RECORD)
    assert not dead.exists(), "the first still waits for its answer"
    receiver.ended.set()
    assert delivery.flush(60.0)
    assert len(lines.read_text().splitlines()) == len(kept(dead)) == 3


def test_only_what_is_severe_enough_is_an_alert(receiver: Receiver, dead: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MEMGRAPH_ALERT_SECRET", SECRET)
    config = AgentMemoryConfig(alert_webhook=receiver.address, alert_dead_letters=str(dead))
    quota = QuotaRecord(at=RECORD.at, severity="warning", quota="max_memory_mb", value=2.0, limit=1.0, unit="bytes")
    report(config, quota)
    report(config, RECORD)
    assert delivery.flush(60.0)
    assert [json.loads(body)["kind"] for _, body in receiver.got] == ["security"]


def test_an_invalid_record_is_refused_and_does_not_disturb_the_work(caplog: Any) -> None:
    report(AgentMemoryConfig(), RECORD.model_copy(update={"store_id": "a memory's text"}))
    (logged,) = caplog.records
    assert (logged.levelno, "refused" in logged.getMessage()) == (logging.ERROR, True)
    assert "a memory's text" not in logged.getMessage()


def test_a_full_outlet_drops_and_counts() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_record: DiagnosticRecord) -> None:
        begun.set()
        go_on.wait(60)

    outlet = Outlet("slow", slow, max_waiting=2)
    outlet.put(RECORD)
    assert begun.wait(60)
    for _ in range(5):
        outlet.put(RECORD)
    assert outlet.dropped == 3
    go_on.set()
    assert outlet.flush(60.0)


def test_what_is_left_when_it_closes_is_kept() -> None:
    go_on = threading.Event()
    left: list[DiagnosticRecord] = []
    outlet = Outlet("slow", lambda record: bool(go_on.wait(60)), on_left=left.append)
    for _ in range(3):
        outlet.put(RECORD)
    outlet.close(0.05)
    assert left == [RECORD] * 3
    go_on.set()


def test_a_file_of_lines_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    for number in range(5):
        append_line(path, {"number": number}, max_bytes=20)
    assert path.stat().st_size < 40
    assert path.with_name("lines.jsonl.1").exists()


def test_a_process_that_ends_at_once_still_sends(
    open_store: Callable[..., Any], receiver: Receiver, tmp_path: Path, monkeypatch: Any
) -> None:
    store = open_store(embedding_model="none")
    store.insert_memory({"type": "episodic", "content": "A fact."})
    store.close()
    (tmp_path / "keys" / "keys" / f"{store.store_id}.json").unlink()
    with pytest.raises(KeyMissingError):
        open_store()
    for name, value in {
        "MEMGRAPH_ALERT_SECRET": SECRET, "MEMGRAPH_ALERT_WEBHOOK": receiver.address, "MEMGRAPH_KEYS_HOME": str(tmp_path / "keys"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "memgraph", "--home", str(tmp_path / "store"), "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    ((_, body),) = receiver.got
    assert json.loads(body)["reason"] == "boot_key"


def test_an_alert_that_was_accepted_is_not_sent_again_within_an_hour(receiver: Receiver, dead: Path) -> None:
    passed = [0.0]
    sender = Sender(webhook(receiver), attempts=1, dead_letters=dead, accepted=Repeats(timer=lambda: passed[0]))
    again = RECORD.model_copy(update={"at": "2026-02-01T09:30:00.000Z"})
    for moment, record, sent in (
        (0.0, RECORD, 1),
        (1_800.0, again, 1),
        (1_801.0, RECORD.model_copy(update={"store_id": "store-2"}), 2),
        (1_802.0, RECORD.model_copy(update={"seq": 8}), 3),
        (1_803.0, RECORD.model_copy(update={"reason": "envelope"}), 4),
        (3_599.0, again, 4),
        (3_600.0, again, 5),
    ):
        passed[0] = moment
        sender.send(record)
        assert len(receiver.got) == sent
    sender.give_up(again)
    assert not dead.exists(), "what was accepted is not undelivered"


def test_an_alert_that_was_not_accepted_is_sent_again(receiver: Receiver, dead: Path) -> None:
    receiver.statuses = [500, 202]
    sender = Sender(webhook(receiver), attempts=1, dead_letters=dead)
    for _ in range(3):
        sender.send(RECORD)
    assert (len(receiver.got), len(kept(dead))) == (2, 1)


@pytest.mark.parametrize(
    ("changed", "is_the_same"),
    [
        ({"at": "2026-02-02T09:00:00.000Z", "duration_s": 9.0, "changed": 4}, True),
        ({"error": "StorageError"}, False),
        ({"phase": "collect"}, False),
        ({"store_id": "store-2"}, False),
    ],
)
def test_which_failures_of_a_run_are_the_same_alert(changed: dict[str, Any], is_the_same: bool) -> None:
    run = {
        "at": "2026-02-01T09:00:00.000Z",
        "severity": "error",
        "store_id": "store-1",
        "run": "sleep",
        "outcome": "failed",
    }
    record = LifecycleRecord.parse({**run, "phase": "compress", "error": "GraphError", "duration_s": 1.0})
    assert (record.model_copy(update=changed).identity == record.identity) is is_the_same


def test_a_process_that_meets_the_same_damage_again_sends_one_alert(
    receiver: Receiver, tmp_path: Path, open_store: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_ALERT_SECRET", SECRET)
    store = open_store(embedding_model="none")
    store.close()
    (tmp_path / "keys" / "keys" / f"{store.store_id}.json").unlink()
    file = tmp_path / "diagnostics.jsonl"
    for _ in range(3):
        with pytest.raises(KeyMissingError):
            open_store(alert_webhook=receiver.address, diagnostics_file=str(file))
    assert delivery.flush(60.0)
    assert len(receiver.got) == 1
    assert len(file.read_text().splitlines()) == 3, "the file has them all"


def test_an_attempt_says_whether_another_would_help(receiver: Receiver) -> None:
    for status, is_final in ((404, True), (500, False)):
        receiver.statuses = [status]
        with pytest.raises(DeliveryError) as refused:
            webhook(receiver).attempt(RECORD, "delivery")
        assert refused.value.is_final is is_final


def test_opentelemetry_gets_a_log_record_of_the_trace_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    from opentelemetry import _logs
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.trace import TracerProvider

    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr(_logs, "get_logger", provider.get_logger)
    with TracerProvider().get_tracer("a program").start_as_current_span("its work") as span:
        for tracing in ("off", "spans"):
            report(AgentMemoryConfig(tracing=tracing), RECORD)
    (emitted,) = [one.log_record for one in exporter.get_finished_logs()]
    assert (emitted.event_name, emitted.severity_text) == ("memgraph.security", "critical")
    assert emitted.severity_number is _logs.SeverityNumber.FATAL
    assert emitted.timestamp == 1_769_936_400_000_000_000
    assert emitted.trace_id == span.get_span_context().trace_id
    assert emitted.attributes["memgraph.reason"] == "signature"
    assert emitted.attributes["memgraph.seq"] == 7


@pytest.mark.parametrize(
    ("severity", "number"), [("info", "INFO"), ("warning", "WARN"), ("error", "ERROR"), ("critical", "FATAL")]
)
def test_severities_are_opentelemetrys(severity: Severity, number: str) -> None:
    from opentelemetry._logs import SeverityNumber

    assert SeverityNumber(SEVERITY_NUMBERS[severity]) is SeverityNumber[number]
